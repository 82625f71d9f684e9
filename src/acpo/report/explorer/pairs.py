"""Every two cells that answered the same questions, compared as in the statistics' inference mode."""

from itertools import combinations
from typing import Any

from acpo.cells import Cell
from acpo.report.explorer.packing import short
from acpo.stats.analysis import CHECKPOINTS, Evidence
from acpo.stats.comparison import difference_groups, paired_seeds, scope_of
from acpo.stats.crossed import crossed_mean
from acpo.stats.effects import cliffs_delta, probability_of_improvement
from acpo.stats.raw import Tally


def compare_pairs(evidence: Evidence, alpha: float) -> list[dict[str, Any]]:
    """Compare every two cells of a suite, on each benchmark and at each kind of checkpoint.

    Args:
        evidence: The verdicts.
        alpha: 1 - coverage of the intervals, which are t intervals (`acpo.stats.crossed`): nothing is resampled.
    """
    places = dict.fromkeys((cell.suite, benchmark) for cell, benchmark, _ in evidence.tallies)
    cells = dict.fromkeys(cell for cell, _, _ in evidence.tallies)
    return [
        _compare(ours, theirs, checkpoint, alpha)
        for suite, benchmark in places
        for checkpoint in CHECKPOINTS
        for ours, theirs in combinations(
            _standing(evidence, [cell for cell in cells if cell.suite == suite], benchmark, checkpoint), 2
        )
    ]


def _standing(evidence: Evidence, cells: list[Cell], benchmark: str, checkpoint: str) -> list[Tally]:
    keys = [evidence.at(cell, benchmark, checkpoint) for cell in cells]
    return [evidence.tallies[key] for key in keys if key]


def _compare(ours: Tally, theirs: Tally, checkpoint: str, alpha: float) -> dict[str, Any]:
    found = crossed_mean(difference_groups(ours, theirs))
    test, half = found.decisive, found.half_width(alpha)
    by_question = ours.question_means.mean(0) - theirs.question_means.mean(0)
    improvement = probability_of_improvement(ours.question_means.mean(1), theirs.question_means.mean(1))
    return {
        "a": str(ours.cell),
        "b": str(theirs.cell),
        "benchmark": ours.benchmark,
        "checkpoint": checkpoint,
        "difference": short(found.value),
        "low": short(found.value - half),
        "high": short(found.value + half),
        "standard_error": short(test.standard_error),
        "df": short(test.df),
        "t": None if test.t is None else short(test.t),
        "p": short(test.p),
        "cliffs_delta": short(cliffs_delta(by_question)),
        "improvement": short(improvement),
        "scope": scope_of(found),
        "paired_seeds": paired_seeds(ours, theirs),
    }
