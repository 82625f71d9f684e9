"""Figure 5: probability against entropy, with clipped tokens and the bounds of App. E."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from acpo.probes.records import Quadrant, TokenProbe
from acpo.report.probe_panels import Probes, probe_grid
from acpo.report.sources import Results
from acpo.report.style import COLOURS, Drawing, gap_note, shared_legend
from acpo.theory.entropy import entropy_bounds


def draw(results: Results, suite: str, methods: Sequence[str] | None = None) -> Drawing:
    """Draw tokens by probability and entropy, clipped ones as crosses.

    Args:
        results: Where the probes are.
        suite: Which suite.
        methods: Which methods to draw; those that the study probes by default.
    """
    grid = probe_grid(results, suite, methods, _panel, ("Probability of the token", "Entropy (nats)"))
    shared_legend(grid.figure, grid.figure.get_axes(), 4)
    label = results.study.suites[suite].label
    return Drawing(
        stem=f"figure5_{suite}",
        title=f"Probability, entropy and clipping, {label}",
        caption=(
            f"Tokens of the stored rollouts on {label} under the current policy: a random draw of those that the "
            "update kept and of those that it clipped, from the smallest training seed. Lines: bounds of App. E. "
            f"Clipped of all tokens, by quadrant: {grid.each(_quadrants) or 'none'}." + gap_note(grid.gaps)
        ),
        alt=f"Scatter of token probability and entropy for {label}, clipped tokens as crosses, between two curves.",
        figure=grid.figure,
    )


def _panel(axes: Axes, probes: Probes) -> None:
    found = probes[min(probes)].pooled.entropy
    for points, style, label in (
        (found.kept_points, {"marker": ".", "color": "#b5b5b5", "markersize": 3.5}, "kept (drawn)"),
        (found.clipped_points, {"marker": "x", "color": COLOURS[1], "markersize": 5}, "clipped (drawn)"),
    ):
        if points:
            x, y = zip(*points, strict=True)
            axes.plot(x, y, linestyle="", label=label, **style)  # type: ignore[arg-type]
    p = np.linspace(0, 1, 400)
    low, high = entropy_bounds(p, found.bounds.vocabulary)
    axes.plot(p, low, color="black", linewidth=1.2, label="smallest entropy")
    if found.bounds.vocabulary is not None:
        axes.plot(p, high, color="black", linewidth=1.2, linestyle="--", label="largest entropy")
    axes.set(xlim=(0, 1), ylim=(0, 1.08 * found.entropy_limit))


def _quadrants(probe: TokenProbe) -> str:
    return ", ".join(_share(each) for each in probe.pooled.entropy.quadrants)


def _share(quadrant: Quadrant) -> str:
    clipped = "?" if quadrant.clipped is None else f"{quadrant.clipped}"
    return f"π {quadrant.probability} and {quadrant.entropy} of entropy {clipped} of {quadrant.tokens}"
