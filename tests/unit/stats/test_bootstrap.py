"""The hierarchical bootstrap: its exact distribution, its intervals."""

import math
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from acpo.stats.bootstrap import calibrated_interval, draw_weights, percentile_interval, resampled_means
from acpo.stats.crossed import Estimate


def one_by_one(correct: np.ndarray, resamples: int, rng: np.random.Generator) -> np.ndarray:
    """Resample verdicts [seeds, questions, k] as the definition says, sample by sample."""
    seeds, questions, k = correct.shape
    means = np.empty(resamples)
    for number in range(resamples):
        drawn_seeds = rng.integers(0, seeds, seeds)
        drawn_questions = rng.integers(0, questions, questions)
        drawn = rng.integers(0, k, (seeds, questions, k))
        means[number] = correct[drawn_seeds[:, None, None], drawn_questions[None, :, None], drawn].mean()
    return means


def replicates(correct: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    seeds, questions, k = correct.shape
    weights = draw_weights(seeds, resamples, rng), draw_weights(questions, resamples, rng)
    return resampled_means(correct.sum(2), k, *weights, rng)


def test_weights_count_draws() -> None:
    weights = draw_weights(7, 500, np.random.default_rng(0))
    assert weights.shape == (500, 7)
    assert (weights.sum(1) == 7).all()
    assert weights.mean(0) == pytest.approx(np.ones(7), abs=0.2)
    # Multinomial: a unit's count has variance 1 - 1/7.
    assert weights.var(0).mean() == pytest.approx(6 / 7, rel=0.1)


def test_two_questions_of_two_samples_by_hand() -> None:
    # One question has 1 of 2 right, the other 2 of 2. Drawn: the first twice (1/4): Binomial(4, 1/2) right of 4;
    # both (1/2): 2 + Binomial(2, 1/2); the second twice (1/4): 4.
    chances = {0: 1 / 64, 1: 4 / 64, 2: 6 / 64 + 1 / 8, 3: 4 / 64 + 2 / 8, 4: 1 / 64 + 1 / 8 + 1 / 4}
    found = Counter(np.rint(4 * replicates(np.array([[[1, 0], [1, 1]]]), 40_000, 1)).astype(int).tolist())
    observed, expected = [found[right] for right in range(5)], [40_000 * chances[right] for right in range(5)]
    assert stats.chisquare(observed, expected).pvalue > 0.01


@pytest.mark.parametrize("shape", [(1, 6, 3), (2, 5, 4), (3, 20, 8)])
def test_same_distribution_as_resampling_one_by_one(shape: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(2)
    correct = rng.random(shape) < rng.beta(0.6, 0.6, shape[:2])[:, :, None]
    fast, slow = replicates(correct, 20_000, 3), one_by_one(correct, 6000, rng)
    assert stats.ks_2samp(fast, slow).pvalue > 0.01
    assert fast.mean() == pytest.approx(correct.mean(), abs=5 * fast.std() / math.sqrt(20_000))
    assert fast.std() == pytest.approx(slow.std(), rel=0.04)


def test_a_seed_drawn_twice_draws_its_samples_twice() -> None:
    """Two seeds with every question half right: only samples vary, as 2 x 30 x 4 independent coins."""
    correct = np.tile(np.array([1, 1, 0, 0]), (2, 30, 1))
    assert replicates(correct, 20_000, 4).std() == pytest.approx(math.sqrt(0.25 / 240), rel=0.03)


def test_cells_that_share_questions_are_paired() -> None:
    rng = np.random.default_rng(5)
    questions = draw_weights(40, 4000, rng)
    right = rng.integers(0, 2, (1, 40)) * 8
    seeds = np.ones((4000, 1), dtype=np.float32)
    first, second = (resampled_means(right, 8, seeds, questions, rng) for _ in range(2))
    assert (first == second).all()
    assert first.std() > 0


def test_same_generator_same_bytes() -> None:
    correct = np.random.default_rng(6).random((3, 20, 8)) < 0.5
    assert replicates(correct, 500, 7).tobytes() == replicates(correct, 500, 7).tobytes()
    assert replicates(correct, 500, 7).tobytes() != replicates(correct, 500, 8).tobytes()


def test_percentile_interval_by_hand() -> None:
    found = percentile_interval(np.arange(101) / 100, 0.1)
    assert (found.low, found.high) == pytest.approx((0.05, 0.95))


class TestCalibratedInterval:
    def test_a_normal_bootstrap_gives_the_t_interval(self) -> None:
        estimate = Estimate(value=0.1, standard_error=0.02, df=5, algorithm=True)
        normal = stats.norm.ppf((np.arange(100_000) + 0.5) / 100_000) * 0.3
        found = calibrated_interval(normal, estimate, 0.05, lowest=-1.0)
        assert found is not None
        half = stats.t.isf(0.025, 5) * 0.02
        assert (found.low, found.high) == pytest.approx((0.1 - half, 0.1 + half), rel=1e-3)

    def test_a_skewed_bootstrap_gives_a_skewed_interval(self) -> None:
        estimate = Estimate(value=0.1, standard_error=0.02, df=50, algorithm=True)
        skewed = np.random.default_rng(0).exponential(size=20_000)
        found = calibrated_interval(skewed, estimate, 0.05, lowest=-1.0)
        assert found is not None
        assert found.high - 0.1 > 2 * (0.1 - found.low)

    def test_stays_within_what_is_possible(self) -> None:
        estimate = Estimate(value=0.05, standard_error=0.2, df=2, algorithm=True)
        found = calibrated_interval(np.random.default_rng(0).normal(size=1000), estimate, 0.05, lowest=0.0)
        assert found is not None
        assert found.low == 0
        assert found.high <= 1

    def test_no_spread_no_interval(self) -> None:
        assert calibrated_interval(np.ones(10), Estimate(0.5, 0.1, 3, False), 0.05, lowest=0.0) is None
        assert calibrated_interval(np.arange(10.0), Estimate(0.5, 0.0, 3, False), 0.05, lowest=0.0) is None
