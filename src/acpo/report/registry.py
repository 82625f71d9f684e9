"""Which tables and figures exist: one module each in `tables/` and `figures/`, found by name.

A table module defines `build(results) -> Table`. A figure module defines `stems(study)`, the names of the
files it makes, and `build(results, methods) -> list[Drawing]`, one drawing per stem. Adding one is one file.
"""

import pkgutil
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Protocol, cast

from acpo.config import ConfigError, Study, nearest
from acpo.report import figures, tables
from acpo.report.sources import Results
from acpo.report.style import Drawing
from acpo.report.table import Table


class TableModule(Protocol):
    """What a module in `tables/` offers."""

    def build(self, results: Results) -> Table:
        """Make the table."""


class FigureModule(Protocol):
    """What a module in `figures/` offers."""

    def stems(self, study: Study) -> list[str]:
        """Name the files that `build` makes, without folder and ending."""

    def build(self, results: Results, methods: Sequence[str] | None = None) -> list[Drawing]:
        """Draw one picture per stem; `methods` replaces the figure's own choice of methods."""


def table_names() -> list[str]:
    """List the tables that can be made."""
    return _names(tables)


def figure_names() -> list[str]:
    """List the figures that can be made."""
    return _names(figures)


def table(name: str) -> TableModule:
    """Return the builder of a table.

    Raises:
        ConfigError: no such table; names the nearest one.
    """
    return cast(TableModule, _load(tables, name, "table"))


def figure(name: str) -> FigureModule:
    """Return the builder of a figure.

    Raises:
        ConfigError: no such figure; names the nearest one.
    """
    return cast(FigureModule, _load(figures, name, "figure"))


def _names(package: ModuleType) -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(package.__path__))


def _load(package: ModuleType, name: str, kind: str) -> ModuleType:
    known = _names(package)
    if name not in known:
        raise ConfigError(f"unknown {kind} {name!r}; {nearest(name, known)}")
    return import_module(f"{package.__name__}.{name}")
