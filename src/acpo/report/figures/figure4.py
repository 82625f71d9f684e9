"""Figure 4: the variance of the importance ratio against 1 - pi (App. C.1.3)."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from acpo.probes.records import ExponentFit, TokenProbe
from acpo.report.probe_panels import Probes, probe_grid
from acpo.report.sources import Results
from acpo.report.style import COLOURS, MARKERS, Drawing, gap_note, say_empty, shared_legend


def draw(results: Results, suite: str, methods: Sequence[str] | None = None) -> Drawing:
    """Draw the binned variances with the fitted power law and the band of the softmax model.

    Args:
        results: Where the probes are.
        suite: Which suite.
        methods: Which methods to draw; those that the study probes by default.
    """
    grid = probe_grid(results, suite, methods, _panel, ("1 − π", "Var(ρ)"))
    shared_legend(grid.figure, grid.figure.get_axes(), 3)
    label = results.study.suites[suite].label
    return Drawing(
        stem=f"figure4_{suite}",
        title=f"Variance of the importance ratio, {label}",
        caption=(
            f"Variance of the importance ratio on {label} in 20 bins of behavior probability, each at the root mean "
            "square of its 1 − π, all stored rollouts of a run together. Line: what the power law fitted in "
            "logarithms, weighted by tokens, gives for each bin; dashed: κ²(1 − π)² with κ² = mean Var(ρ) over mean "
            "(1 − π)² (Eq. 50); shaded: the inner bounds of Eq. 25 around it, with the lower bound of "
            "the mean of S that the entropies give; all three for the smallest seed. Exponent ± standard "
            f"error (R²; in brackets with bins at their centres): {grid.each(_exponents) or 'none'}."
            + gap_note(grid.gaps)
        ),
        alt=f"Log-log scatter of ratio variance over one minus probability for {label}, with a fitted line and a band.",
        figure=grid.figure,
    )


def _panel(axes: Axes, probes: Probes) -> None:
    axes.set(xscale="log", yscale="log")
    for marker, (seed, probe) in zip(MARKERS, probes.items(), strict=False):
        x, y = _points(probe.pooled.exponent, "variance")
        axes.plot(x, y, marker, color=COLOURS[3], markerfacecolor="white", label=f"seed {seed}")
    fit = probes[min(probes)].pooled.exponent
    if not _points(fit, "variance")[0]:
        say_empty(axes)
        return
    axes.plot(*_points(fit, "fitted"), color=COLOURS[1], label="fitted power law")
    if fit.kappa_squared is not None:
        distance = np.geomspace(min(_points(fit, "variance")[0]), 1, 50)
        model = fit.kappa_squared * distance**2
        axes.plot(distance, model, color=COLOURS[0], linestyle="--", label="κ²(1 − π)²")
        if fit.band is not None:
            low, high = (edge * model for edge in fit.band)
            axes.fill_between(distance, low, high, color=COLOURS[6], alpha=0.35, lw=0, label="inner bounds of Eq. 25")


def _points(fit: ExponentFit, what: str) -> tuple[list[float], list[float]]:
    pairs = [(b.distance, getattr(b, what)) for b in fit.bins]
    known = sorted((x, y) for x, y in pairs if x is not None and y is not None)
    return [x for x, _ in known], [y for _, y in known]


def _exponents(probe: TokenProbe) -> str:
    fit = probe.pooled.exponent
    centres = fit.exponent_at_centres.value
    plain = "–" if centres is None else f"{centres:.2f}"
    if fit.exponent.value is None or fit.standard_error is None or fit.r_squared is None:
        return f"{fit.exponent.note} [{plain}]"
    return f"{fit.exponent.value:.2f} ± {fit.standard_error:.2f} ({fit.r_squared:.2f}) [{plain}]"
