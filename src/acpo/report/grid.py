"""Methods x regimes as a sub-table: best and last checkpoint, the paper's numbers, and notes on what was averaged."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import stdev
from typing import Literal

from acpo.cells import BASE, Cell, cell_seeds
from acpo.report import published
from acpo.report.published import AVERAGE
from acpo.report.sources import Results
from acpo.report.table import MISSING, Block, Group, Number, Panel, Row, mark_best
from acpo.results import CheckpointScore
from acpo.sections import Method

Kind = Literal["best", "last"]
PANELS: dict[Kind, str] = {"best": "Best checkpoint (by validation)", "last": "Last checkpoint"}


@dataclass(frozen=True)
class Heading:
    """A group of columns: one benchmark of one suite, or the average of them, in every regime of the grid."""

    suite: str
    benchmark: str
    label: str
    note: str | None


def headings(results: Results, suites: Sequence[str], average: bool = False) -> list[Heading]:
    """List the column groups of some suites.

    Args:
        results: Whose study.
        suites: Which suites. Their benchmarks are named where a suite has several, the suites where there are several.
        average: End with the average of the benchmarks, where a suite has several.
    """
    found = []
    for name in suites:
        suite = results.study.suites[name]
        several = len(suite.benchmarks) > 1
        keys = [*suite.benchmarks, *([AVERAGE] if average and several else [])]
        for key in keys:
            own = "Avg." if key == AVERAGE else suite.benchmarks[key].label
            parts = [*([suite.label] if len(suites) > 1 or not several else []), *([own] if several else [])]
            found.append(Heading(name, key, ": ".join(parts), suite.note))
    return found


def grid_block(results: Results, title: str, suites: Sequence[str], average: bool = False) -> Block:
    """Build the sub-table of some suites: the base model, then every method, by kind of checkpoint; then the paper's.

    Args:
        results: Where the cells are.
        title: Of the sub-table.
        suites: Whose benchmarks are its columns.
        average: Also a column for the average of each suite's benchmarks (see `headings`).
    """
    heads = headings(results, suites, average)
    study = results.study
    regimes = tuple(study.regimes[regime].label for regime in study.grid.regimes)
    marks = _note_marks(heads)
    groups = tuple(Group(head.label, regimes, marks.get(head.note or "", "")) for head in heads)
    base = _base_panel(results, heads)
    trained = [
        score_panel(results, title, [(head, regime, kind) for head in heads for regime in study.grid.regimes])
        for kind, title in PANELS.items()
    ]
    notes = (
        *score_notes(results, heads, trained, [base]),
        *_published_notes(results, heads),
        *(f"({mark}) {note}" for note, mark in marks.items()),
    )
    return Block(title, "Method", groups, (base, *trained, *_published_panel(results, heads)), notes)


def _base_panel(results: Results, heads: list[Heading]) -> Panel:
    span = len(results.study.grid.regimes)
    numbers = []
    for head in heads:
        cell = Cell(head.suite, BASE, None)
        last = _number(results, head, cell, "last", span)
        numbers.append(last if last.value is not None else _number(results, head, cell, "best", span))
    return Panel("", (Row("Base Model", tuple(numbers)),))


def _label(method: Method) -> str:
    return method.label


def score_panel(
    results: Results, title: str, columns: Sequence[tuple[Heading, str, Kind]], label: Callable[[Method], str] = _label
) -> Panel:
    """Build the rows of all methods of the grid, the best of each column marked.

    Args:
        results: Where the cells are.
        title: Of the panel.
        columns: Heading, regime and kind of checkpoint of each.
        label: Names a method's row.
    """
    study = results.study
    rows = [
        Row(
            label(study.methods[method]),
            tuple(_number(results, head, Cell(head.suite, method, regime), kind) for head, regime, kind in columns),
        )
        for method in study.grid.methods
    ]
    return Panel(title, mark_best(rows))


def _published_panel(results: Results, heads: list[Heading]) -> list[Panel]:
    """Return the paper's numbers of these columns as one panel, or none where it has none of the suites."""
    tables = published.counterparts((head.suite, head.benchmark) for head in heads)
    if not tables:
        return []
    regimes = results.study.grid.regimes
    base, *trained = [
        Row(
            label,
            tuple(
                _published_number(cell, head, len(regimes) if cell.is_base else 1)
                for head in heads
                for cell in ([Cell(head.suite, BASE, None)] if method == BASE else _cells(head, method, regimes))
            ),
        )
        for method, label in published.METHODS.items()
    ]
    return [Panel(f"Published ({', '.join(table.place for table in tables)})", (base, *mark_best(trained)))]


def _published_number(cell: Cell, head: Heading, span: int) -> Number:
    missing = Number(str(cell), "no published counterpart", "published", None, span=span, item=head.benchmark)
    return published.score(cell, head.benchmark, span) or missing


def _cells(head: Heading, method: str, regimes: Sequence[str]) -> list[Cell]:
    return [Cell(head.suite, method, regime) for regime in regimes]


def _number(results: Results, head: Heading, cell: Cell, kind: Kind, span: int = 1) -> Number:
    keys = list(results.study.suites[head.suite].benchmarks) if head.benchmark == AVERAGE else [head.benchmark]
    source = f"{results.source(cell)} benchmarks.{{}}.checkpoints.{kind}.avg_at_k"
    result = results.cell(cell)
    benchmarks = [found for key in keys if result and (found := result.benchmarks.get(key))]
    scores = [score for benchmark in benchmarks if (score := benchmark.checkpoints.get(kind))]
    if len(scores) < len(keys):
        return Number(str(cell), results.source(cell), kind, None, span=span, item=head.benchmark)
    value, spread, seeds = _combined(scores)
    return Number(
        cell=str(cell),
        source=source.format(head.benchmark) if len(keys) == 1 else f"mean of {source.format('*')}",
        checkpoint=kind,
        value=value,
        spread=spread,
        seeds=seeds,
        expected_seeds=len(cell_seeds(results.study, cell)),
        questions=sum(benchmark.questions for benchmark in benchmarks),
        k=benchmarks[0].k if len({benchmark.k for benchmark in benchmarks}) == 1 else 0,
        span=span,
        item=head.benchmark,
    )


def _combined(scores: list[CheckpointScore]) -> tuple[float, float | None, int]:
    """Average benchmarks, each counting equally: the mean, its standard deviation over training seeds, their number.

    A training seed that one of them lacks has no average, so it counts in the mean only.
    """
    if len(scores) == 1:
        return scores[0].avg_at_k, scores[0].seed_sd, len(scores[0].seeds)
    by_seed = [{seed.seed: seed.avg_at_k for seed in score.seeds} for score in scores]
    common = sorted(set.intersection(*(set(values) for values in by_seed)))
    averages = [math.fsum(values[seed] for values in by_seed) / len(scores) for seed in common]
    spread = stdev(averages) if len(averages) > 1 else None
    return math.fsum(score.avg_at_k for score in scores) / len(scores), spread, len(common)


def _note_marks(heads: list[Heading]) -> dict[str, str]:
    notes = dict.fromkeys(head.note for head in heads if head.note)
    return {note: "abcdefghijklmnopqrstuvwxyz"[index] for index, note in enumerate(notes)}


def score_notes(
    results: Results, heads: list[Heading], trained: Sequence[Panel], others: Sequence[Panel] = ()
) -> tuple[str, ...]:
    """Say what the numbers of a sub-table are means of, and which are missing.

    Args:
        results: Where the cells are.
        heads: Of its columns.
        trained: Its panels of trained methods.
        others: Its other panels of this study's numbers.
    """
    notes = [_sampling_note(results, head) for head in heads if head.benchmark != AVERAGE]
    if any(head.benchmark == AVERAGE for head in heads):
        notes.append("Avg.: mean of the unrounded scores of a suite's benchmarks, each counting equally.")
    notes.append(_checkpoint_note(results, heads))
    notes.append(_spread_note(_numbers(trained)))
    notes.append(_steps_note(results, heads))
    notes.append("Bold: largest unrounded mean of a column among the trained methods; ties together.")
    notes.extend(_gap_notes(_numbers([*others, *trained])))
    return tuple(dict.fromkeys(note for note in notes if note))


def _numbers(panels: Sequence[Panel]) -> list[Number]:
    return [number for panel in panels for row in panel.rows for number in row.numbers]


def _published_notes(results: Results, heads: list[Heading]) -> list[str]:
    tables = published.counterparts((head.suite, head.benchmark) for head in heads)
    absence = published.absence_note(results.study, dict.fromkeys(head.suite for head in heads))
    return [*map(published.source_note, tables), *([absence] if absence else [])]


def _sampling_note(results: Results, head: Heading) -> str:
    suite = results.study.suites[head.suite]
    benchmark = suite.benchmarks[head.benchmark]
    cells = [Cell(head.suite, m, r) for m in results.study.grid.methods for r in results.study.grid.regimes]
    made = [result for cell in [Cell(head.suite, BASE, None), *cells] if (result := results.cell(cell))]
    scores = [result.benchmarks[head.benchmark] for result in made if head.benchmark in result.benchmarks]
    sizes = sorted({(score.questions, score.k) for score in scores})
    model = results.study.models[suite.model].label
    found = " or ".join(f"avg@{k} over {questions} questions" for questions, k in sizes)
    graders = " or ".join(sorted({score.grader_version for score in scores}))
    graded = f", graded by {graders}" if graders else ""
    undecided = sum(seed.undecided for score in scores for kept in score.checkpoints.values() for seed in kept.seeds)
    limits = f" The grader stopped at a limit on {undecided} responses, counted as wrong." if undecided else ""
    return f"{head.label}, {model}: {found or 'no result yet'}, {benchmark.split} split, percent{graded}.{limits}"


def _checkpoint_note(results: Results, heads: list[Heading]) -> str:
    validations = {results.study.suites[head.suite].validation for head in heads}
    splits = " or ".join(sorted({f"{v.split} split, avg@{v.samples}" for v in validations}))
    same = [head.label for head in heads if _selects_on_benchmark(results, head)]
    warning = f" Chosen on the reported questions themselves: {', '.join(same)}." if same else ""
    return (
        f"Best: the checkpoint of each training seed with the highest validation score ({splits}); the paper "
        f"reports its best validation reward.{warning} Last: the end of training."
    )


def _steps_note(results: Results, heads: list[Heading]) -> str:
    """Say how many optimizer steps each method made a rollout, which its name and regime do not show."""
    study = results.study
    by_steps: dict[str, list[str]] = {}
    for method in study.grid.methods:
        steps = [_steps(results, heads, method, regime) for regime in study.grid.regimes]
        if any(steps):
            by_steps.setdefault("/".join(shown or MISSING for shown in steps), []).append(study.methods[method].label)
    parts = [f"{shown} ({', '.join(methods)})" for shown, methods in by_steps.items()]
    regimes = "/".join(study.regimes[regime].label for regime in study.grid.regimes)
    if not parts:
        return ""
    return f"Optimizer steps a rollout, {regimes}: {'; '.join(parts if len(parts) > 1 else by_steps)}."


def _steps(results: Results, heads: list[Heading], method: str, regime: str) -> str:
    """Return a method's optimizer steps a rollout in a regime, empty where no cell of it has been made."""
    made = [result for head in heads if (result := results.cell(Cell(head.suite, method, regime)))]
    return " or ".join(f"{count:g}" for count in dict.fromkeys(result.updates_per_rollout for result in made) if count)


def _selects_on_benchmark(results: Results, head: Heading) -> bool:
    suite = results.study.suites[head.suite]
    if head.benchmark == AVERAGE:
        return False
    benchmark = suite.benchmarks[head.benchmark]
    return (suite.task, suite.validation.split) == (benchmark.task, benchmark.split)


def _spread_note(trained: list[Number]) -> str:
    counts = sorted({number.seeds for number in trained if number.seeds})
    if not counts:
        return ""
    if counts[-1] < 2:
        return "One training seed per cell: nothing is known about the spread over seeds."
    seeds = " or ".join(str(count) for count in counts)
    return (
        f"Numbers are means over {seeds} training seeds; ± is the standard deviation over them "
        "(n - 1), not an interval of the mean."
    )


def _gap_notes(numbers: list[Number]) -> list[str]:
    missing = list(dict.fromkeys(number.cell for number in numbers if number.value is None))
    short = {n.cell: f"{n.cell} {n.seeds} of {n.expected_seeds}" for n in numbers if n.mark}
    notes = []
    if short:
        notes.append(f"†: fewer training seeds than the study asks for: {', '.join(short.values())}.")
    if missing and all(number.value is None for number in numbers):
        notes.append("–: no result yet in any cell.")
    elif missing:
        notes.append(f"–: no result in {', '.join(missing)}.")
    return notes
