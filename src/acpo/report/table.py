"""A table before it is LaTeX, HTML or CSV: all are rendered from this, so their numbers cannot differ."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal
from typing import NamedTuple

import pandas as pd

MISSING = "–"
# Means of counts reach the same value by different sums; closer than this is a tie, not a difference.
TIE = 1e-12


def percent(fraction: float) -> str:
    """Print a fraction as percent with two decimals, halves rounded up in decimal (0.12345 -> 12.35)."""
    exact = Decimal(repr(float(fraction))) * 100
    return str(exact.quantize(Decimal("0.01"), rounding=ROUND_HALF_UP))


@dataclass(frozen=True)
class Number:
    """One number of a table and where it comes from.

    `value` and `spread` are fractions, unrounded; `value` is None where the cell is missing. `span` is over
    how many columns it is printed. `item` says in a word what of the cell it is, such as a benchmark.
    """

    cell: str
    source: str
    checkpoint: str
    value: float | None
    spread: float | None = None
    seeds: int = 0
    expected_seeds: int = 0
    questions: int = 0
    k: int = 0
    span: int = 1
    best: bool = False
    item: str = ""

    @property
    def text(self) -> str:
        """The number as printed: percent, or a dash where it is missing."""
        return MISSING if self.value is None else percent(self.value)

    @property
    def spread_text(self) -> str:
        """The spread as printed, empty where none is known."""
        return "" if self.value is None or self.spread is None else percent(self.spread)

    @property
    def mark(self) -> str:
        """A dagger where fewer training seeds are in the mean than the study asks for."""
        return "†" if self.value is not None and self.seeds < self.expected_seeds else ""

    @property
    def trace(self) -> str:
        """Where the number comes from, in words."""
        return f"{self.source}: missing" if self.value is None else self.source


@dataclass(frozen=True)
class Row:
    """A labelled row of numbers; their spans sum to the number of columns."""

    label: str
    numbers: tuple[Number, ...]


@dataclass(frozen=True)
class Panel:
    """Rows under a common heading (none when empty)."""

    title: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Group:
    """Neighbouring columns under a common heading. `mark` refers to a note."""

    label: str
    columns: tuple[str, ...]
    mark: str = ""


@dataclass(frozen=True)
class Block:
    """A sub-table with its own columns and notes. `corner` heads the column of row labels."""

    title: str
    corner: str
    groups: tuple[Group, ...]
    panels: tuple[Panel, ...]
    notes: tuple[str, ...]

    @property
    def width(self) -> int:
        """The number of columns of numbers."""
        return sum(len(group.columns) for group in self.groups)


@dataclass(frozen=True)
class Table:
    """A whole table. `name` names its files; `title` is what the paper calls it."""

    name: str
    title: str
    caption: str
    blocks: tuple[Block, ...]

    def places(self) -> Iterator["Place"]:
        """Yield every number with its place, in reading order."""
        for block in self.blocks:
            for panel in block.panels:
                for row in panel.rows:
                    for position, number in enumerate(row.numbers):
                        yield Place(block, panel, row, position, number)

    def frame(self) -> pd.DataFrame:
        """Return the table in tidy form, one row per number, unrounded values beside the printed text."""
        return pd.DataFrame([_record(self.name, place) for place in self.places()])


class Place(NamedTuple):
    """A number and where it stands; `position` counts the numbers of its row."""

    block: Block
    panel: Panel
    row: Row
    position: int
    number: Number

    @property
    def heads(self) -> tuple[str, str]:
        """The headings above it, see `column_of`."""
        return column_of(self.block, self.row, self.position)


def mark_best(rows: list[Row]) -> tuple[Row, ...]:
    """Mark the largest unrounded number of every column, ties together. Missing numbers do not take part."""
    tops = []
    for column in zip(*(row.numbers for row in rows), strict=True):
        values = [number.value for number in column if number.value is not None]
        tops.append(max(values) - TIE if values else None)
    return tuple(Row(row.label, tuple(map(_marked, row.numbers, tops))) for row in rows)


def _marked(number: Number, top: float | None) -> Number:
    best = number.value is not None and top is not None and number.value >= top
    return replace(number, best=best)


def column_of(block: Block, row: Row, position: int) -> tuple[str, str]:
    """Return the headings (group, column) of a row's number; a number over several columns has no column."""
    heads = [(group.label, column) for group in block.groups for column in group.columns]
    start = sum(number.span for number in row.numbers[:position])
    group, column = heads[start]
    return group, (column if row.numbers[position].span == 1 else "")


def _record(name: str, place: Place) -> dict[str, object]:
    group, column = place.heads
    number = place.number
    return {
        "table": name,
        "block": place.block.title,
        "panel": place.panel.title,
        "row": place.row.label,
        "group": group,
        "column": column,
        "cell": number.cell,
        "item": number.item,
        "checkpoint": number.checkpoint,
        "value": number.value,
        "printed": number.text,
        "seed_sd": number.spread,
        "printed_seed_sd": number.spread_text,
        "seeds": number.seeds,
        "expected_seeds": number.expected_seeds,
        "questions": number.questions,
        "k": number.k,
        "best": number.best,
        "source": number.source,
    }
