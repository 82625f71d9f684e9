"""Means over questions and training seeds with standard errors: both are samples, and they are crossed.

Every training seed answers the same questions. The variance of a mean is estimated by the mean squares of the two-way
table of questions and seeds, and its degrees of freedom by Satterthwaite's formula, as in studies of readers and cases
(Hillis, "A comparison of denominator degrees of freedom ...", Statistics in Medicine 2007). Where two or three seeds
happen to agree this is too small: an interval is never narrower than the one that takes the seeds as given and clusters
by question, and its test never rejects where that one does not.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import stats

# At which alpha two intervals are compared in width.
WIDTH_AT = 0.05


@dataclass(frozen=True)
class Estimate:
    """A mean with its standard error and degrees of freedom; `algorithm` says whether training seeds were sampled.

    `other` is the estimate of the same mean that is narrower at 95 %: with few degrees of freedom it may still be the
    more careful one at smaller levels.
    """

    value: float
    standard_error: float
    df: float
    algorithm: bool
    other: "Estimate | None" = None

    @property
    def t(self) -> float | None:
        """The t statistic against 0; None without spread."""
        return self.value / self.standard_error if self.standard_error > 0 else None

    @property
    def p(self) -> float:
        """Two-sided p against 0. Without spread: 1 where the value is 0, else 0."""
        if self.t is None:
            return float(self.value == 0)
        return float(2 * stats.t.sf(abs(self.t), self.df))

    @property
    def decisive(self) -> "Estimate":
        """The one of both estimates that rejects less: the one to test with."""
        return self.other if self.other and self.other.p > self.p else self

    def half_width(self, alpha: float) -> float:
        """Half the width of the t interval that covers 1 - alpha, the wider of both estimates."""
        own = float(stats.t.isf(alpha / 2, self.df)) * self.standard_error
        return max(own, self.other.half_width(alpha)) if self.other else own


@dataclass(frozen=True)
class MeanSquares:
    """Mean squares of a table [seeds, questions]: of its rows, and of what rows and columns leave."""

    seeds: float
    rest: float


def mean_squares(table: np.ndarray) -> MeanSquares:
    """Split the spread of a table [seeds, questions] with at least two of each (two-way analysis of variance)."""
    seeds, questions = table.shape
    rows, columns, mean = table.mean(1, keepdims=True), table.mean(0, keepdims=True), table.mean()
    rest = ((table - rows - columns + mean) ** 2).sum() / ((seeds - 1) * (questions - 1))
    return MeanSquares(float(questions * ((rows - mean) ** 2).sum() / (seeds - 1)), float(rest))


def pooled(parts: Sequence[tuple[Any, float]]) -> tuple[Any, Any]:
    """Add independent estimates of variance.

    Args:
        parts: Each estimate with its degrees of freedom; numbers, or arrays of one shape. Not all may be 0.

    Returns:
        The sum and its degrees of freedom by Satterthwaite's formula.
    """
    variance = sum(part for part, _ in parts)
    return variance, variance**2 / sum(part**2 / df for part, df in parts)


def crossed_mean(groups: Sequence[np.ndarray]) -> Estimate:
    """Estimate the sum of the means of groups of training seeds that answer the same questions.

    One group is a cell, or the differences of two cells paired by training seed; a cell and the negative of another
    are two groups, whose seeds are independent. A group of one row is a fixed checkpoint: it has no spread over seeds.

    Args:
        groups: Tables [seeds of the group, questions] over the same questions.

    Returns:
        Where every group has one row: the mean over questions with its clustered standard error. Otherwise the crossed
        estimate or that one, whichever is wider, with the narrower as its `other`.

    Raises:
        ValueError: fewer than two questions.
    """
    questions = groups[0].shape[1]
    if questions < 2:
        raise ValueError("a standard error over questions needs at least two questions")
    by_question = sum(group.mean(0) for group in groups)
    value = float(np.mean(by_question))
    clustered = float(np.var(by_question, ddof=1)) / questions
    given = Estimate(value, math.sqrt(clustered), questions - 1, algorithm=False)
    several = [(group.size, len(group) - 1, mean_squares(group)) for group in groups if len(group) > 1]
    if not several:
        return given
    # The spread of question means holds the rest's share already, which the seeds' mean squares bring too.
    rest = math.fsum(found.rest / size for size, _, found in several)
    parts = [(found.seeds / size, df) for size, df, found in several]
    parts.append((max(clustered - rest, 0.0), questions - 1))
    fixed = replace(given, algorithm=True)
    if not any(part for part, _ in parts):
        return fixed
    variance, df = pooled(parts)
    crossed = Estimate(value, math.sqrt(variance), df, algorithm=True)
    narrow, wide = sorted((crossed, fixed), key=lambda found: found.half_width(WIDTH_AT))
    return replace(wide, other=narrow)
