"""The paper's numbers as parts of our tables: each beside the cell that it is the counterpart of."""

from collections.abc import Iterable

from acpo.audit.published import BLANK, PublishedTable, published
from acpo.audit.published import Number as PublishedNumber
from acpo.audit.significance import BASELINES
from acpo.cells import BASE, Cell
from acpo.config import Study
from acpo.report.quantities import Printed

METHODS = {
    BASE: "Base Model",
    "ar_lopti": "AR-Lopti",
    "high_entropy": "High-Entropy",
    "low_entropy": "Low-Entropy",
    "dapo": "DAPO",
    "cispo": "CISPO",
    "acpo": "ACPO",
}
"""What the paper's tables call our methods, in its order."""
P_VALUE_ROWS = {label: row for row, label in BASELINES.items()}
"""What Table 10 calls otherwise."""
REGIMES = {"nonp": "N-OnP.", "offp": "OffP."}
MATH = {
    "minerva": "Minerva",
    "math500": "Math500",
    "amc": "AMC",
    "aime24": "AIME24",
    "aime25": "AIME25",
    "olympiad": "Olympiad",
}
AVERAGE = "average"
SCORES = {
    ("countdown", "countdown"): ("table1a", "Qwen2.5-3B-Instruct"),
    ("hitab_3b", "hitab"): ("table1b", "Qwen2.5-3B"),
    ("hitab_7b", "hitab"): ("table1b", "Qwen2.5-7B"),
    **{("orz", benchmark): ("table2", column) for benchmark, column in MATH.items()},
    ("orz", AVERAGE): ("table2", "Avg."),
}
"""Table and column group of a suite's benchmark."""
SUITES = tuple(dict.fromkeys(suite for suite, _ in SCORES))
"""The suites of the paper."""


def table(name: str) -> PublishedTable:
    """Return one of the transcribed tables."""
    return published().tables[name]


def score(cell: Cell, benchmark: str, span: int = 1) -> Printed | None:
    """Return the published score of a cell, as a fraction; None where the paper has no such suite or regime.

    Args:
        cell: Ours.
        benchmark: Of the cell's suite, or `AVERAGE`.
        span: Over how many columns it is printed.
    """
    place = SCORES.get((cell.suite, benchmark))
    regime = REGIMES["nonp"] if cell.is_base else REGIMES.get(cell.regime or "")
    if place is None or regime is None or cell.method not in METHODS:
        return None
    return printed(place[0], "", METHODS[cell.method], (place[1], regime), cell, benchmark, span=span, unit=100)


def p_value(cell: Cell, baseline: str, benchmark: str) -> Printed | None:
    """Return the published p of a cell against a baseline (Table 10); None where the paper has no such test.

    `value` of a `<0.001` is that bound.
    """
    regime = REGIMES.get(cell.regime or "")
    known = cell.suite == "orz" and cell.method == "acpo" and benchmark in MATH and baseline in METHODS
    if regime is None or not known or baseline == "acpo":
        return None
    row = P_VALUE_ROWS.get(METHODS[baseline], METHODS[baseline])
    return printed("table10", regime, row, ("", MATH[benchmark]), cell, f"{benchmark}/{baseline}/published_p")


def printed(
    name: str, panel: str, row: str, column: tuple[str, str], cell: Cell, item: str, span: int = 1, unit: float = 1.0
) -> Printed:
    """Return a number of the transcription as part of a table.

    Args:
        name: Of the transcribed table.
        panel: Its panel.
        row: Its row label.
        column: Its (group, column) headings.
        cell: The cell that it is the counterpart of.
        item: What of the cell it is.
        span: Over how many columns it is printed.
        unit: What the printed number is divided by.
    """
    place, columns = table(name).place, table(name).columns
    text = table(name).panels[panel][row][columns.index(column)]
    number = None if text in BLANK else PublishedNumber.parse(text)
    heads = ", ".join(part for part in (panel, row, *column) if part)
    return Printed(
        cell=str(cell),
        source=f"src/acpo/audit/published.yaml {name}: {place}, {heads}",
        checkpoint="published",
        value=None if number is None else number.value / unit,
        spread=None if number is None or number.spread is None else number.spread / unit,
        span=span,
        item=item,
        printed=text,
    )


def counterparts(benchmarks: Iterable[tuple[str, str]]) -> list[PublishedTable]:
    """List the paper's tables that have scores of some (suite, benchmark)."""
    names = dict.fromkeys(SCORES[place][0] for place in benchmarks if place in SCORES)
    return [table(name) for name in names]


def source_note(theirs: PublishedTable) -> str:
    """Say where the numbers of a published panel stand."""
    return f"Published: {theirs.place}, as printed there: {theirs.caption}."


def absence_note(study: Study, suites: Iterable[str]) -> str:
    """Say which suites the paper does not have; empty when it has all."""
    strange = [study.suites[name].label for name in suites if name not in SUITES]
    return f"The paper has no counterpart of {', '.join(strange)}." if strange else ""
