"""The statistics of a study: every cell of its grid, every declared comparison, ranks and profiles."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from acpo.cells import Cell, grid_cells
from acpo.config import Study
from acpo.stats.bootstrap import draw_weights, resampled_means
from acpo.stats.comparison import Resampling, compare, difference_groups
from acpo.stats.families import Hypothesis, correct_families, declared_hypotheses
from acpo.stats.power import SEED_COUNTS, difference_spread, minimum_detectable_difference
from acpo.stats.raw import Tally, missing_runs, read_cell, tallies
from acpo.stats.records import ComparisonResult, Detectable, FamilyResult, StatisticsResult
from acpo.stats.scores import check_against_result, score
from acpo.stats.standings import profile_methods, rank_methods
from acpo.store import StoreError
from acpo.streams import stream

CHECKPOINTS = ("last", "best")
Key = tuple[Cell, str, str]


@dataclass
class Evidence:
    """What is known of a study: verdicts and bootstrap replicates by cell, benchmark and kind of checkpoint."""

    tallies: dict[Key, Tally] = field(default_factory=dict)
    replicates: dict[Key, np.ndarray] = field(default_factory=dict)

    def at(self, cell: Cell, benchmark: str, checkpoint: str) -> Key | None:
        """Return the key of a result, or None without one. The base model's `last` stands in for its `best`."""
        key = (cell, benchmark, "last" if cell.is_base else checkpoint)
        return key if key in self.tallies else None

    def standing(self, checkpoint: str) -> dict[tuple[Cell, str], Tally]:
        """Return the verdicts at one kind of checkpoint."""
        return {(cell, name): item for (cell, name, kind), item in self.tallies.items() if kind == checkpoint}


def generator(study: Study, *names: str | int) -> np.random.Generator:
    """Open a random stream of the statistics, by what it draws."""
    return stream(study.root_seed, "statistics", study.statistics.stream, *names)


def analyse(study: Study, results: Path) -> StatisticsResult:
    """Compute the statistics of a study's grid.

    Args:
        study: The study.
        results: The results folder. Cells and training seeds without finished runs are listed in `missing`.

    Raises:
        StoreError: a store is damaged or incomplete, or disagrees with a cell's file.
    """
    evidence = Evidence()
    rows: dict[Key, pd.DataFrame] = {}
    cells = grid_cells(study)
    for cell in cells:
        frame = read_cell(study, cell, results)
        for item in tallies(frame, cell):
            key = (cell, item.benchmark, item.checkpoint)
            evidence.tallies[key] = item
            rows[key] = frame[(frame["benchmark"] == item.benchmark) & (frame["checkpoint"] == item.checkpoint)]
            check_against_result(item, results)
    resample(study, evidence)
    comparisons, families = compare_all(study, evidence)
    kinds = {kind: evidence.standing(kind) for kind in CHECKPOINTS}
    rankings = [rank_methods(study, kind, standing, _means(evidence, kind)) for kind, standing in kinds.items()]
    return StatisticsResult(
        settings=study.statistics.model_dump(mode="json"),
        cells=[score(study, item, rows[key], evidence.replicates[key]) for key, item in evidence.tallies.items()],
        comparisons=comparisons,
        families=families,
        rankings=[ranking for ranking in rankings if ranking],
        profiles=[
            profile
            for kind, standing in kinds.items()
            for profile in profile_methods(study, kind, standing, generator(study, "profiles", kind))
        ],
        detectable=list(detectable(study, evidence)),
        missing=missing_runs(study, cells, list(evidence.tallies.values())),
    )


def _means(evidence: Evidence, checkpoint: str) -> dict[tuple[Cell, str], np.ndarray]:
    return {(cell, name): means for (cell, name, kind), means in evidence.replicates.items() if kind == checkpoint}


def resample(study: Study, evidence: Evidence) -> None:
    """Draw the bootstrap replicates of every cell's mean.

    Questions are drawn once for all cells of a benchmark, training seeds once for all cells with the same seeds:
    differences of replicates are paired as the cells are.
    """
    count = study.statistics.resamples
    seeds = {
        item.seeds: draw_weights(len(item.seeds), count, generator(study, "seeds", *item.seeds))
        for item in evidence.tallies.values()
    }
    benchmarks = dict.fromkeys((cell.suite, name) for cell, name, _ in evidence.tallies)
    for suite, name in benchmarks:
        chosen = {key: item for key, item in evidence.tallies.items() if (key[0].suite, key[1]) == (suite, name)}
        questions: dict[tuple[str, ...], np.ndarray] = {}
        for (cell, _, kind), item in chosen.items():
            if item.questions not in questions:
                rng = generator(study, "questions", suite, name)
                questions[item.questions] = draw_weights(len(item.questions), count, rng)
            evidence.replicates[cell, name, kind] = resampled_means(
                item.right, item.k, seeds[item.seeds], questions[item.questions],
                generator(study, "samples", str(cell), name, kind),
            )  # fmt: skip


def compare_all(study: Study, evidence: Evidence) -> tuple[list[ComparisonResult], dict[str, list[FamilyResult]]]:
    """Make every declared comparison at both kinds of checkpoint, and correct the families at each."""
    comparisons: list[ComparisonResult] = []
    families: dict[str, list[FamilyResult]] = {name: [] for name in study.statistics.families}
    for kind in CHECKPOINTS:
        tested = {}
        for hypothesis in declared_hypotheses(study):
            found = _test(study, evidence, hypothesis, kind)
            if found:
                tested[hypothesis] = found
        corrected, results = correct_families(study, kind, tested)
        comparisons += corrected
        for name, result in results.items():
            families[name].append(result)
    return comparisons, families


def _test(study: Study, evidence: Evidence, hypothesis: Hypothesis, kind: str) -> ComparisonResult | None:
    ours = evidence.at(hypothesis.treatment, hypothesis.benchmark, kind)
    theirs = evidence.at(hypothesis.baseline, hypothesis.benchmark, kind)
    if ours is None or theirs is None:
        return None
    rng = generator(study, "sign flips", str(hypothesis), kind)
    how = Resampling(study.statistics.alpha, study.statistics.resamples, rng)
    replicates = evidence.replicates[ours] - evidence.replicates[theirs]
    return compare(evidence.tallies[ours], evidence.tallies[theirs], replicates, how, kind)


def detectable(study: Study, evidence: Evidence) -> Iterator[Detectable]:
    """Yield the minimum detectable difference of every declared comparison, for several numbers of training seeds.

    Where no cell has two training seeds only the one of two checkpoints is known.
    """
    settings = study.statistics
    for kind in CHECKPOINTS:
        for hypothesis in declared_hypotheses(study):
            ours = evidence.at(hypothesis.treatment, hypothesis.benchmark, kind)
            theirs = evidence.at(hypothesis.baseline, hypothesis.benchmark, kind)
            if ours is None or theirs is None:
                continue
            treatment, baseline = evidence.tallies[ours], evidence.tallies[theirs]
            spread = difference_spread(difference_groups(treatment, baseline))
            questions = len(treatment.questions)
            for seeds in SEED_COUNTS if spread.groups else SEED_COUNTS[:1]:
                yield Detectable(
                    suite=treatment.cell.suite, regime=treatment.cell.regime or "", benchmark=treatment.benchmark,
                    checkpoint=kind, treatment=treatment.cell.method, baseline=baseline.cell.method, seeds=seeds,
                    questions=questions, k=treatment.k,
                    difference=minimum_detectable_difference(spread, seeds, questions, settings.alpha, settings.power),
                )  # fmt: skip


def read_rows(study: Study, results: Path) -> pd.DataFrame:
    """Read the raw layer of a study's grid: one row a sample (`acpo.stats.raw.COLUMNS`).

    Raises:
        StoreError: there is no finished run at all.
    """
    frames = [read_cell(study, cell, results) for cell in grid_cells(study)]
    frames = [frame for frame in frames if len(frame)]
    if not frames:
        raise StoreError(f"{results / 'runs'}: no finished run of the grid: make some cells first")
    return pd.concat(frames, ignore_index=True)
