"""Tables of ablations: the cells of a grid of their own, and the paper's numbers where it has the suite."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from acpo.audit.published import PublishedTable
from acpo.cells import Cell
from acpo.report import published
from acpo.report.grid import PANELS, Heading, headings, score_notes, score_panel
from acpo.report.published import AVERAGE, REGIMES, SCORES
from acpo.report.sources import Results
from acpo.report.table import Block, Group, Number, Panel, Row, Table, mark_best
from acpo.sections import Method


@dataclass(frozen=True)
class Ablation:
    """What a table shows.

    Attributes:
        name: Of the table, of its grid in `ablations`, and of the paper's table.
        caption: What it is about.
        corner: What its rows are.
        label: Names a method's row as the paper does.
        suite: Which suite the paper's numbers are of.
    """

    name: str
    caption: str
    corner: str
    label: Callable[[Method], str]
    suite: str

    @property
    def published(self) -> PublishedTable:
        """The paper's table."""
        return published.table(self.name)


def bins(method: Method) -> str:
    """Name a row by its number of bins, or a method without bins by its own label."""
    return str(method.parameters.get("bins", method.label))


def by_regime(results: Results, ablation: Ablation) -> Table:
    """Build a table with regimes as columns: a sub-table a suite, a panel a kind of checkpoint.

    Args:
        results: Where the cells are; the study's own grid does not matter.
        ablation: What to show.

    Raises:
        ConfigError: the study has no such ablation.
        StoreError: a result exists but cannot be read.
    """
    view = _view(results, ablation)
    regimes = view.study.grid.regimes
    labels = tuple(view.study.regimes[regime].label for regime in regimes)
    blocks = []
    for suite in view.study.grid.suites:
        heads = headings(view, [suite])
        groups = [Group(head.label, labels) for head in heads]
        places = [(head, regime) for head in heads for regime in regimes]
        panels = [
            score_panel(view, title, [(*place, kind) for place in places], ablation.label)
            for kind, title in PANELS.items()
        ]
        block = _block(view, ablation, heads, groups, panels)
        if suite == ablation.suite:
            theirs = _published_panel(view, ablation, _published(ablation), places)
            block = replace(block, panels=(*panels, theirs), notes=(*block.notes, _source(ablation)))
        blocks.append(block)
    return _table(ablation, blocks)


def by_benchmark(results: Results, ablation: Ablation) -> Table:
    """Build a table with benchmarks and their average as columns, by kind of checkpoint: a panel a regime.

    The paper's numbers are a sub-table of their own. Arguments and errors are those of `by_regime`.
    """
    view = _view(results, ablation)
    regimes = {regime: view.study.regimes[regime].label for regime in view.study.grid.regimes}
    blocks = []
    for suite in view.study.grid.suites:
        heads, benchmarks = headings(view, [suite], average=True), view.study.suites[suite].benchmarks
        labels = tuple("Avg." if head.benchmark == AVERAGE else benchmarks[head.benchmark].label for head in heads)
        panels = [
            score_panel(view, label, [(head, regime, kind) for kind in PANELS for head in heads], ablation.label)
            for regime, label in regimes.items()
        ]
        blocks.append(_block(view, ablation, heads, [Group(title, labels) for title in PANELS.values()], panels))
        if suite == ablation.suite:
            theirs = [
                _published_panel(view, ablation, label, [(head, regime) for head in heads])
                for regime, label in regimes.items()
            ]
            group = Group(_published(ablation), labels)
            blocks.append(Block("Published", ablation.corner, (group,), tuple(theirs), (_source(ablation),)))
    return _table(ablation, blocks)


def _view(results: Results, ablation: Ablation) -> Results:
    return Results(results.study.ablated(ablation.name), results.root)


def _table(ablation: Ablation, blocks: Sequence[Block]) -> Table:
    return Table(ablation.name, ablation.published.place, f"{ablation.caption}, mean accuracy", tuple(blocks))


def _block(
    view: Results, ablation: Ablation, heads: list[Heading], groups: Sequence[Group], panels: Sequence[Panel]
) -> Block:
    """Build the sub-table of a suite from its panels, with its notes."""
    suite = heads[0].suite
    definition = view.study.suites[suite]
    notes = [*score_notes(view, heads, panels), *_measured_notes(view, suite)]
    if any(number.value is None for panel in panels for row in panel.rows for number in row.numbers):
        notes.append(f"What is missing is made by: snakemake --cores 2 results/tables/{ablation.name}.tex")
    if suite != ablation.suite:
        notes.append(f"{ablation.published.place} of the paper has no counterpart of this suite.")
    notes += [definition.note] if definition.note else []
    return Block(definition.label, ablation.corner, tuple(groups), tuple(panels), tuple(notes))


def _published(ablation: Ablation) -> str:
    return f"Published ({ablation.published.place})"


def _source(ablation: Ablation) -> str:
    return published.source_note(ablation.published)


def _published_panel(view: Results, ablation: Ablation, title: str, columns: Sequence[tuple[Heading, str]]) -> Panel:
    """Return the paper's numbers of some headings and regimes, for the rows that the study has."""
    rows = [
        Row(
            ablation.label(view.study.methods[method]),
            tuple(
                _published_number(view, ablation, Cell(head.suite, method, regime), head) for head, regime in columns
            ),
        )
        for method in view.study.grid.methods
    ]
    return Panel(title, mark_best(rows))


def _published_number(view: Results, ablation: Ablation, cell: Cell, head: Heading) -> Number:
    """Return the paper's number beside a cell's; a dash where the paper has no such row or column."""
    label, regime = ablation.label(view.study.methods[cell.method]), REGIMES.get(cell.regime or "", "")
    # Regimes are the columns, or else panels with benchmarks as columns.
    panel, column = "", ("", regime)
    if column not in ablation.published.columns:
        panel, column = regime, ("", SCORES.get((cell.suite, head.benchmark), ("", ""))[1])
    if column in ablation.published.columns and label in ablation.published.panels.get(panel, {}):
        return published.printed(ablation.name, panel, label, column, cell, head.benchmark, unit=100)
    return Number(str(cell), "no published counterpart", "published", None, item=head.benchmark)


def _measured_notes(view: Results, suite: str) -> Iterator[str]:
    """Say which values measured parameters took, in the runs that are finished."""
    study = view.study
    for name in study.grid.methods:
        for parameter, source in study.methods[name].measured.items():
            found = []
            for regime in study.grid.regimes:
                records = view.records(Cell(suite, name, regime)).values()
                values = sorted(record.measured_parameters[parameter] for record in records)
                if values:
                    shown = dict.fromkeys(f"{value:.4f}" for value in (values[0], values[-1]))
                    found.append(f"{' to '.join(shown)} ({study.regimes[regime].label})")
            if found:
                yield (
                    f"{study.methods[name].label}: {parameter} is {', '.join(found)}, {source.statistic} of "
                    f"{study.methods[source.method].label} in its run of the same regime and training seed."
                )
