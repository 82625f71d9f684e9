"""Coverage of the intervals: how often they hold the true difference, for methods, seeds and questions drawn anew."""

import math

import numpy as np
import pytest
from made_up import made_tally

from acpo.stats.bootstrap import calibrated_interval, draw_weights, resampled_means
from acpo.stats.comparison import difference_groups, estimate_mean
from acpo.stats.crossed import Estimate, crossed_mean
from acpo.stats.raw import Tally

ADVANTAGE, QUESTION_SD, METHOD_SD, INTERACTION_SD = 0.3, 2.0, 0.3, 0.3


def logistic(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def truth(seed_sd: float) -> tuple[float, float]:
    """Return the baseline's true accuracy and the true difference, over all questions and seeds there are."""
    sd = math.sqrt(QUESTION_SD**2 + METHOD_SD**2 + INTERACTION_SD**2 + seed_sd**2)
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    baseline, treatment = (
        float((logistic(shift + sd * nodes) * weights).sum() / weights.sum()) for shift in (0.0, ADVANTAGE)
    )
    return baseline, treatment - baseline


def draw(seeds: int, questions: int, k: int, seed_sd: float, rng: np.random.Generator) -> list[Tally]:
    """Draw questions, then two methods (treatment, baseline) that answer them."""
    difficulty = rng.normal(0, QUESTION_SD, questions)
    made = []
    for method, advantage in (("acpo", ADVANTAGE), ("dapo", 0.0)):
        odds = advantage + difficulty + rng.normal(0, METHOD_SD, questions)
        odds = odds + rng.normal(0, seed_sd, (seeds, 1)) + rng.normal(0, INTERACTION_SD, (seeds, questions))
        made.append(made_tally(rng.random((seeds, questions, k)) < logistic(odds)[:, :, None], method))
    return made


def replicates(items: list[Tally], resamples: int, rng: np.random.Generator) -> list[np.ndarray]:
    seeds, questions, _ = items[0].correct.shape
    weights = draw_weights(seeds, resamples, rng), draw_weights(questions, resamples, rng)
    return [resampled_means(item.right, item.k, *weights, rng) for item in items]


def covers(found: Estimate, means: np.ndarray, value: float, lowest: float) -> bool:
    interval = calibrated_interval(means, found, 0.05, lowest)
    return interval is not None and interval.low <= value <= interval.high


def coverage(seeds: int, questions: int, k: int, seed_sd: float, simulations: int) -> tuple[float, float]:
    """Return how often the intervals of the difference and of the baseline's accuracy hold the truth."""
    rng = np.random.default_rng([seeds, questions, k, round(100 * seed_sd)])
    accuracy, difference = truth(seed_sd)
    differences = means = 0
    for _ in range(simulations):
        ours, theirs = draw(seeds, questions, k, seed_sd, rng)
        first, second = replicates([ours, theirs], 1000, rng)
        differences += covers(crossed_mean(difference_groups(ours, theirs)), first - second, difference, -1.0)
        means += covers(estimate_mean(theirs), second, accuracy, 0.0)
    return differences / simulations, means / simulations


def test_one_training_seed() -> None:
    """Both within four Monte Carlo errors of 95 %."""
    assert coverage(1, 60, 8, 0.0, 150) == pytest.approx((0.95, 0.95), abs=4 * math.sqrt(0.95 * 0.05 / 150))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seeds", "questions", "k", "seed_sd"),
    [(1, 60, 8, 0.0), (1, 200, 4, 0.0), (3, 60, 8, 0.15), (5, 60, 8, 0.15), (10, 60, 8, 0.15)],
)
def test_intervals_cover_93_to_97_percent(seeds: int, questions: int, k: int, seed_sd: float) -> None:
    for found in coverage(seeds, questions, k, seed_sd, 1000):
        assert 0.93 <= found <= 0.97


@pytest.mark.slow
def test_three_seeds_that_do_not_differ_make_intervals_wide_not_narrow() -> None:
    difference, mean = coverage(3, 60, 8, 0.0, 600)
    assert difference > 0.96
    assert mean >= 0.93
