"""Which tables and figures exist: one module each in `tables/`, `ablations/` and `figures/`, found by name.

A table module defines `build(results) -> Table`, written to `<module>.tex`, `.csv`, `.html`. Those in `tables/` show
the grid and are made by `all`; each in `ablations/` shows the grid of its name in the study's `ablations`, and is made
when asked for. A figure module defines `draw(results, suite, methods) -> Drawing`, written to `<module>_<suite>.pdf`,
`.png` for every suite of the grid. Adding one is one file.
"""

import pkgutil
from collections.abc import Iterator, Sequence
from importlib import import_module
from types import ModuleType
from typing import Protocol, cast

from acpo.config import ConfigError, nearest
from acpo.report import ablations, figures, tables
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


def table_names() -> list[str]:
    """List the tables of the grid, which `all` makes."""
    return _names(tables)


def ablation_names() -> list[str]:
    """List the tables of ablations, which are made when asked for."""
    return _names(ablations)


def figure_names() -> list[str]:
    """List the figures that can be made."""
    return _names(figures)


def make_table(name: str, results: Results) -> Table:
    """Build a table, of the grid or of an ablation.

    Raises:
        ConfigError: no such table, or the study has no grid for it; names the nearest one.
        StoreError: a cell's result exists but cannot be read.
    """
    return cast(TableModule, _load("table", name, tables, ablations)).build(results)


def draw_figure(name: str, results: Results, methods: Sequence[str] | None = None) -> Iterator[Drawing]:
    """Draw a figure for every suite of the grid.

    Args:
        name: Which figure.
        results: Where the logs are.
        methods: Draw these methods instead of the figure's own choice.

    Raises:
        ConfigError: no such figure or method; names the nearest one.
        StoreError: a log exists but cannot be read.
    """
    module = cast(FigureModule, _load("figure", name, figures))
    chosen = check_methods(results.study, methods) if methods else None
    for suite in results.study.grid.suites:
        with look():
            drawing = module.draw(results, suite, chosen)
        yield drawing


def _names(package: ModuleType) -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(package.__path__))


def _load(kind: str, name: str, *packages: ModuleType) -> ModuleType:
    known = {module: package for package in packages for module in _names(package)}
    if name not in known:
        raise ConfigError(f"unknown {kind} {name!r}; {nearest(name, known)}")
    return import_module(f"{known[name].__name__}.{name}")
