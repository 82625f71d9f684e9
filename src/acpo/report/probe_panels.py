"""A grid of panels of token probes: one row a method, one column a regime."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from acpo.cells import Cell, cell_seeds
from acpo.probes.records import TokenProbe
from acpo.report.sources import Results
from acpo.report.style import say_empty

METHODS = ("dapo",)
Probes = dict[int, TokenProbe]
"""By training seed."""


@dataclass(frozen=True)
class ProbeGrid:
    """A figure with one panel a method and regime, and what its caption must say."""

    figure: Figure
    probes: dict[Cell, Probes]
    gaps: list[str]

    def each(self, say: Callable[[TokenProbe], str]) -> str:
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
) -> ProbeGrid:
    """Draw a panel for every method and regime.

    Args:
        results: Where the probes are.
        suite: Which suite.
        methods: Which methods; DAPO by default, or the grid's first where the study has no DAPO.
        draw: Draws the probes of one cell; not called where there are none.
        labels: Of the x and the y axis.
    """
    study = results.study
    methods = list(methods or [m for m in METHODS if m in study.methods] or study.grid.methods[:1])
    regimes = list(study.grid.regimes)
    figure = Figure(figsize=(0.6 + 4.3 * len(regimes), 0.5 + 3.5 * len(methods)), layout="constrained")
    grid = figure.subplots(len(methods), len(regimes), sharex=True, sharey="row", squeeze=False)
    found: dict[Cell, Probes] = {}
    gaps = []
    for row, method in enumerate(methods):
        for column, regime in enumerate(regimes):
            cell, axes = Cell(suite, method, regime), grid[row][column]
            found[cell] = results.token_probes(cell)
            wanted = len(cell_seeds(study, cell))
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
