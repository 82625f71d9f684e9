"""Methods x regimes as a sub-table: best and last checkpoint, with notes that say what was averaged."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from acpo.cells import BASE, Cell, cell_seeds
from acpo.report.sources import Results
from acpo.report.table import Block, Group, Number, Panel, Row, mark_best

Kind = Literal["best", "last"]
PANELS: dict[Kind, str] = {"best": "Best checkpoint (by validation)", "last": "Last checkpoint"}


@dataclass(frozen=True)
class Heading:
    """A group of columns: one benchmark of one suite, in every regime of the grid."""

    suite: str
    benchmark: str
    label: str
    note: str | None


def headings(results: Results, suites: Iterable[str]) -> list[Heading]:
    """List the column groups of some suites; the benchmark is named only where a suite has several."""
    found = []
    for name in suites:
        suite = results.study.suites[name]
        for key, benchmark in suite.benchmarks.items():
            several = len(suite.benchmarks) > 1
            label = f"{suite.label}: {benchmark.label}" if several else suite.label
            found.append(Heading(name, key, label, suite.note))
    return found


def grid_block(results: Results, title: str, suites: Iterable[str]) -> Block:
    """Build the sub-table of some suites: the base model, then every method, by kind of checkpoint."""
    heads = headings(results, suites)
    study = results.study
    regimes = tuple(study.regimes[regime].label for regime in study.grid.regimes)
    marks = _note_marks(heads)
    groups = tuple(Group(head.label, regimes, marks.get(head.note or "", "")) for head in heads)
    panels = (_base_panel(results, heads), *(_panel(results, heads, kind) for kind in PANELS))
    return Block(title, "Method", groups, panels, _notes(results, heads, marks, panels))


def _base_panel(results: Results, heads: list[Heading]) -> Panel:
    span = len(results.study.grid.regimes)
    numbers = []
    for head in heads:
        cell = Cell(head.suite, BASE, None)
        last = _number(results, head, cell, "last", span)
        numbers.append(last if last.value is not None else _number(results, head, cell, "best", span))
    return Panel("", (Row("Base Model", tuple(numbers)),))


def _panel(results: Results, heads: list[Heading], kind: Kind) -> Panel:
    study = results.study
    rows = [
        Row(
            study.methods[method].label,
            tuple(
                _number(results, head, Cell(head.suite, method, regime), kind)
                for head in heads
                for regime in study.grid.regimes
            ),
        )
        for method in study.grid.methods
    ]
    return Panel(PANELS[kind], mark_best(rows))


def _number(results: Results, head: Heading, cell: Cell, kind: Kind, span: int = 1) -> Number:
    source = results.source(cell)
    result = results.cell(cell)
    benchmark = result.benchmarks.get(head.benchmark) if result else None
    score = benchmark.checkpoints.get(kind) if benchmark else None
    if benchmark is None or score is None:
        return Number(str(cell), source, kind, None, span=span)
    return Number(
        cell=str(cell),
        source=f"{source} benchmarks.{head.benchmark}.checkpoints.{kind}.avg_at_k",
        checkpoint=kind,
        value=score.avg_at_k,
        spread=score.seed_sd,
        seeds=len(score.seeds),
        expected_seeds=len(cell_seeds(results.study, cell)),
        questions=benchmark.questions,
        k=benchmark.k,
        span=span,
    )


def _note_marks(heads: list[Heading]) -> dict[str, str]:
    notes = dict.fromkeys(head.note for head in heads if head.note)
    return {note: "abcdefghijklmnopqrstuvwxyz"[index] for index, note in enumerate(notes)}


def _notes(results: Results, heads: list[Heading], marks: dict[str, str], panels: tuple[Panel, ...]) -> tuple[str, ...]:
    numbers = [number for panel in panels for row in panel.rows for number in row.numbers]
    notes = [_sampling_note(results, head) for head in heads]
    notes.append(_checkpoint_note(results, heads))
    notes.append(_spread_note([n for panel in panels[1:] for row in panel.rows for n in row.numbers]))
    notes.append(_steps_note(results, heads))
    notes.append("Bold: largest unrounded mean of a column among the trained methods; ties together.")
    notes.extend(_gap_notes(numbers))
    notes.extend(f"({mark}) {note}" for note, mark in marks.items())
    return tuple(dict.fromkeys(note for note in notes if note))


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
        cells = [Cell(head.suite, method, regime) for head in heads for regime in study.grid.regimes]
        steps = [result.updates_per_rollout for cell in cells if (result := results.cell(cell))]
        shown = "/".join(f"{count:g}" for count in dict.fromkeys(steps) if count is not None)
        by_steps.setdefault(shown, []).append(study.methods[method].label)
    parts = [f"{shown} ({', '.join(methods)})" for shown, methods in by_steps.items() if shown]
    regimes = "/".join(study.regimes[regime].label for regime in study.grid.regimes)
    return f"Optimizer steps a rollout, {regimes}: {'; '.join(parts)}." if parts else ""


def _selects_on_benchmark(results: Results, head: Heading) -> bool:
    suite = results.study.suites[head.suite]
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
