"""Which tables and figures exist, found by name: a module each in `tables/`, `ablations/`, `figures/`, `overviews/`.

A table module defines `build(results) -> Table`, written to `<module>.tex`, `.csv`, `.html`. Those in `tables/` show
the grid and are made by `all`; each in `ablations/` shows the grid of its name in the study's `ablations`, and is made
when asked for. A figure module defines `draw(results, suite, methods) -> Drawing`, written to `<module>_<suite>.pdf`,
`.png` for every suite of the grid; an overview, a figure of the whole grid, `draw(results, methods) -> Drawing`,
written to `<module>.pdf`, `.png`. Adding one is one file.
"""

import pkgutil
import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from types import ModuleType
from typing import Protocol, cast

from acpo.errors import ConfigError, nearest
from acpo.report import ablations, figures, overviews, tables
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
    """List the tables of the grid, which `all` makes."""
    return _names(tables)


def ablation_names() -> list[str]:
    """List the tables of ablations, which are made when asked for."""
    return _names(ablations)


def made_tables(results: Results) -> list[Table]:
    """Build what report, paper and macros show: the tables of the grid, and those of ablations that have been made.

    Raises:
        StoreError: a cell's result exists but cannot be read.
    """
    folder = results.root / "tables"
    made = [name for name in ablation_names() if name in results.study.ablations and (folder / f"{name}.tex").exists()]
    return [make_table(name, results) for name in sorted([*table_names(), *made], key=_numbered)]


def figure_names() -> list[str]:
    """List the figures that can be made, of suites and of the whole grid."""
    return sorted([*_names(figures), *_names(overviews)], key=_numbered)


def make_table(name: str, results: Results) -> Table:
    """Build a table, of the grid or of an ablation.

    Raises:
        ConfigError: no such table, or the study has no grid for it; names the nearest one.
        StoreError: a cell's result exists but cannot be read.
    """
    return cast(TableModule, _load("table", name, tables, ablations)).build(results)


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
    module = _load("figure", name, figures, overviews)
    if name in _names(overviews):
        with look():
            drawing = cast(OverviewModule, module).draw(results, chosen)
        yield drawing
        return
    for suite in results.study.grid.suites:
        with look():
            drawing = cast(FigureModule, module).draw(results, suite, chosen)
        yield drawing


def _names(package: ModuleType) -> list[str]:
    return sorted((module.name for module in pkgutil.iter_modules(package.__path__)), key=_numbered)


def _numbered(name: str) -> list[tuple[bool, int, str]]:
    """Order by the numbers in names: table2 before table10."""
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in re.split(r"(\d+)", name)]


def _load(kind: str, name: str, *packages: ModuleType) -> ModuleType:
    known = {module: package for package in packages for module in _names(package)}
    if name not in known:
        raise ConfigError(f"unknown {kind} {name!r}; {nearest(name, known)}")
    return import_module(f"{known[name].__name__}.{name}")
