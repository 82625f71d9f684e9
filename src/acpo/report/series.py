"""Curves over training: seeds aligned by rollout, their mean and their range."""

from collections.abc import Mapping

import numpy as np
import pandas as pd


def over_seeds(logs: Mapping[int, pd.DataFrame], column: str) -> pd.DataFrame:
    """Align a per-rollout column over seeds.

    Args:
        logs: By seed, one row per rollout with a column `rollout`.
        column: What to take; rows where it is NaN (not measured at that rollout) are left out.

    Returns:
        Columns `mean`, `low`, `high` over the seeds that have the rollout, indexed by rollout; empty without
        data.
    """
    seeds = {
        seed: log.set_index("rollout")[column].astype(float).dropna()
        for seed, log in logs.items()
        if column in log.columns
    }
    if not any(len(series) for series in seeds.values()):
        return pd.DataFrame({"mean": [], "low": [], "high": []}, dtype=float)
    wide = pd.DataFrame(seeds).sort_index()
    return pd.DataFrame({"mean": wide.mean(axis=1), "low": wide.min(axis=1), "high": wide.max(axis=1)})


def by_rollout(updates: pd.DataFrame, column: str, weight: str) -> pd.DataFrame:
    """Average a per-update column over the updates of each rollout, weighted by token count.

    Updates without a value (an empty bin) do not take part; a rollout without any is NaN.

    Args:
        updates: One row per update with a column `rollout`.
        column: What to average.
        weight: The column that holds the number of tokens behind each value.
    """
    if column not in updates.columns or weight not in updates.columns:
        return pd.DataFrame({"rollout": [], column: []}, dtype=float)
    values = updates[column].astype(float)
    weights = updates[weight].astype(float).where(values.notna(), 0.0)
    sums = (
        pd.DataFrame({"rollout": updates["rollout"], "value": values.fillna(0.0) * weights, "weight": weights})
        .groupby("rollout")[["value", "weight"]]
        .sum()
    )
    mean = sums["value"] / sums["weight"].where(sums["weight"] > 0, np.nan)
    return mean.rename(column).reset_index()


def smooth(curve: pd.DataFrame, window: int) -> pd.DataFrame:
    """Return the centred moving average over `window` rollouts, shorter at the ends."""
    return curve.rolling(window, center=True, min_periods=1).mean()
