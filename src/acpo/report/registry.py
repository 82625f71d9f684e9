"""Which tables and figures exist: one module each in `tables/`, `figures/` and `overviews/`, found by name.

A table module defines `build(results) -> Table`, written to `<module>.tex`, `.csv`, `.html`. A figure module
defines `draw(results, suite, methods) -> Drawing`, written to `<module>_<suite>.pdf`, `.png` for every suite
of the grid; an overview, a figure of the whole grid, `draw(results, methods) -> Drawing`, written to
`<module>.pdf`, `.png`. Adding one is one file.
"""

import pkgutil
import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from types import ModuleType
from typing import Protocol, cast

from acpo.config import ConfigError, nearest
from acpo.report import figures, overviews, tables
from acpo.report.sources import Results, check_methods
from acpo.report.style import Drawing, look
from acpo.report.table import Table


class TableModule(Protocol):
    """What a module in `tables/` offers."""

    def build(self, results: Results) -> Table:
        """Make the table."""


class FigureModule(Protocol):
    """What a module in `figures/` offers."""

    def draw(self, results: Results, suite: str, methods: Sequence[str] | None) -> Drawing:
        """Draw a suite; `methods` replaces the figure's own choice of methods."""


class OverviewModule(Protocol):
    """What a module in `overviews/` offers."""

    def draw(self, results: Results, methods: Sequence[str] | None) -> Drawing:
        """Draw the whole grid; `methods` replaces the figure's own choice of methods."""


def table_names() -> list[str]:
    """List the tables that can be made."""
    return _names(tables)


def figure_names() -> list[str]:
    """List the figures that can be made, of suites and of the whole grid."""
    return sorted([*_names(figures), *_names(overviews)], key=_numbered)


def make_table(name: str, results: Results) -> Table:
    """Build a table.

    Raises:
        ConfigError: no such table; names the nearest one.
        StoreError: a cell's result exists but cannot be read.
    """
    return cast(TableModule, _load(tables, name, "table", table_names())).build(results)


def draw_figure(name: str, results: Results, methods: Sequence[str] | None = None) -> Iterator[Drawing]:
    """Draw a figure for every suite of the grid, or once where it is an overview of the grid.

    Args:
        name: Which figure.
        results: Where the logs are.
        methods: Draw these methods instead of the figure's own choice.

    Raises:
        ConfigError: no such figure or method; names the nearest one.
        StoreError: a log exists but cannot be read.
    """
    chosen = check_methods(results.study, methods) if methods else None
    if name in _names(overviews):
        overview = cast(OverviewModule, import_module(f"{overviews.__name__}.{name}"))
        with look():
            drawing = overview.draw(results, chosen)
        yield drawing
        return
    module = cast(FigureModule, _load(figures, name, "figure", figure_names()))
    for suite in results.study.grid.suites:
        with look():
            drawing = module.draw(results, suite, chosen)
        yield drawing


def _names(package: ModuleType) -> list[str]:
    return sorted((module.name for module in pkgutil.iter_modules(package.__path__)), key=_numbered)


def _numbered(name: str) -> list[tuple[bool, int, str]]:
    """Order by the numbers in names: table2 before table10."""
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in re.split(r"(\d+)", name)]


def _load(package: ModuleType, name: str, kind: str, known: list[str]) -> ModuleType:
    if name not in known:
        raise ConfigError(f"unknown {kind} {name!r}; {nearest(name, known)}")
    return import_module(f"{package.__name__}.{name}")
