r"""Every printed number of the tables as a LaTeX macro: `\acponum{table1/mini_acpo_offp/countdown_mini/last}`."""

import re
from collections.abc import Iterable

from acpo.report.latex import escape
from acpo.report.table import Place, Table

PREAMBLE = r"""% Every printed number of the tables by name: \acponum{table1/mini_acpo_offp/countdown_mini/last}.
% A name is table / cell / what of the cell / checkpoint; "/sd" after it is the spread over training seeds.
% Made by scripts/write_macros.py from the same tables; changes here are lost. Needs no package.
\makeatletter
\providecommand{\acponum}[1]{%
  \ifcsname acponum@#1\endcsname\csname acponum@#1\endcsname
  \else\textbf{??}\@latex@error{No number is called '#1'}{numbers.tex lists all names.}\fi}
\newcommand{\acponum@define}[2]{\expandafter\gdef\csname acponum@#1\endcsname{#2}}
"""


def named_numbers(table: Table) -> dict[str, str]:
    """Name every printed number of a table.

    A name is table, cell, what of the cell, checkpoint, without the parts that do not apply. Numbers of one name that
    are printed differently are told apart by the headings of their places.

    Args:
        table: The table.

    Returns:
        Text as printed by name, in reading order; a spread over seeds has the name of its mean and `/sd`.
    """
    places: dict[str, list[Place]] = {}
    for place in table.places():
        places.setdefault(_name(table, place), []).append(place)
    named: dict[str, str] = {}
    for name, found in places.items():
        alike = len({(place.number.text, place.number.spread_text) for place in found}) == 1
        for place in found[:1] if alike else found:
            full = (
                name
                if alike
                else f"{name}/{_slug(place.block.title, place.panel.title, place.row.label, *place.heads)}"
            )
            named[full] = place.number.text
            if place.number.spread_text:
                named[f"{full}/sd"] = place.number.spread_text
    return named


def _name(table: Table, place: Place) -> str:
    number = place.number
    return "/".join(part for part in (table.name, number.cell, number.item, number.checkpoint) if part)


def _slug(*labels: str) -> str:
    words = re.findall(r"[a-z0-9]+", " ".join(labels).lower())
    return "-".join(words)


def render_macros(tables: Iterable[Table]) -> str:
    r"""Render the numbers of some tables as definitions of `\acponum`; an unknown name is an error and prints ??."""
    lines = [
        rf"\acponum@define{{{name}}}{{{escape(text)}}}"
        for table in tables
        for name, text in named_numbers(table).items()
    ]
    return "\n".join([PREAMBLE + "\n".join(lines), r"\makeatother", ""])
