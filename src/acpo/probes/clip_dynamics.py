"""Clipping and gradient spread per probability bin over training (App. K), from a run's metrics."""

import pandas as pd
import pyarrow as pa

from acpo.probes.records import BinDynamics, ClipDynamics, Estimate
from acpo.report.series import by_rollout

BINS = 5
QUANTITIES = ("count", "clip_fraction", "gradient_std")
METRICS = pa.schema(
    [("rollout", pa.int64())]
    + [(f"bin{b}/{quantity}", pa.float64()) for b in range(1, BINS + 1) for quantity in QUANTITIES]
)
"""What is needed of `metrics.parquet`."""


def clip_dynamics(metrics: pd.DataFrame) -> ClipDynamics:
    """Summarise each bin: the token-weighted mean over training, the smallest and the largest rollout.

    Here `low` and `high` of an estimate are those extremes, not an interval.

    Args:
        metrics: One row an update, with the columns of `METRICS`.
    """
    return ClipDynamics(bins=[_bin(metrics, b) for b in range(1, BINS + 1)])


def _bin(metrics: pd.DataFrame, number: int) -> BinDynamics:
    return BinDynamics(
        low=(number - 1) / BINS,
        high=number / BINS,
        tokens=int(metrics[f"bin{number}/count"].sum()),
        clip_fraction=_summary(metrics, f"bin{number}/clip_fraction", f"bin{number}/count"),
        gradient_std=_summary(metrics, f"bin{number}/gradient_std", f"bin{number}/count"),
    )


def _summary(metrics: pd.DataFrame, column: str, weight: str) -> Estimate:
    curve = by_rollout(metrics, column, weight)[column].dropna()
    if curve.empty:
        return Estimate(value=None, note="not enough data: no update has a token in this bin")
    known = metrics[column].notna()
    mean = (metrics[column] * metrics[weight])[known].sum() / metrics[weight][known].sum()
    return Estimate(value=float(mean), low=float(curve.min()), high=float(curve.max()))
