"""Figure 2a: the importance ratio by behavior probability."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from acpo.probes.records import RatioBin
from acpo.report.probe_panels import Probes, probe_grid
from acpo.report.sources import Results
from acpo.report.style import COLOURS, Drawing, gap_note, shared_legend

BOX = {"whislo": "0.05", "q1": "0.25", "med": "0.5", "q3": "0.75", "whishi": "0.95"}
ENDS = ("0.01", "0.99")


def draw(results: Results, suite: str, methods: Sequence[str] | None = None) -> Drawing:
    """Draw the quantiles of the ratio in each probability bin.

    Args:
        results: Where the probes are.
        suite: Which suite.
        methods: Which methods to draw; those that the study probes by default.
    """
    grid = probe_grid(results, suite, methods, _panel, ("Behavior probability π", "Importance ratio ρ"))
    shared_legend(grid.figure, grid.figure.get_axes(), 3)
    label = results.study.suites[suite].label
    spreads = grid.each(lambda probe: " ".join(_spread(b) for b in probe.pooled.dispersion.bins))
    return Drawing(
        stem=f"figure2a_{suite}",
        title=f"Importance ratio by probability, {label}",
        caption=(
            f"Importance ratio of the tokens of the stored rollouts on {label}, by behavior probability. Boxes: "
            "quartiles; whiskers: 5 and 95 %; crosses: 1 and 99 %; the smallest training seed. Standard deviation in "
            f"the bins from left to right, with 95 % bootstrap intervals over questions: {spreads or 'none'}."
            + gap_note(grid.gaps)
        ),
        alt=f"Box plots of the importance ratio for {label} in five probability bins, one panel per method and regime.",
        figure=grid.figure,
    )


def _panel(axes: Axes, probes: Probes) -> None:
    bins = probes[min(probes)].pooled.dispersion.bins
    filled = [b for b in bins if b.quantiles]
    centres = [(b.low + b.high) / 2 for b in filled]
    axes.bxp(
        [{"fliers": [], **{key: b.quantiles[level] for key, level in BOX.items()}} for b in filled],
        positions=centres,
        widths=[0.6 * (b.high - b.low) for b in filled],
        showfliers=False,
        patch_artist=True,
        boxprops={"facecolor": COLOURS[6], "linewidth": 1},
        medianprops={"color": "black", "linewidth": 1.6},
        manage_ticks=False,
    )
    for level in ENDS:
        shown = "1 and 99 % of tokens" if level == ENDS[0] else None
        axes.plot(centres, [b.quantiles[level] for b in filled], "x", color=COLOURS[1], markersize=6, label=shown)
    axes.axhline(1, color="#777777", linewidth=0.8)
    axes.set_xlim(0, 1)


def _spread(ratio_bin: RatioBin) -> str:
    std = ratio_bin.std
    if std.value is None:
        return "–"
    interval = "" if std.low is None or std.high is None else f" [{std.low:.3g}, {std.high:.3g}]"
    return f"{std.value:.3g}{interval}"
