"""How the importance ratio spreads by behavior probability (Fig. 2a), and the off-policy degree (Eq. 6)."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from acpo.probes.records import Dispersion, Estimate, RatioBin, UpdateDegree
from acpo.probes.token_store import bin_numbers

Array = NDArray[np.float64]
BINS = 5  # Sec. 5.1, B
DEGREE_BINS = 20  # App. C.1.3
LEVELS = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
RESAMPLES = 1000
MIN_TOKENS = 2
MIN_QUESTIONS = 10
CHUNK = 4_000_000


def ratio_dispersion(tokens: pd.DataFrame, rng: np.random.Generator) -> Dispersion:
    """Measure the spread of the ratio in `BINS` probability bins.

    The interval of a standard deviation is a percentile bootstrap over questions: tokens of one response depend on
    each other, so tokens are not resampled one by one.

    Args:
        tokens: From `read_tokens`.
        rng: Where the bootstrap draws from.
    """
    number = bin_numbers(tokens["probability"], BINS)
    intervals = _bootstrap(tokens, number, rng)
    bins = [_ratio_bin(tokens[number == b], b, interval) for b, interval in enumerate(intervals)]
    order = tokens.groupby(["run", "rollout"])["update"].rank(method="dense").astype(int)
    by_update = [
        UpdateDegree(update=int(place), tokens=len(part), degree=mean_variance(part))
        for place, part in tokens.groupby(order)
    ]
    return Dispersion(bins=bins, degree=mean_variance(tokens), by_update=by_update)


def mean_variance(tokens: pd.DataFrame) -> float | None:
    """Return the token-weighted mean over fine probability bins of the ratio's variance; None below two tokens a bin.

    Bins with a single token have no variance and are left out.
    """
    grouped = tokens.groupby(bin_numbers(tokens["probability"], DEGREE_BINS))["ratio"]
    sizes, variances = grouped.size(), grouped.var(ddof=0)
    known = sizes >= MIN_TOKENS
    return float(np.average(variances[known], weights=sizes[known])) if known.any() else None


def _ratio_bin(part: pd.DataFrame, number: int, interval: tuple[float, float] | None) -> RatioBin:
    ratio, questions = part["ratio"], part["cluster"].nunique()
    levels = ratio.quantile(list(LEVELS)) if len(part) else pd.Series(dtype=float)
    return RatioBin(
        low=number / BINS,
        high=(number + 1) / BINS,
        tokens=len(part),
        questions=questions,
        mean=float(ratio.mean()) if len(part) else None,
        std=_std(ratio, questions, interval),
        quantiles={f"{level:g}": float(value) for level, value in levels.items()},
    )


def _std(ratio: pd.Series, questions: int, interval: tuple[float, float] | None) -> Estimate:
    if len(ratio) < MIN_TOKENS:
        return Estimate(value=None, note=f"not enough data: {len(ratio)} tokens, a spread needs {MIN_TOKENS}")
    value = float(ratio.std(ddof=0))
    if questions < MIN_QUESTIONS:
        return Estimate(value=value, note=f"not enough data: {questions} questions, an interval needs {MIN_QUESTIONS}")
    if interval is None:
        return Estimate(value=value, note="not enough data: some resamples of the questions have no token here")
    return Estimate(value=value, low=interval[0], high=interval[1])


def _bootstrap(tokens: pd.DataFrame, number: np.ndarray, rng: np.random.Generator) -> list[tuple[float, float] | None]:
    """Return the 2.5 and 97.5 % points of each bin's standard deviation under resampling of questions."""
    names, cluster = np.unique(tokens["cluster"], return_inverse=True)
    clusters, cell = len(names), cluster * BINS + number
    excess = tokens["ratio"].to_numpy() - 1
    moments = [np.bincount(cell, weight, clusters * BINS) for weight in (np.ones_like(excess), excess, excess**2)]
    sums = np.stack(moments).reshape(3, clusters, BINS).astype(float)
    step = max(1, CHUNK // clusters)
    spreads = np.concatenate(
        [_resample(sums, min(step, RESAMPLES - start), rng) for start in range(0, RESAMPLES, step)]
    )
    known = np.isfinite(spreads).all(axis=0)
    ends = np.percentile(np.where(known, spreads, 0.0), [2.5, 97.5], axis=0)
    return [(float(low), float(high)) if fine else None for low, high, fine in zip(*ends, known, strict=True)]


def _resample(sums: Array, resamples: int, rng: np.random.Generator) -> Array:
    """Return (resamples, bins) standard deviations; NaN where a resample has no token of a bin."""
    clusters = sums.shape[1]
    drawn = rng.integers(clusters, size=(resamples, clusters))
    weight = np.stack([np.bincount(row, minlength=clusters) for row in drawn]).astype(float)
    count, first, second = np.einsum("rc,qcb->qrb", weight, sums, optimize=True)
    safe = np.where(count > 0, count, np.nan)
    return np.sqrt(np.maximum(second / safe - (first / safe) ** 2, 0))
