"""Paper mode: Welch's one-tailed t-test on repeat-means (Eq. 60, Appendix M)."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from acpo.stats.raw import Tally
from acpo.stats.records import Welch


class TTest(NamedTuple):
    """Statistic, Welch-Satterthwaite degrees of freedom, one-tailed p."""

    t: float
    df: float
    p: float


def welch_from_moments(treatment: tuple[float, float, int], baseline: tuple[float, float, int]) -> TTest | None:
    """Test treatment > baseline from (mean, standard deviation, n) of each, as published tables give them.

    Returns:
        None where neither has any spread.

    Raises:
        ValueError: an n below 2, or a negative standard deviation.
    """
    (mean_a, sd_a, n_a), (mean_b, sd_b, n_b) = treatment, baseline
    if min(n_a, n_b) < 2 or min(sd_a, sd_b) < 0:
        raise ValueError(f"Welch's test needs n >= 2 and sd >= 0 on both sides, got {treatment} and {baseline}")
    if sd_a == sd_b == 0:
        return None
    found = stats.ttest_ind_from_stats(mean_a, sd_a, n_a, mean_b, sd_b, n_b, equal_var=False, alternative="greater")
    a, b = sd_a**2 / n_a, sd_b**2 / n_b
    df = (a + b) ** 2 / (a**2 / (n_a - 1) + b**2 / (n_b - 1))
    return TTest(float(found.statistic), df, float(found.pvalue))


def implied_sd(difference: float, p: float, n: int) -> float:
    """Return the common standard deviation of n repeats a side at which a difference has a published one-tailed p.

    Args:
        difference: Mean of the treatment minus mean of the baseline, in the unit that is wanted.
        p: The published p; at p < 0.5 the difference must be positive.
        n: Repeats on each side.

    Raises:
        ValueError: no standard deviation gives this p.
    """
    quantile = float(stats.t.isf(p, 2 * n - 2))
    if quantile * difference <= 0:
        raise ValueError(f"no spread makes a difference of {difference:g} have p = {p:g} in a one-tailed test")
    return difference / quantile * math.sqrt(n / 2)


def paper_mode(treatment: Tally, baseline: Tally) -> list[Welch]:
    """Test every training seed of a treatment against the baseline's same seed, or against its only one.

    Seeds that the baseline lacks are left out; the result says which it has. With k = 1 there are no repeats to test.
    """
    pairs = [(seed, _partner(seed, baseline.seeds)) for seed in treatment.seeds]
    return [
        _test(treatment, baseline, seed, partner)
        for seed, partner in pairs
        if partner is not None and min(treatment.k, baseline.k) > 1
    ]


def _partner(seed: int, seeds: Sequence[int]) -> int | None:
    if len(seeds) == 1:
        return seeds[0]
    return seed if seed in seeds else None


def _test(treatment: Tally, baseline: Tally, seed: int, partner: int) -> Welch:
    moments_a, moments_b = _moments(treatment, seed), _moments(baseline, partner)
    found = welch_from_moments(moments_a, moments_b)
    return Welch(
        treatment_seed=seed, baseline_seed=partner,
        treatment_mean=moments_a[0], baseline_mean=moments_b[0],
        treatment_sd=moments_a[1], baseline_sd=moments_b[1],
        treatment_n=moments_a[2], baseline_n=moments_b[2],
        t=found and found.t, df=found and found.df, p=found and found.p,
    )  # fmt: skip


def _moments(item: Tally, seed: int) -> tuple[float, float, int]:
    # Whole numbers first: equal repeats then have a spread of exactly 0.
    sums = item.correct[item.seeds.index(seed)].sum(0)
    sd = float(np.std(sums, ddof=1)) / len(item.questions)
    return float(sums.sum()) / item.correct[0].size, sd, item.k
