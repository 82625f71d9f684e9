"""What a comparison can find, and how often paper mode finds what is not there."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats
from statsmodels.stats.power import TTestPower

from acpo.stats.crossed import mean_squares

SEED_COUNTS = (1, 2, 3, 5, 10, 20)


@dataclass(frozen=True)
class Spread:
    """Variance of a question's difference by source, each at least 0; `seed` is None where no cell has two seeds."""

    seed: float | None
    question: float
    rest: float


def difference_spread(groups: Sequence[np.ndarray]) -> Spread:
    """Split the variance of a difference (groups as in `acpo.stats.crossed.crossed_mean`).

    `rest` holds the interaction of seeds and questions and the noise of k samples.
    """
    questions = groups[0].shape[1]
    several = [(len(group), mean_squares(group)) for group in groups if len(group) > 1]
    by_question = float(np.var(sum(group.mean(0) for group in groups), ddof=1))
    rest = math.fsum(found.rest for _, found in several)
    shared = math.fsum(found.rest / count for count, found in several)
    seed = math.fsum(max((found.seeds - found.rest) / questions, 0.0) for _, found in several) if several else None
    return Spread(seed, max(by_question - shared, 0.0), rest)


def minimum_detectable_difference(spread: Spread, seeds: int, questions: int, alpha: float, power: float) -> float:
    """Return the difference that a two-sided t-test finds with some power.

    Args:
        spread: Of a question's difference.
        seeds: Training seeds of each method. One: of two checkpoints, with questions - 1 degrees of freedom;
            several: of the algorithms, with seeds - 1.
        questions: Questions of the benchmark.
        alpha: Level of the test.
        power: Chance to find it.

    Raises:
        ValueError: several seeds, but their spread is unknown.
    """
    units = questions if seeds == 1 else seeds
    if seeds == 1:
        variance = (spread.question + spread.rest) / questions
    elif spread.seed is None:
        raise ValueError("the spread over training seeds is unknown: give at least two")
    else:
        variance = spread.seed / seeds + spread.question / questions + spread.rest / (seeds * questions)
    effect = TTestPower().solve_power(nobs=units, alpha=alpha, power=power, alternative="two-sided")
    return float(np.squeeze(effect)) * math.sqrt(variance * units)


@dataclass(frozen=True)
class Difficulty:
    """A benchmark for simulations: its questions' chances are quantiles of a beta distribution.

    Attributes:
        questions: How many.
        k: Samples a question.
        accuracy: Mean chance.
        within: Mean of p (1 - p) over questions, which sets the noise of a repeat-mean: sqrt(within / questions).
    """

    questions: int
    k: int
    accuracy: float
    within: float

    def chances(self) -> np.ndarray:
        """Return the chance of each question, [questions]."""
        total = self.accuracy * (1 - self.accuracy)
        concentration = self.within / (total - self.within)
        quantiles = (np.arange(self.questions) + 0.5) / self.questions
        beta = stats.beta(self.accuracy * concentration, (1 - self.accuracy) * concentration)
        return np.clip(beta.ppf(quantiles), 1e-9, 1 - 1e-9)

    def shifted(self, shifts: np.ndarray) -> np.ndarray:
        """Return every question's chance at other mean accuracies: all log-odds move by the same amount.

        Args:
            shifts: Changes of the mean, fractions of 1, [...].

        Returns:
            [..., questions], whose means are those of `chances` plus `shifts`.
        """
        odds = np.log(self.chances()) - np.log1p(-self.chances())
        moves = np.linspace(-12, 12, 2401)
        means = (1 / (1 + np.exp(-(odds + moves[:, None])))).mean(1)
        move = np.interp(self.chances().mean() + shifts, means, moves)
        return 1 / (1 + np.exp(-(odds + np.asarray(move)[..., None])))


# The published benchmarks. Their mean accuracies are near those of Table 2; `within` is published nowhere: it is
# set so that the false-positive rates of paper mode come out near those of an earlier simulation (docs/statistics.md).
MATH500 = Difficulty(questions=500, k=8, accuracy=0.78, within=0.0245)
AIME = Difficulty(questions=30, k=32, accuracy=0.17, within=0.0465)


def simulate_verdicts(
    benchmark: Difficulty, seed_sd: float, seeds: int, simulations: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw a method's verdicts on a benchmark; training seeds differ, questions stay the same.

    Args:
        benchmark: The benchmark.
        seed_sd: Standard deviation of the true accuracy over training seeds, fraction of 1.
        seeds: Training seeds.
        simulations: How many.
        rng: Draws everything.

    Returns:
        Verdicts, bool [simulations, seeds, questions, k].
    """
    chances = benchmark.shifted(rng.normal(0, seed_sd, (simulations, seeds))).astype(np.float32)
    shape = (simulations, seeds, benchmark.questions, benchmark.k)
    return rng.random(shape, dtype=np.float32) < chances[..., None]


def false_positive_rate(
    benchmark: Difficulty, seed_sd: float, simulations: int, rng: np.random.Generator, alpha: float = 0.05
) -> float:
    """Simulate how often paper mode calls two checkpoints of equal methods different.

    Args:
        benchmark: The benchmark.
        seed_sd: Standard deviation of the true accuracy over training seeds, fraction of 1.
        simulations: How many pairs of runs.
        rng: Draws everything.
        alpha: Level of the one-tailed test.
    """
    found = 0
    for start in range(0, simulations, 500):
        count = min(500, simulations - start)
        ours, theirs = (simulate_verdicts(benchmark, seed_sd, 1, count, rng)[:, 0].mean(1) for _ in range(2))
        p = stats.ttest_ind(ours, theirs, axis=1, equal_var=False, alternative="greater").pvalue
        found += int((p < alpha).sum())
    return found / simulations
