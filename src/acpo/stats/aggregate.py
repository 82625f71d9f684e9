"""Scores over many configurations: interquartile mean and performance profiles (Agarwal et al. 2021)."""

import numpy as np
from scipy import stats


def interquartile_mean(scores: np.ndarray) -> np.ndarray:
    """Return the mean of the middle half of the last axis' scores (a quarter, rounded down, is cut at each end)."""
    return stats.trim_mean(scores, 0.25, axis=-1)


def stratified_resamples(scores: np.ndarray, resamples: int, rng: np.random.Generator) -> np.ndarray:
    """Draw each configuration's runs with replacement.

    Args:
        scores: [runs, configurations].
        resamples: How many.
        rng: Draws the runs.

    Returns:
        [resamples, runs x configurations].
    """
    runs, configurations = scores.shape
    drawn = rng.integers(0, runs, (resamples, runs, configurations))
    return np.take_along_axis(scores[None], drawn, axis=1).reshape(resamples, -1)


def performance_profile(scores: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Return the fraction of scores above each threshold.

    Args:
        scores: [..., runs x configurations].
        thresholds: [thresholds].

    Returns:
        [..., thresholds].
    """
    ordered = np.sort(scores, axis=-1)
    above = [(ordered > threshold).mean(-1) for threshold in thresholds]
    return np.stack(above, axis=-1)
