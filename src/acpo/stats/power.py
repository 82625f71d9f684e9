"""What a comparison can find, and how often paper mode finds what is not there."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats
from scipy.optimize import brentq
from scipy.stats import qmc

from acpo.stats.crossed import mean_squares, pooled

SEED_COUNTS = (1, 2, 3, 5, 10, 20)
DRAWS = 4096  # a power of 2, for Sobol's points


@dataclass(frozen=True)
class SeedSpread:
    """Variance of a question's difference over one group of training seeds, each at least 0.

    `rest` holds the interaction of seeds and questions and the noise of k samples.
    """

    seed: float
    rest: float


@dataclass(frozen=True)
class Spread:
    """Variance of a question's difference by source: questions, and the groups that have several training seeds.

    Without such a group `question` holds the noise of k samples too.
    """

    question: float
    groups: tuple[SeedSpread, ...] = ()


def difference_spread(groups: Sequence[np.ndarray]) -> Spread:
    """Split the variance of a difference (groups as in `acpo.stats.crossed.crossed_mean`)."""
    questions = groups[0].shape[1]
    several = [(len(group), mean_squares(group)) for group in groups if len(group) > 1]
    by_question = float(np.var(sum(group.mean(0) for group in groups), ddof=1))
    shared = math.fsum(found.rest / count for count, found in several)
    return Spread(
        max(by_question - shared, 0.0),
        tuple(SeedSpread(max((found.seeds - found.rest) / questions, 0.0), found.rest) for _, found in several),
    )


def minimum_detectable_difference(spread: Spread, seeds: int, questions: int, alpha: float, power: float) -> float:
    """Return the difference that inference mode's two-sided test finds with some power.

    The power is that of `crossed_mean(...).decisive` where all effects are normal. With several seeds it is no
    noncentral t: the degrees of freedom vary from one study to the next, and the stricter of two tests decides. So the
    test is made on draws of its mean squares.

    Args:
        spread: Of a question's difference.
        seeds: Training seeds of each method. One: of two checkpoints; several: of the algorithms.
        questions: Questions of the benchmark.
        alpha: Level of the test.
        power: Chance to find it, more than `alpha`.

    Returns:
        The difference, in the units of a question's difference; 0 where nothing varies.

    Raises:
        ValueError: several seeds, but their spread is unknown.
    """
    if seeds > 1 and not spread.groups:
        raise ValueError("the spread over training seeds is unknown: give at least two")
    variance = (spread.question + sum(group.rest for group in spread.groups) / seeds) / questions
    if seeds > 1:
        variance += sum(group.seed for group in spread.groups) / seeds
    if variance == 0:
        return 0.0
    critical, error = critical_differences(spread, seeds, questions, alpha), math.sqrt(variance)

    def excess(difference: float) -> float:
        above, below = stats.norm.sf(critical, difference, error), stats.norm.cdf(-critical, difference, error)
        return float(np.mean(above + below)) - power

    return float(brentq(excess, 0.0, critical.max() + 10 * error))


def critical_differences(spread: Spread, seeds: int, questions: int, alpha: float) -> np.ndarray:
    """Draw studies, and return what each would call significant (arguments as in `minimum_detectable_difference`).

    Returns:
        The smallest difference with p < alpha in both estimates of `acpo.stats.crossed`, [DRAWS]. Mean squares are
        independent of each other and of the difference; the points are Sobol's, the same in every call.
    """
    groups = spread.groups if seeds > 1 else ()
    dfs = [questions - 1, *(df for _ in groups for df in (seeds - 1, (seeds - 1) * (questions - 1)))]
    # Mean squares over what they estimate: of question means, then of each group's seeds and rest.
    by_question, *ratios = (stats.chi2.ppf(qmc.Sobol(len(dfs), rng=0).random(DRAWS), dfs) / dfs).T
    clustered = (spread.question + sum(group.rest for group in spread.groups) / seeds) / questions * by_question
    given = stats.t.isf(alpha / 2, questions - 1) * np.sqrt(clustered)
    if not groups:
        return given
    rest = sum(group.rest * ratio for group, ratio in zip(groups, ratios[1::2], strict=True)) / (seeds * questions)
    parts = [
        ((group.seed + group.rest / questions) / seeds * ratio, seeds - 1)
        for group, ratio in zip(groups, ratios[::2], strict=True)
    ]
    variance, df = pooled([*parts, (np.maximum(clustered - rest, 0.0), questions - 1)])
    return np.maximum(given, stats.t.isf(alpha / 2, df) * np.sqrt(variance))


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
