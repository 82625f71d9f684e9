"""Curves over training as data: every logged quantity by cell, over training seeds and seed by seed."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
import pandas as pd

from acpo.cells import grid_cells
from acpo.report.explorer.packing import short
from acpo.report.series import averages, over_seeds
from acpo.report.sources import Results

POINTS = 200
"""How many points a curve has at most; a longer one is averaged over neighbouring rollouts."""
BINS = 5


@dataclass(frozen=True)
class Quantity:
    """What is drawn: its name on the axis, and what its values are multiplied by."""

    label: str
    scale: float = 1.0


ROLLOUTS = {
    "validation": Quantity("Validation score (%)", 100),
    "reward_mean": Quantity("Training reward (mean)"),
    "response_tokens_mean": Quantity("Response length (tokens)"),
    "truncation_rate": Quantity("Truncated responses (%)", 100),
    "zero_variance_fraction": Quantity("Groups whose responses all score the same (%)", 100),
}
UPDATES = {
    "entropy": Quantity("Entropy (nats)"),
    "clip_fraction": Quantity("Clipped tokens (%)", 100),
    "clip_width_mean": Quantity("Clip width (mean)"),
    "approx_kl": Quantity("Mean of log π_old - log π"),
    "gradient_norm": Quantity("Gradient norm"),
}
BY_BIN = {
    "clip_fraction": Quantity("Clipped tokens (%)", 100),
    "gradient_std": Quantity("Standard deviation of the gradient coefficient"),
    "clip_width_low": Quantity("Clip width below 1"),
    "clip_width_high": Quantity("Clip width above 1"),
    "ratio_std": Quantity("Standard deviation of the importance ratio"),
}

Logs = Mapping[int, pd.DataFrame]
Curve = dict[str, Any]
Curves = dict[str, Curve]
WEIGHTS = {
    **dict.fromkeys(UPDATES, "tokens"),
    **{f"bin{number}/{name}": f"bin{number}/count" for name in BY_BIN for number in range(1, BINS + 1)},
}
"""Tokens behind each value that is logged once an update."""


def training_curves(results: Results) -> tuple[dict[str, Curves], dict[str, dict[str, list[Curve]]]]:
    """Return the curves of every trained cell that has logs.

    Returns:
        By cell and quantity, the curve of what training logs once a rollout or an update; and one curve a probability
        bin, empty where nothing was measured.
    """
    curves, dynamics = {}, {}
    for cell in grid_cells(results.study):
        if cell.is_base:
            continue
        updates = {seed: averages(log, WEIGHTS) for seed, log in results.metrics(cell).items()}
        curves[str(cell)] = _learning(results.rollouts(cell), updates)
        dynamics[str(cell)] = _by_bin(updates)
    return _made(curves), _made(dynamics)


def _learning(rollouts: Logs, updates: Logs) -> Curves:
    found = {name: curve(rollouts, name, what) for name, what in ROLLOUTS.items()}
    return _made(found | {name: curve(updates, name, what) for name, what in UPDATES.items()})


def _by_bin(updates: Logs) -> dict[str, list[Curve]]:
    found = {
        name: [curve(updates, f"bin{number}/{name}", what) for number in range(1, BINS + 1)]
        for name, what in BY_BIN.items()
    }
    return {name: curves for name, curves in found.items() if any(curves)}


def _made(found: dict[str, Any]) -> dict[str, Any]:
    return {name: curves for name, curves in found.items() if curves}


def curve(logs: Logs, column: str, what: Quantity) -> Curve:
    """Return a curve with `POINTS` points at most.

    Args:
        logs: By training seed, one row a rollout.
        column: What to draw.
        what: How it is scaled.

    Returns:
        `x` (rollouts), `mean`, `low`, `high` over the training seeds that have the rollout, and `seeds`; empty
        where nothing was measured.
    """
    frame = over_seeds(logs, column)
    if frame.empty:
        return {}
    for seed, log in logs.items():
        if column in log:
            frame[seed] = log.set_index("rollout")[column].astype(float)
    frame = thin(frame * what.scale, POINTS)
    lines = {name: [short(value) for value in frame[name]] for name in frame}
    shared = {name: lines.pop(name) for name in ("mean", "low", "high")}
    return {"x": [short(rollout) for rollout in frame.index], **shared, "seeds": lines}


def thin(frame: pd.DataFrame, limit: int) -> pd.DataFrame:
    """Average as few neighbouring rows together, index included, as leave `limit` rows at most."""
    size = ceil(len(frame) / limit)
    if size == 1:
        return frame
    groups = np.arange(len(frame)) // size
    thinned = frame.groupby(groups).mean()
    thinned.index = pd.Index(pd.Series(frame.index).groupby(groups).mean().to_numpy(), name=frame.index.name)
    return thinned
