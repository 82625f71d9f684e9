"""Figure 3: mean performance against stability across regimes, one point a method."""

import math
from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from acpo.cells import Cell, cell_seeds
from acpo.config import Study
from acpo.report import published
from acpo.report.grid import PANELS, Kind
from acpo.report.published import AVERAGE
from acpo.report.sources import Results, extreme_regimes
from acpo.report.style import Drawing, method_styles, say_empty, shared_legend

Point = tuple[float, float]
"""Mean over both regimes in percent; off-policy minus near on-policy in points."""


def draw(results: Results, methods: Sequence[str] | None = None) -> Drawing:
    """Draw each method's mean accuracy against its change from the least to the most off-policy regime.

    Args:
        results: Where the cells are.
        methods: Which methods; those of the grid by default.
    """
    study = results.study
    methods = list(methods or study.grid.methods)
    regimes = extreme_regimes(study)
    figure = Figure(figsize=(9.0, 4.4), layout="constrained")
    panels = figure.subplots(1, len(PANELS), sharex=True, sharey=True, squeeze=False)[0]
    gaps: list[str] = []
    for axes, (kind, label) in zip(panels, PANELS.items(), strict=True):
        found = {method: stability(results, method, kind, regimes) for method in methods} if regimes else {}
        theirs = {m: published_stability(study, m, regimes) for m in methods} if regimes and kind == "best" else {}
        _panel(axes, study, found, theirs)
        axes.set(title=label, xlabel="Mean accuracy over both regimes (%)")
        gaps += [f"{study.methods[method].label}, {kind}" for method, points in found.items() if not points]
    panels[0].set_ylabel("Off-policy minus near on-policy (points)")
    shared_legend(figure, list(panels), 4)
    names = ", ".join(study.methods[method].label for method in methods)
    return Drawing(
        stem="figure3",
        title="Performance against cross-regime stability",
        caption=_caption(study, regimes, gaps),
        alt=f"Scatter of mean accuracy against the change between regimes, one marker a method: {names}.",
        figure=figure,
    )


def stability(results: Results, method: str, kind: Kind, regimes: tuple[str, str]) -> dict[int, Point]:
    """Return a method's point for each training seed that has every suite and benchmark in both regimes.

    Each suite of the grid counts equally, and so does each benchmark within it: the averaging that gives the drops
    of Sec. 5.2.

    Args:
        results: Where the cells are.
        method: Which method.
        kind: Which checkpoints.
        regimes: The least and the most off-policy one.
    """
    study = results.study

    def score(seed: int) -> Callable[[str, str], float | None]:
        return lambda suite, regime: _suite_score(results, Cell(suite, method, regime), kind, seed)

    seeds = cell_seeds(study, Cell(study.grid.suites[0], method, regimes[0]))
    points = {seed: _point(study, regimes, score(seed)) for seed in seeds}
    return {seed: point for seed, point in points.items() if point}


def published_stability(study: Study, method: str, regimes: tuple[str, str]) -> Point | None:
    """Return the point of the paper's Tables 1 and 2 for the suites of the grid; None where it lacks one of them."""

    def score(suite: str, regime: str) -> float | None:
        keys = list(study.suites[suite].benchmarks)
        number = published.score(Cell(suite, method, regime), AVERAGE if len(keys) > 1 else keys[0])
        return number.value if number else None

    return _point(study, regimes, score)


def _point(study: Study, regimes: tuple[str, str], score: Callable[[str, str], float | None]) -> Point | None:
    means = []
    for regime in regimes:
        values = [value for suite in study.grid.suites if (value := score(suite, regime)) is not None]
        if len(values) < len(study.grid.suites):
            return None
        means.append(100 * math.fsum(values) / len(values))
    near, off = means
    return (near + off) / 2, off - near


def _suite_score(results: Results, cell: Cell, kind: Kind, seed: int) -> float | None:
    result = results.cell(cell)
    values = [
        found.avg_at_k
        for key in results.study.suites[cell.suite].benchmarks
        if result and key in result.benchmarks and kind in result.benchmarks[key].checkpoints
        for found in result.benchmarks[key].checkpoints[kind].seeds
        if found.seed == seed
    ]
    complete = len(values) == len(results.study.suites[cell.suite].benchmarks)
    return math.fsum(values) / len(values) if complete else None


def _panel(axes: Axes, study: Study, found: dict[str, dict[int, Point]], theirs: dict[str, Point | None]) -> None:
    styles = method_styles(study.grid.methods, list(found))
    axes.axhline(0, color="#555555", linewidth=0.8)
    for method, points in found.items():
        colour, marker = styles[method]["color"], styles[method]["marker"]
        if points:
            xs, ys = zip(*points.values(), strict=True)
            axes.plot(xs, ys, marker, markersize=4, color=colour, alpha=0.45)
            mean = (math.fsum(xs) / len(xs), math.fsum(ys) / len(ys))
            for x, y in points.values():
                axes.plot([mean[0], x], [mean[1], y], color=colour, linewidth=0.7, alpha=0.45)
            axes.plot(*mean, marker, markersize=9, color=colour, linestyle="", label=study.methods[method].label)
        if published_point := theirs.get(method):
            axes.plot(*published_point, marker, markersize=9, markerfacecolor="none", color=colour, linestyle="")
    if not any(found.values()) and not any(theirs.values()):
        say_empty(axes)


def _caption(study: Study, regimes: tuple[str, str] | None, gaps: list[str]) -> str:
    if regimes is None:
        return "The grid has no two regimes that differ in updates a rollout."
    near, off = (study.regimes[regime].label for regime in regimes)
    parts = [
        f"Mean accuracy over {near} and {off}, and {off} minus {near}: further right is better, nearer to 0 is more "
        "stable. Large markers: means over training seeds; small ones: each seed. Suites count equally, and so do the "
        "benchmarks of a suite: the averaging that gives the drops of Sec. 5.2.",
        "Hollow: the paper's Tables 1 and 2." if set(study.grid.suites) <= set(published.SUITES) else "",
        published.absence_note(study, study.grid.suites),
        f"Missing: {'; '.join(gaps)}." if gaps else "",
    ]
    return " ".join(part for part in parts if part)
