"""Table 9: what an update of each method costs."""

from dataclasses import dataclass

from acpo.cells import Cell
from acpo.report import published
from acpo.report.quantities import Quantity
from acpo.report.sources import Results
from acpo.report.table import MISSING, Block, Group, Number, Panel, Row, Table
from acpo.store import read_json
from acpo.timing import REFERENCE, MethodTime, RegimeTime, Timing

FILE = "timing.json"
COLUMNS = ("Update (s)", "Per-token (ms)", "Rel.")
DIGITS = {"Update (s)": 3, "Per-token (ms)": 4}
ITEMS = ("update_seconds", "milliseconds_per_token", "relative")
PUBLISHED_COLUMNS = ("Update (s)", "Update Rel.", "Per-token (ms)", "Per-token Rel.")
PUBLISHED_ITEMS = ("update_seconds", "update_relative", "milliseconds_per_token", "per_token_relative")


@dataclass(frozen=True)
class Change(Number):
    """A relative change, printed as signed percent."""

    @property
    def text(self) -> str:
        """The change as printed; a dash where there is none, as for the reference itself."""
        return MISSING if self.value is None else f"{100 * self.value:+.1f}%"


def build(results: Results) -> Table:
    """Build Table 9 from `timing.json`: a block for every suite of the grid that the embedded engine trains.

    The paper's own numbers are a block of their own where the grid has one of its suites: it does not say which suite
    it timed. Source: Table 9 and App. L.
    """
    path = results.root / FILE
    timing = read_json(path, Timing) if path.exists() else None
    found = {(each.suite, each.regime): each for each in (timing.regimes if timing else [])}
    suites = [name for name in results.study.grid.suites if results.study.suites[name].engine.name == "tiny"]
    blocks = tuple(_block(results, suite, found) for suite in suites)
    theirs = [suite for suite in results.study.grid.suites if suite in published.SUITES]
    costs = blocks or theirs
    caption = (
        "Cost of the updates of one rollout" if costs else "No suite of the grid is trained by the embedded engine"
    )
    return Table("table9", "Table 9", caption, (*blocks, *([_published_block(theirs[0])] if theirs else [])))


def _block(results: Results, suite: str, found: dict[tuple[str, str], RegimeTime]) -> Block:
    study = results.study
    regimes = study.grid.regimes
    groups = tuple(Group(study.regimes[regime].label, COLUMNS) for regime in regimes)
    rows = tuple(
        Row(
            study.methods[method].label,
            tuple(
                number
                for regime in regimes
                for number in _numbers(Cell(suite, method, regime), found.get((suite, regime)))
            ),
        )
        for method in study.grid.methods
    )
    return Block(study.suites[suite].label, "Method", groups, (Panel("", rows),), _notes(results, suite, found))


def _numbers(cell: Cell, timed: RegimeTime | None) -> list[Number]:
    source = f"results/{FILE} {cell}"
    if timed is None or cell.method not in timed.methods:
        return [Quantity(str(cell), source, "", None, item=item) for item in ITEMS]
    times = (timed.methods[cell.method], timed.milliseconds_a_token(cell.method))
    relative = None if cell.method == REFERENCE else timed.relative(cell.method)
    measured = [_quantity(cell, source, place, time) for place, time in enumerate(times)]
    return [*measured, Change(str(cell), source, "", relative, item=ITEMS[2])]


def _quantity(cell: Cell, source: str, place: int, time: MethodTime) -> Quantity:
    decimals = DIGITS[COLUMNS[place]]
    return Quantity(str(cell), source, "", time.median, spread=time.spread, decimals=decimals, item=ITEMS[place])


def _published_block(suite: str) -> Block:
    table = published.table("table9")
    regimes = {printed: name for name, printed in published.REGIMES.items()}
    methods = {label: name for name, label in published.METHODS.items()}
    rows = tuple(
        Row(
            label,
            tuple(
                published.printed(
                    "table9",
                    "",
                    label,
                    column,
                    Cell(suite, methods[label], regimes[column[0]]),
                    item,
                    unit=100 if "Rel." in column[1] else 1,
                )
                for column, item in zip(table.columns, PUBLISHED_ITEMS * len(regimes), strict=True)
            ),
        )
        for label in table.panels[""]
    )
    groups = tuple(Group(regime, PUBLISHED_COLUMNS) for regime in dict.fromkeys(group for group, _ in table.columns))
    notes = (
        f"{table.place}, as printed there: {table.caption}, on four A100 GPUs; the paper does not say of which suite.",
        "Rel.: to the seconds, or the milliseconds a token, of DAPO in the same regime.",
    )
    return Block("Published", "Method", groups, (Panel("", rows),), notes)


def _notes(results: Results, suite: str, found: dict[tuple[str, str], RegimeTime]) -> tuple[str, ...]:
    timed = [found[suite, regime] for regime in results.study.grid.regimes if (suite, regime) in found]
    absence = [note] if (note := published.absence_note(results.study, [suite])) else []
    if not timed:
        return (f"Not measured yet: snakemake --cores 1 results/{FILE}", *absence)
    rounds = len(next(iter(timed[0].methods.values())).seconds)
    sizes = "; ".join(f"{each.regime} {each.tokens} tokens in {each.updates} updates" for each in timed)
    return (
        f"CPU seconds of all updates of one rollout ({sizes}) on one thread: median ± standard deviation of {rounds} "
        "rounds. Both passes of AR-Lopti count.",
        "All methods in turns on the same mini-batches of one rollout, from the same base model, in one process.",
        "Rel.: median over DAPO's, minus 1, the same for seconds and milliseconds a token, as all methods see the same "
        "tokens. A dash: the reference, or not timed.",
        *absence,
    )
