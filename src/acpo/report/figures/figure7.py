"""Figure 7: clip fraction and gradient spread over training, by behavior probability (Appendix K)."""

import re
from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from acpo.cells import Cell
from acpo.report.series import by_rollout, over_seeds
from acpo.report.sources import Results
from acpo.report.style import Drawing, draw_curves, gap_note, method_styles, shared_legend

METHODS = ("dapo", "acpo")
ROWS = {"clip_fraction": ("Clip fraction (%)", 100.0), "gradient_std": ("Gradient std", 1.0)}
BINS = 5

Logs = dict[str, dict[int, pd.DataFrame]]


def draw(results: Results, suite: str, methods: Sequence[str] | None = None) -> Drawing:
    """Draw a suite's dynamics, the most off-policy regime first.

    Args:
        results: Where the metrics are.
        suite: Which suite.
        methods: Which methods to draw; DAPO and ACPO by default, as in the paper.
    """
    study = results.study
    methods = list(methods or [method for method in METHODS if method in study.methods])
    regimes = sorted(study.grid.regimes, key=lambda name: -study.regime(suite, name).updates_per_rollout)
    figure = Figure(figsize=(10.5, 0.6 + 3.9 * len(regimes)), layout="constrained")
    parts = figure.subfigures(len(regimes), 1, squeeze=False)[:, 0]
    panels = [
        axes for part, r in zip(parts, regimes, strict=True) for axes in _regime(part, results, suite, r, methods)
    ]
    shared_legend(figure, panels, len(methods))
    label = study.suites[suite].label
    names = [study.methods[method].label for method in methods]
    return Drawing(
        stem=f"figure7_{suite}",
        title=f"Clipping and gradients by probability, {label}",
        caption=_caption(label, names) + gap_note(results.log_gaps(suite, methods)),
        alt=_alt(label, names),
        figure=figure,
    )


def _regime(part: Any, results: Results, suite: str, regime: str, methods: list[str]) -> list[Axes]:
    study = results.study
    logs: Logs = {method: results.metrics(Cell(suite, method, regime)) for method in methods}
    bins = _bins(logs)
    labels = {method: study.methods[method].label for method in methods}
    styles = {m: {**s, "marker": ""} for m, s in method_styles(study.grid.methods, methods).items()}
    grid = part.subplots(len(ROWS), len(bins), sharex=True, sharey="row", squeeze=False)
    for row, (quantity, (label, scale)) in enumerate(ROWS.items()):
        for axes, number in zip(grid[row], bins, strict=True):
            draw_curves(axes, _curves(logs, number, quantity, scale), labels, styles)
        top = grid[row][0].get_ylim()[1]
        grid[row][0].set(ylabel=label, ylim=(-0.04 * top, top))
    for top, bottom, number in zip(grid[0], grid[-1], bins, strict=True):
        top.set_title(f"π in {_interval(number, len(bins))}")
        bottom.set_xlabel("Rollout")
    updates = study.regime(suite, regime).updates_per_rollout
    part.suptitle(f"{study.regimes[regime].label} ({updates} updates per rollout)", fontsize=10.5)
    return list(grid.flat)


def _curves(logs: Logs, number: int, quantity: str, scale: float) -> dict[str, pd.DataFrame]:
    column, weight = f"bin{number}/{quantity}", f"bin{number}/count"
    curves = {}
    for method, seeds in logs.items():
        rollouts = {seed: by_rollout(log, column, weight) for seed, log in seeds.items()}
        curves[method] = over_seeds(rollouts, column) * scale
    return curves


def _bins(logs: Logs) -> list[int]:
    columns = {column for seeds in logs.values() for log in seeds.values() for column in log.columns}
    found = {int(match[1]) for column in columns if (match := re.fullmatch(r"bin(\d+)/count", column))}
    return sorted(found) or list(range(1, BINS + 1))


def _interval(number: int, bins: int) -> str:
    closing = "]" if number == bins else ")"
    return f"[{(number - 1) / bins:.2g}, {number / bins:.2g}{closing}"


def _caption(label: str, names: list[str]) -> str:
    return (
        f"Training dynamics on {label} by behavior probability π of the token, {' against '.join(names)}. "
        "In each regime, top: share of the bin's tokens that are clipped; bottom: standard deviation of the "
        "tokens' gradient coefficients in the bin. Each point is the token-weighted mean over the updates of "
        "a rollout, without smoothing. Lines: mean over training seeds; bands: smallest to largest seed. "
        "Empty bins are left out."
    )


def _alt(label: str, names: list[str]) -> str:
    return (
        f"Small multiples for {label}: one column per probability bin; for each regime a row of clip "
        f"fractions and a row of gradient standard deviations over rollouts, for {' and '.join(names)}."
    )
