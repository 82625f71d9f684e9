"""Figure 2b: gradients of low- and of high-probability tokens by off-policy degree."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from acpo.probes.records import GradientReport
from acpo.report.probe_panels import gradient_grid
from acpo.report.sources import Results
from acpo.report.style import COLOURS, Drawing, gap_note, shared_legend

LINES = {
    "low_probability_all": ("low probability, over all tokens", COLOURS[0], "o", "-"),
    "high_probability_all": ("high probability, over all tokens", COLOURS[1], "s", "-"),
    "low_probability_selected": ("low probability, over its own tokens", COLOURS[0], "o", ":"),
    "high_probability_selected": ("high probability, over its own tokens", COLOURS[1], "s", ":"),
}


def draw(results: Results, suite: str, methods: Sequence[str] | None = None) -> Drawing:
    """Draw gradient norms against the number of updates a rollout.

    Args:
        results: Where the probes are.
        suite: Which suite.
        methods: Which methods' checkpoints; those that the study probes by default.
    """
    grid = gradient_grid(results, suite, methods, _panel, ("Updates per rollout", "Gradient norm"))
    shared_legend(grid.figure, grid.figure.get_axes(), 2)
    study = results.study
    probes, label = study.probes, study.suites[suite].label
    return Drawing(
        stem=f"figure2b_{suite}",
        title=f"Gradient norm by probability and off-policy degree, {label}",
        caption=(
            f"Norm of the {study.methods[probes.reference].label} gradient of the tokens with behavior probability "
            f"below {probes.low_probability:g} and above {probes.high_probability:g} on {label}, from the last "
            "checkpoint of each cell: as the last of so many updates from one rollout, measured on the same "
            "responses, which no update has seen. Solid: a response's mean is over all of its tokens; dotted: over "
            "the tokens kept. "
            f"Standard deviation of the ratio: {grid.each(_spreads) or 'none'}." + gap_note(grid.gaps)
        ),
        alt=f"Lines of gradient norm over updates per rollout for {label}, low- and high-probability tokens.",
        figure=grid.figure,
    )


def _panel(axes: Axes, probes: dict[int, GradientReport]) -> None:
    points = probes[min(probes)].dominance
    degrees = [point.updates for point in points]
    for name, (label, colour, marker, line) in LINES.items():
        norms = [next(g.norm for g in point.gradients if g.name == name) for point in points]
        axes.plot(degrees, norms, marker=marker, linestyle=line, color=colour, label=label)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(degrees, [str(degree) for degree in degrees])


def _spreads(report: GradientReport) -> str:
    return " ".join(f"{point.ratio_std:.3g}" for point in report.dominance)
