"""The paper's published numbers, each with its place."""

import re
from functools import cache
from importlib.resources import files
from typing import Any

import pandas as pd
import yaml
from pydantic import Field, ValidationError, model_validator

from acpo.errors import ConfigError, nearest
from acpo.results import Record

BLANK = ("", "–")
_PRINTED = re.compile(r"(?P<bound><)?(?P<value>[+-]?[\d.,]+(?:e-?\d+)?)(?: ± (?P<spread>[\d.]+))?%?")


class Number(Record):
    """One published number: as printed, and what it says.

    `bound` is True for `<0.001`, where `value` is an upper bound. `decimals` is to how many it was rounded.
    """

    printed: str
    value: float
    decimals: int
    spread: float | None
    bound: bool

    @property
    def rounding(self) -> float:
        """Half a unit of the last printed digit: how far the unrounded number may be off."""
        return 0.5 * 10.0**-self.decimals

    @classmethod
    def parse(cls, printed: str) -> "Number":
        """Read a number as printed: `20.80`, `<0.001`, `231.0 ± 31.7`, `+3.8%`, `20,177`, `5.01e-3`.

        Raises:
            ValueError: it is none.
        """
        found = _PRINTED.fullmatch(printed)
        if not found:
            raise ValueError(f"{printed!r} is no number as the paper prints them")
        plain = found["value"].replace(",", "")
        mantissa, _, exponent = plain.partition("e")
        decimals = len(mantissa.partition(".")[2]) - int(exponent or 0)
        spread = None if found["spread"] is None else float(found["spread"])
        return cls(printed=printed, value=float(plain), decimals=decimals, spread=spread, bound=found["bound"] == "<")


class PublishedTable(Record):
    """One table: panels of labelled rows over columns of (group, column) headings; cells as printed."""

    place: str
    caption: str
    unit: str
    columns: list[tuple[str, str]]
    panels: dict[str, dict[str, list[str]]]

    @model_validator(mode="after")
    def _check(self) -> "PublishedTable":
        for panel, rows in self.panels.items():
            for label, cells in rows.items():
                if len(cells) != len(self.columns):
                    raise ValueError(f"{panel} {label}: {len(cells)} cells for {len(self.columns)} columns")
                for cell in cells:
                    if cell not in BLANK:
                        Number.parse(cell)
        return self

    def number(self, panel: str, row: str, column: tuple[str, str]) -> Number:
        """Return the number at a place.

        Raises:
            KeyError: no such place, or a blank cell.
        """
        cell = self.panels[panel][row][self.columns.index(column)]
        if cell in BLANK:
            raise KeyError(f"{self.place}, {panel} {row}, {column}: blank")
        return Number.parse(cell)

    def frame(self) -> pd.DataFrame:
        """Return the table in tidy form, one row a cell that is not left blank for its neighbour.

        Columns: panel, row, group, column, printed, value, rounding, spread, bound; a dash has the value NaN.
        """
        return pd.DataFrame(
            [
                {"panel": panel, "row": row, "group": group, "column": column, **_content(cell)}
                for panel, rows in self.panels.items()
                for row, cells in rows.items()
                for (group, column), cell in zip(self.columns, cells, strict=True)
                if cell != ""
            ]
        )


def _content(cell: str) -> dict[str, Any]:
    if cell in BLANK:
        return {"printed": cell, "value": float("nan"), "rounding": float("nan"), "spread": None, "bound": False}
    number = Number.parse(cell)
    return {**number.model_dump(exclude={"decimals"}), "rounding": number.rounding}


class ProseNumber(Record):
    """A number in a sentence, with a fragment of that sentence."""

    place: str
    value: str = Field(min_length=1)
    quote: str

    @property
    def number(self) -> Number:
        """The number itself."""
        return Number.parse(self.value)

    @model_validator(mode="after")
    def _check(self) -> "ProseNumber":
        Number.parse(self.value)
        return self


class Published(Record):
    """All that is transcribed."""

    tables: dict[str, PublishedTable]
    prose: dict[str, ProseNumber]

    def said(self, name: str) -> Number:
        """Return a number of the prose by its name.

        Raises:
            ConfigError: no such number; names the nearest.
        """
        if name not in self.prose:
            raise ConfigError(f"published.yaml: no prose number {name!r}; {nearest(name, self.prose)}")
        return self.prose[name].number


def load_yaml(name: str, model: type[Any], loader: Any = yaml.SafeLoader) -> Any:
    """Read one of this package's YAML files into a model.

    Raises:
        ConfigError: the file does not fit; names file and field.
    """
    values = yaml.load(files("acpo.audit").joinpath(name).read_text(encoding="utf-8"), loader)
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(f"{name}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error


@cache
def published() -> Published:
    """Return the paper's numbers (`published.yaml`). Scalars are read as text: numbers keep their printed digits."""
    made: Published = load_yaml("published.yaml", Published, yaml.BaseLoader)
    return made
