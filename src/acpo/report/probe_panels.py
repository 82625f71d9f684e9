"""A grid of panels of probes: one row a method, one column a regime."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from acpo.cells import Cell
from acpo.config import Study
from acpo.probes.records import GradientReport, TokenProbe
from acpo.report.sources import Results
from acpo.report.style import say_empty

Probe = TypeVar("Probe", TokenProbe, GradientReport)
Probes = dict[int, TokenProbe]
"""By training seed."""


@dataclass(frozen=True)
class ProbeGrid(Generic[Probe]):
    """A figure with one panel a method and regime, and what its caption must say."""

    figure: Figure
    probes: dict[Cell, dict[int, Probe]]
    gaps: list[str]

    def each(self, say: Callable[[Probe], str]) -> str:
        """Say something of every seed's probe, listed by cell."""
        parts = [
            f"{cell}: " + ", ".join(f"{say(probe)} (seed {seed})" for seed, probe in found.items())
            for cell, found in self.probes.items()
            if found
        ]
        return "; ".join(parts)


def probe_grid(
    results: Results,
    suite: str,
    methods: Sequence[str] | None,
    draw: Callable[[Axes, Probes], None],
    labels: tuple[str, str],
) -> ProbeGrid[TokenProbe]:
    """Draw a panel of token probes for every method and regime.

    Args:
        results: Where the probes are.
        suite: Which suite.
        methods: Which methods; by default those of the grid that the study probes, or its first.
        draw: Draws the probes of one cell; not called where there are none.
        labels: Of the x and the y axis.
    """
    study = results.study
    chosen = list(methods or _drawn(study))
    return _grid(study, suite, chosen, results.token_probes, len(study.seeds), draw, labels, 4.3)


def gradient_grid(
    results: Results,
    suite: str,
    methods: Sequence[str] | None,
    draw: Callable[[Axes, dict[int, GradientReport]], None],
    labels: tuple[str, str],
    width: float = 4.3,
) -> ProbeGrid[GradientReport]:
    """Draw a panel of gradient probes for every method and regime.

    Arguments are those of `probe_grid`; `width` is that of a panel, in inches.
    """
    study = results.study
    chosen = list(methods or _drawn(study))
    wanted = min(study.probes.seeds, len(study.seeds))
    return _grid(study, suite, chosen, results.gradient_probes, wanted, draw, labels, width)


def _drawn(study: Study) -> list[str]:
    """Return the methods that are drawn unless others are asked for."""
    return [method for method in study.probes.methods if method in study.grid.methods] or study.grid.methods[:1]


def _grid(
    study: Study,
    suite: str,
    methods: list[str],
    read: Callable[[Cell], dict[int, Probe]],
    wanted: int,
    draw: Callable[[Axes, dict[int, Probe]], None],
    labels: tuple[str, str],
    width: float,
) -> ProbeGrid[Probe]:
    regimes = list(study.grid.regimes)
    figure = Figure(figsize=(0.6 + width * len(regimes), 0.5 + 3.5 * len(methods)), layout="constrained")
    grid = figure.subplots(len(methods), len(regimes), sharex=True, sharey="row", squeeze=False)
    found: dict[Cell, dict[int, Probe]] = {}
    gaps = []
    for row, method in enumerate(methods):
        for column, regime in enumerate(regimes):
            cell, axes = Cell(suite, method, regime), grid[row][column]
            found[cell] = read(cell)
            if len(found[cell]) < wanted:
                gaps.append(f"{cell} ({len(found[cell])} of {wanted} seeds)")
            updates = study.regime(suite, regime).updates_per_rollout
            axes.set_title(f"{study.methods[method].label}, {study.regimes[regime].label} ({updates} updates)")
            axes.set_xlabel(labels[0])
            if found[cell]:
                draw(axes, found[cell])
            else:
                say_empty(axes)
        grid[row][0].set_ylabel(labels[1])
    return ProbeGrid(figure, found, gaps)
