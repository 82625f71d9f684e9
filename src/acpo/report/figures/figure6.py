"""Figure 6: norm and direction of the update's parts and variants (App. F)."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from acpo.probes.records import GradientReport, VariantGradient
from acpo.report.probe_panels import gradient_grid
from acpo.report.sources import Results
from acpo.report.style import COLOURS, Drawing, gap_note, shared_legend

LABELS = {
    "low_probability_all": "low probability",
    "low_probability_selected": "low probability, own mean",
    "high_probability_all": "high probability",
    "high_probability_selected": "high probability, own mean",
    "high_entropy_all": "high entropy",
    "high_entropy_selected": "high entropy, own mean",
    "positive_advantage": "A > 0",
    "negative_advantage": "A < 0",
    "no_clip": "without clipping",
    "on_policy": "on-policy",
}


def draw(results: Results, suite: str, methods: Sequence[str] | None = None) -> Drawing:
    """Draw the mean principal angle to the whole update, with its norm beside each name.

    Args:
        results: Where the probes are.
        suite: Which suite.
        methods: Which methods' checkpoints; those that the study probes by default.
    """
    study = results.study
    names = LABELS | {name: study.methods[name].label for name in study.probes.compared}

    def panel(axes: Axes, probes: dict[int, GradientReport]) -> None:
        _panel(axes, probes[min(probes)], names)

    grid = gradient_grid(results, suite, methods, panel, ("Mean principal angle (degrees)", ""), width=6.2)
    shared_legend(grid.figure, grid.figure.get_axes(), 3)
    probes, label = study.probes, study.suites[suite].label
    degree = max(probes.updates)
    return Drawing(
        stem=f"figure6_{suite}",
        title=f"Parts and variants of the update, {label}",
        caption=(
            f"Gradients on {label} against the whole off-policy {study.methods[probes.reference].label} update, the "
            f"last of {degree} from one rollout, at the last checkpoint of each cell. Circles: mean principal angle of "
            "the attention and MLP projections; percentages: norm against the whole update. Crosses: angle between the "
            "same gradient on two halves of the responses, as large as noise makes it; line: unrelated subspaces. "
            "On-policy is the gradient of the behavior policy. Low probability is below "
            f"{probes.low_probability:g}, high above {probes.high_probability:g}, high entropy the top "
            f"{100 * probes.entropy_share:g} % of a response. {grid.each(_ranks)}. Residual of g(A>0) + g(A<0) = g: "
            f"{grid.each(_additivity) or 'none'}." + gap_note(grid.gaps)
        ),
        alt=f"Dot plots of principal angles and norms of gradient variants for {label}.",
        figure=grid.figure,
    )


def _panel(axes: Axes, report: GradientReport, names: dict[str, str]) -> None:
    shown = [variant for variant in report.variants if variant.name in names]
    for row, variant in enumerate(reversed(shown)):
        angle, noise = mean_angles(variant)
        if angle is None or noise is None:
            axes.text(45, row, "no tokens", ha="center", va="center", fontsize=8)
            continue
        first = row == 0
        axes.plot(angle, row, "o", color=COLOURS[0], label="to the whole update" if first else None)
        axes.plot(noise, row, "x", color=COLOURS[1], label="between two halves" if first else None)
        percent = "" if variant.norm_percent is None else f"{variant.norm_percent:,.0f} %"
        axes.text(89, row, percent, ha="right", va="center", fontsize=8)
    if report.random_angle is not None:
        axes.axvline(report.random_angle, color="#777777", linestyle="--", linewidth=1, label="unrelated subspaces")
    axes.set_yticks(range(len(shown)), [names[variant.name] for variant in reversed(shown)])
    axes.set_xlim(0, 90)


def mean_angles(variant: VariantGradient) -> tuple[float | None, float | None]:
    """Return the mean over matrices of the angle to the reference and of the split-half angle, None without any."""
    count = len(variant.matrices)
    if not count:
        return None, None
    return (
        sum(matrix.angle for matrix in variant.matrices) / count,
        sum(matrix.split_half_angle for matrix in variant.matrices) / count,
    )


def _ranks(report: GradientReport) -> str:
    used = sorted({matrix.rank for variant in report.variants for matrix in variant.matrices})
    return f"subspace rank {', '.join(map(str, used)) or 'none'} (wanted {report.rank})"


def _additivity(report: GradientReport) -> str:
    return "–" if report.additivity is None else f"{report.additivity:.1e}"
