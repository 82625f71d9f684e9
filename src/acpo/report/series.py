"""Curves over training: seeds aligned by rollout, their mean and their range."""

from collections.abc import Mapping

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
    """Average a per-update column over the updates of each rollout (see `averages`), in columns rollout and it."""
    found = averages(updates, {column: weight})
    return found if column in found else pd.DataFrame({"rollout": [], column: []}, dtype=float)


def averages(updates: pd.DataFrame, weights: Mapping[str, str]) -> pd.DataFrame:
    """Average per-update columns over the updates of each rollout, weighted by token count.

    Updates without a value (an empty bin) do not take part; a rollout without any is NaN.

    Args:
        updates: One row per update with a column `rollout`.
        weights: By column to average, the column that holds the number of tokens behind each value.

    Returns:
        The column `rollout`, and those to average that the log has.
    """
    there = {name: weight for name, weight in weights.items() if {name, weight} <= set(updates.columns)}
    values = updates[list(there)].astype(float)
    tokens = updates[list(there.values())].astype(float).set_axis(values.columns, axis=1).where(values.notna(), 0.0)
    summed = values.fillna(0.0).mul(tokens).groupby(updates["rollout"]).sum()
    counted = tokens.groupby(updates["rollout"]).sum()
    return (summed / counted.where(counted > 0)).reset_index()


def smooth(curve: pd.DataFrame, window: int) -> pd.DataFrame:
    """Return the centred moving average over `window` rollouts, shorter at the ends."""
    return curve.rolling(window, center=True, min_periods=1).mean()
