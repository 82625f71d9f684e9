"""Ranks of methods over configurations, Friedman's test and Nemenyi's critical difference (Demsar 2006)."""

import math
from typing import Literal, NamedTuple

import numpy as np
from scipy import stats

# Means of counts reach the same value by different sums: rounded to this many decimals they tie.
DECIMALS = 12


class Friedman(NamedTuple):
    """Statistic, degrees of freedom, p."""

    statistic: float
    df: int
    p: float


def ranks(scores: np.ndarray, ties: Literal["min", "average"]) -> np.ndarray:
    """Rank methods on every configuration; 1 is the highest score.

    Args:
        scores: [configurations, methods], or with further axes before them.
        ties: `min`: tied methods share the best of their places; `average`: its mean.

    Returns:
        Ranks of the same shape.
    """
    return stats.rankdata(-np.round(scores, DECIMALS), method=ties, axis=-1)


def friedman(scores: np.ndarray) -> Friedman | None:
    """Test whether all methods rank alike (ties averaged); None with fewer than three methods or two configurations.

    Args:
        scores: [configurations, methods].
    """
    configurations, methods = scores.shape
    rounded = np.round(scores, DECIMALS)
    if methods < 3 or configurations < 2 or (rounded == rounded[:, :1]).all():
        return None
    found = stats.friedmanchisquare(*rounded.T)
    return Friedman(float(found.statistic), methods - 1, float(found.pvalue))


def critical_difference(methods: int, configurations: int, alpha: float) -> float:
    """Return Nemenyi's critical difference of two average ranks.

    Args:
        methods: At least 2.
        configurations: At least 1.
        alpha: Level of the test over all pairs.
    """
    quantile = float(stats.studentized_range.isf(alpha, methods, np.inf)) / math.sqrt(2)
    return quantile * math.sqrt(methods * (methods + 1) / (6 * configurations))
