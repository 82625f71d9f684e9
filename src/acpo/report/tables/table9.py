"""Table 9: what an update of each method costs."""

from dataclasses import dataclass

from acpo.cells import Cell
from acpo.report.sources import Results
from acpo.report.table import MISSING, Block, Group, Number, Panel, Row, Table
from acpo.store import read_json
from acpo.timing import REFERENCE, MethodTime, RegimeTime, Timing

FILE = "timing.json"
COLUMNS = ("Update (s)", "Per-token (ms)", "Rel.")
DIGITS = {"Update (s)": 3, "Per-token (ms)": 4}


@dataclass(frozen=True)
class Quantity(Number):
    """A number that is no percentage: seconds or milliseconds, with its decimals."""

    decimals: int = 0

    @property
    def text(self) -> str:
        """The number as printed, or a dash where it was not measured."""
        return MISSING if self.value is None else f"{self.value:.{self.decimals}f}"

    @property
    def spread_text(self) -> str:
        """The spread as printed, empty where none is known."""
        return "" if self.value is None or self.spread is None else f"{self.spread:.{self.decimals}f}"


@dataclass(frozen=True)
class Change(Number):
    """A relative change, printed as signed percent."""

    @property
    def text(self) -> str:
        """The change as printed; a dash where there is none, as for the reference itself."""
        return MISSING if self.value is None else f"{100 * self.value:+.1f}%"


def build(results: Results) -> Table:
    """Build Table 9 from `timing.json`: a block for every suite of the grid that the embedded engine trains.

    Source: Table 9 and App. L.
    """
    path = results.root / FILE
    timing = read_json(path, Timing) if path.exists() else None
    found = {(each.suite, each.regime): each for each in (timing.regimes if timing else [])}
    suites = [name for name in results.study.grid.suites if results.study.suites[name].engine.name == "tiny"]
    blocks = tuple(_block(results, suite, found) for suite in suites)
    caption = (
        "Cost of the updates of one rollout" if blocks else "No suite of the grid is trained by the embedded engine"
    )
    return Table("table9", "Table 9", caption, blocks)


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
    return Block(study.suites[suite].label, "Method", groups, (Panel("", rows),), _notes(suite, regimes, found))


def _numbers(cell: Cell, timed: RegimeTime | None) -> list[Number]:
    source = f"results/{FILE} {cell}"
    if timed is None or cell.method not in timed.methods:
        return [Quantity(str(cell), source, "", None) for _ in COLUMNS]
    seconds, tokens = timed.methods[cell.method], timed.milliseconds_a_token(cell.method)
    change = Change(str(cell), source, "", None if cell.method == REFERENCE else timed.relative(cell.method))
    return [_quantity(cell, source, "Update (s)", seconds), _quantity(cell, source, "Per-token (ms)", tokens), change]


def _quantity(cell: Cell, source: str, column: str, time: MethodTime) -> Quantity:
    return Quantity(str(cell), source, "", time.median, spread=time.spread, decimals=DIGITS[column])


def _notes(suite: str, regimes: list[str], found: dict[tuple[str, str], RegimeTime]) -> tuple[str, ...]:
    timed = [found[suite, regime] for regime in regimes if (suite, regime) in found]
    if not timed:
        return (f"Not measured yet: snakemake --cores 1 results/{FILE}",)
    rounds = len(next(iter(timed[0].methods.values())).seconds)
    sizes = "; ".join(f"{each.regime} {each.tokens} tokens in {each.updates} updates" for each in timed)
    return (
        f"CPU seconds of all updates of one rollout ({sizes}) on one thread: median ± standard deviation of {rounds} "
        "rounds. Both passes of AR-Lopti count.",
        "All methods in turns on the same mini-batches of one rollout, from the same base model, in one process.",
        "Rel.: median over DAPO's, minus 1, the same for seconds and milliseconds a token, as all methods see the same "
        "tokens. A dash: the reference, or not timed.",
    )
