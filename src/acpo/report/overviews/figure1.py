"""Figure 1 (c): how much better ACPO is than its baselines, by task and regime."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from acpo.cells import Cell
from acpo.config import Study
from acpo.report import published
from acpo.report.grid import PANELS, Kind
from acpo.report.sources import Results
from acpo.report.style import Drawing, bar_style, say_empty, shared_legend
from acpo.stats.records import CHECKPOINTS_ONLY, ComparisonResult

TREATMENT = "acpo"
BASELINES = ("dapo", "cispo")
WIDTH = 0.8
"""Of the bars of one task and regime together, of the room for them."""


@dataclass(frozen=True)
class Setting:
    """A task-regime setting: a benchmark of a suite in a regime."""

    suite: str
    benchmark: str
    regime: str

    def label(self, study: Study) -> str:
        """Name it on three lines at most."""
        suite = study.suites[self.suite]
        parts = [suite.label, *([suite.benchmarks[self.benchmark].label] if len(suite.benchmarks) > 1 else [])]
        return "\n".join([*parts, study.regimes[self.regime].label])


def draw(results: Results, methods: Sequence[str] | None = None) -> Drawing:
    """Draw ACPO's differences to baselines in every setting of the grid, best checkpoints above last ones.

    Args:
        results: Where the statistics are.
        methods: Which baselines; DAPO and CISPO by default, as in the paper.
    """
    study = results.study
    baselines = [name for name in methods or BASELINES if name in study.methods and name != TREATMENT]
    settings = [
        Setting(suite, benchmark, regime)
        for suite in study.grid.suites
        for benchmark in study.suites[suite].benchmarks
        for regime in study.grid.regimes
    ]
    found = _comparisons(results)
    figure = Figure(figsize=(min(max(5.5, 1.2 + 0.75 * len(settings)), 11.0), 5.6), layout="constrained")
    panels = figure.subplots(len(PANELS), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (kind, label) in zip(panels, PANELS.items(), strict=True):
        _panel(axes, study, settings, baselines, {key: item for key, item in found.items() if key[-1] == kind}, kind)
        axes.set_title(label)
    panels[-1].set_xticks(range(len(settings)), [setting.label(study) for setting in settings])
    panels[-1].tick_params(axis="x", labelrotation=90 if len(settings) > 8 else 0)
    shared_legend(figure, list(panels), len(baselines) + 1)
    names = [study.methods[name].label for name in baselines]
    return Drawing(
        stem="figure1",
        title=f"Improvement of {study.methods[TREATMENT].label if TREATMENT in study.methods else TREATMENT}",
        caption=_caption(study, settings, baselines, found),
        alt=f"Bars of the difference to {' and '.join(names)} in points, with intervals, by task and regime.",
        figure=figure,
    )


Found = dict[tuple[str, str, str], ComparisonResult]
"""By treatment cell and benchmark (`cell benchmark`), baseline and kind of checkpoint."""


def _comparisons(results: Results) -> Found:
    statistics = results.statistics()
    return {
        (f"{item.treatment_cell} {item.benchmark}", item.baseline, item.checkpoint): item
        for item in (statistics.comparisons if statistics else [])
        if item.treatment == TREATMENT
    }


def _key(setting: Setting, baseline: str, kind: Kind) -> tuple[str, str, str]:
    return f"{Cell(setting.suite, TREATMENT, setting.regime)} {setting.benchmark}", baseline, kind


def _panel(axes: Axes, study: Study, settings: list[Setting], baselines: list[str], found: Found, kind: Kind) -> None:
    order = list(dict.fromkeys([*study.grid.methods, *baselines]))
    width = WIDTH / max(len(baselines), 1)
    shifts = [(number - (len(baselines) - 1) / 2) * width for number in range(len(baselines))]
    for shift, baseline in zip(shifts, baselines, strict=True):
        keys = [_key(setting, baseline, kind) for setting in settings]
        made = [(x + shift, found[key]) for x, key in enumerate(keys) if key in found]
        _bars(axes, made, width, f"over {study.methods[baseline].label}", order.index(baseline))
    if kind == "best":
        points = [
            (x + shift, difference)
            for shift, baseline in zip(shifts, baselines, strict=True)
            for x, setting in enumerate(settings)
            if (difference := _published(setting, baseline)) is not None
        ]
        _diamonds(axes, points)
    axes.axhline(0, color="black", linewidth=0.8)
    axes.grid(axis="x", visible=False)
    axes.set_axisbelow(True)
    axes.set(ylabel="Difference (points)", xlim=(-0.6, len(settings) - 0.4))
    if not found:
        say_empty(axes)


def _bars(axes: Axes, made: list[tuple[float, ComparisonResult]], width: float, label: str, index: int) -> None:
    if not made:
        return
    axes.bar(
        [x for x, _ in made],
        [100 * item.inference.difference for _, item in made],
        0.92 * width,
        label=label,
        **bar_style(index),
    )
    for x, item in made:
        interval = item.inference.interval
        if interval is not None:
            axes.plot([x, x], [100 * interval.low, 100 * interval.high], color="black", linewidth=1.2, marker="_")


def _published(setting: Setting, baseline: str) -> float | None:
    """Return the paper's difference in points, None where it has none."""
    scores = [
        published.score(Cell(setting.suite, method, setting.regime), setting.benchmark)
        for method in (TREATMENT, baseline)
    ]
    values = [score.value for score in scores if score and score.value is not None]
    return 100 * (values[0] - values[1]) if len(values) == 2 else None


def _diamonds(axes: Axes, points: list[tuple[float, float]]) -> None:
    if points:
        axes.plot(
            *zip(*points, strict=True), "D", markersize=5, markerfacecolor="white", markeredgecolor="black",
            label="published", linestyle="", zorder=3,
        )  # fmt: skip


def _caption(study: Study, settings: list[Setting], baselines: list[str], found: Found) -> str:
    checkpoints = any(item.inference.note for item in found.values())
    missing = [
        f"{Cell(s.suite, TREATMENT, s.regime)} against {baseline} on {s.benchmark}"
        for s in settings
        for baseline in baselines
        if _key(s, baseline, "last") not in found
    ]
    has_paper = any(suite in published.SUITES for suite in study.grid.suites)
    parts = [
        f"Difference of mean accuracy, positive where ACPO is better, with {100 * (1 - study.statistics.alpha):g} % "
        "intervals of the hierarchical bootstrap over training seeds, questions and samples (docs/statistics.md).",
        f"One training seed: {CHECKPOINTS_ONLY}." if checkpoints else "",
        "Diamonds: differences of the paper's Tables 1 and 2." if has_paper else "",
        published.absence_note(study, study.grid.suites),
        f"Not compared: {'; '.join(missing)}." if missing else "",
    ]
    return " ".join(part for part in parts if part)
