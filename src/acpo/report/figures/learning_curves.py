"""Learning curves: validation score and training reward over rollouts, one column of panels per regime."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from acpo.cells import Cell
from acpo.config import Study
from acpo.report.series import over_seeds, smooth
from acpo.report.sources import Results
from acpo.report.style import Drawing, draw_curves, gap_note, method_styles, shared_legend

SMOOTHING = 5


def draw(results: Results, suite: str, methods: Sequence[str] | None = None) -> Drawing:
    """Draw a suite's learning curves.

    Args:
        results: Where the logs are.
        suite: Which suite.
        methods: Which methods to draw; those of the grid by default.
    """
    study = results.study
    methods = list(methods or study.grid.methods)
    regimes = study.grid.regimes
    figure = Figure(figsize=(1.2 + 4.2 * len(regimes), 5.6), layout="constrained")
    grid = figure.subplots(2, len(regimes), sharex="col", sharey="row", squeeze=False)
    for column, regime in enumerate(regimes):
        _regime(grid[0][column], grid[1][column], results, (suite, regime), methods)
    grid[0][0].set_ylabel(f"Validation avg@{study.suites[suite].validation.samples} (%)")
    grid[1][0].set_ylabel("Training reward (mean)")
    shared_legend(figure, list(grid.flat), min(len(methods), 3 * len(regimes)))
    return Drawing(
        stem=f"learning_curves_{suite}",
        title=f"Learning curves, {study.suites[suite].label}",
        caption=_caption(study, suite) + gap_note(results.log_gaps(suite, methods)),
        alt=_alt(study, suite, methods),
        figure=figure,
    )


def _regime(top: Axes, bottom: Axes, results: Results, place: tuple[str, str], methods: list[str]) -> None:
    study, (suite, regime) = results.study, place
    styles = method_styles(study.grid.methods, methods)
    labels = {method: study.methods[method].label for method in methods}
    logs = {method: results.rollouts(Cell(suite, method, regime)) for method in methods}
    draw_curves(top, {m: over_seeds(log, "validation") * 100 for m, log in logs.items()}, labels, styles)
    rewards = {m: smooth(over_seeds(log, "reward_mean"), SMOOTHING) for m, log in logs.items()}
    draw_curves(bottom, rewards, labels, {m: {**style, "marker": ""} for m, style in styles.items()})
    updates = study.regime(suite, regime).updates_per_rollout
    top.set_title(f"{study.regimes[regime].label} ({updates} updates per rollout)")
    bottom.set_xlabel("Rollout")


def _caption(study: Study, suite: str) -> str:
    validation = study.suites[suite].validation
    return (
        f"Learning curves on {study.suites[suite].label}. Top: avg@{validation.samples} on the "
        f"{validation.split} split, as measured, without smoothing. Bottom: mean reward of the sampled "
        f"responses, moving average over {SMOOTHING} rollouts. Lines: mean over training seeds; bands: "
        f"smallest to largest seed. {_sizes(study, suite)}"
    )


def _sizes(study: Study, suite: str) -> str:
    sizes = {r: study.regime(suite, r).train_batch_size for r in study.grid.regimes}
    listed = ", ".join(f"{size} ({study.regimes[regime].label})" for regime, size in sizes.items())
    return f"Prompts per rollout: {listed}."


def _alt(study: Study, suite: str, methods: list[str]) -> str:
    names = ", ".join(study.methods[method].label for method in methods)
    regimes = " and ".join(study.regimes[regime].label for regime in study.grid.regimes)
    return (
        f"Line charts for {study.suites[suite].label}, one column per regime ({regimes}): validation score "
        f"above, training reward below, over rollouts, for {names}."
    )
