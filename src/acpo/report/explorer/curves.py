"""Curves over training as data: every logged quantity by cell, over training seeds and seed by seed."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
import pandas as pd

from acpo.cells import Cell, grid_cells
from acpo.report.explorer.packing import short
from acpo.report.series import by_rollout, over_seeds
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


def learning_curves(results: Results) -> dict[str, dict[str, Curve]]:
    """Return by cell and quantity the curves of what training logs once a rollout, or an update."""
    curves = {}
    for cell in _trained(results):
        rollouts, updates = results.rollouts(cell), results.metrics(cell)
        found = {name: curve(rollouts, name, what) for name, what in ROLLOUTS.items()}
        found |= {name: curve(averaged(updates, name, "tokens"), name, what) for name, what in UPDATES.items()}
        curves[str(cell)] = {name: made for name, made in found.items() if made}
    return {cell: found for cell, found in curves.items() if found}


def bin_dynamics(results: Results) -> dict[str, dict[str, list[Curve]]]:
    """Return by cell and quantity one curve a probability bin; an empty curve where nothing was measured."""
    dynamics = {}
    for cell in _trained(results):
        logs = results.metrics(cell)
        found = {name: [_bin(logs, number, name, what) for number in range(1, BINS + 1)] for name, what in
                 BY_BIN.items()}  # fmt: skip
        dynamics[str(cell)] = {name: curves for name, curves in found.items() if any(curves)}
    return {cell: found for cell, found in dynamics.items() if found}


def _trained(results: Results) -> list[Cell]:
    return [cell for cell in grid_cells(results.study) if not cell.is_base]


def _bin(logs: Logs, number: int, name: str, what: Quantity) -> Curve:
    column = f"bin{number}/{name}"
    return curve(averaged(logs, column, f"bin{number}/count"), column, what)


def averaged(logs: Logs, column: str, weight: str) -> dict[int, pd.DataFrame]:
    """Average a per-update column over each rollout's updates, weighted by tokens, by seed."""
    return {seed: by_rollout(log, column, weight) for seed, log in logs.items()}


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
