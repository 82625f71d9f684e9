"""The hierarchical bootstrap: training seeds, then questions, then samples, each drawn with replacement.

Exact in distribution. Each resample draws training seeds; draws questions once, because all seeds and methods of a
benchmark answer the same ones; and draws k samples of every drawn question anew for every drawn seed. Given how often a
question was drawn, v times, and a seed, w times, the right ones among its w v k samples are Binomial(w v k, c / k),
where c of its k samples are right. Questions with the same c share their chance, so their sum is one binomial draw:
a matrix product counts how often questions of each c were drawn, and k - 1 binomial draws replace Q k draws of samples.
"""

import numpy as np
from scipy import stats

from acpo.stats.crossed import Estimate
from acpo.stats.records import Interval


def draw_weights(units: int, resamples: int, rng: np.random.Generator) -> np.ndarray:
    """Draw `units` units with replacement, and count how often each was drawn.

    Returns:
        Counts [resamples, units] as float32, which holds them exactly; every row sums to `units`.
    """
    drawn = rng.integers(0, units, (resamples, units), dtype=np.int32)
    return np.stack([np.bincount(row, minlength=units) for row in drawn]).astype(np.float32)


def resampled_means(
    right: np.ndarray, k: int, seed_weights: np.ndarray, question_weights: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Resample a cell's mean accuracy on one benchmark.

    Args:
        right: Right samples of each question, int [seeds, questions], each in 0..k.
        k: Samples a question.
        seed_weights: How often each seed was drawn, [resamples, seeds].
        question_weights: How often each question was drawn, [resamples, questions]; share it between cells of a
            benchmark to keep them paired.
        rng: Draws the samples.

    Returns:
        [resamples] means.
    """
    total = np.zeros(len(seed_weights))
    for counts, weights in zip(right, seed_weights.T, strict=True):
        present = np.flatnonzero(weights)
        levels = np.unique(counts)
        drawn = question_weights[present] @ (counts[:, None] == levels).astype(np.float32)
        copies = np.rint(drawn.T * weights[present]).astype(np.int32)
        total[present] += sum(_binomial(row, k, level, rng) for level, row in zip(levels.tolist(), copies, strict=True))
    return total / (right.size * k)


def _binomial(copies: np.ndarray, k: int, level: int, rng: np.random.Generator) -> np.ndarray:
    """Draw how many are right of k samples of each copy of questions of which `level` samples of k are right."""
    if level in (0, k):
        return copies * level
    # numpy keeps a binomial's setup while its parameters stay the same: sorted, most draws find it made.
    order = np.argsort(copies.astype(np.uint16) if copies.max() < 2**16 else copies, kind="stable")
    drawn = np.empty(len(copies), dtype=np.int64)
    drawn[order] = rng.binomial(copies[order] * k, level / k)
    return drawn


def percentile_interval(replicates: np.ndarray, alpha: float) -> Interval:
    """Return the percentile interval of bootstrap replicates [resamples]."""
    low, high = np.quantile(replicates, [alpha / 2, 1 - alpha / 2])
    return Interval(low=float(low), high=float(high))


def calibrated_interval(replicates: np.ndarray, estimate: Estimate, alpha: float, lowest: float) -> Interval | None:
    """Return the bootstrap's interval with the width that the standard error and its degrees of freedom ask for.

    Resampling at every level counts the noise of samples more than once and few seeds too little (Davison & Hinkley
    1997, Sec. 3.8): percentile intervals would cover too much or too little. The distances of their ends from the
    estimate are scaled by t SE / (z SD of the replicates): the shape is the bootstrap's, the width that of the crossed
    analysis.

    Args:
        replicates: [resamples].
        estimate: The mean with standard error and degrees of freedom.
        alpha: 1 - coverage.
        lowest: The least possible value, 0 for an accuracy and -1 for a difference; the largest is 1.

    Returns:
        None where there is no spread.
    """
    spread = float(np.std(replicates))
    if spread == 0 or estimate.standard_error == 0:
        return None
    scale = estimate.half_width(alpha) / (float(stats.norm.isf(alpha / 2)) * spread)
    raw = percentile_interval(replicates - replicates.mean(), alpha)
    low, high = estimate.value + scale * raw.low, estimate.value + scale * raw.high
    return Interval(low=max(low, lowest), high=min(high, 1.0))
