"""Which printed percentages can be a mean of k right answers out of questions x samples."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from scipy.stats import binomtest

from acpo.stats.denominator import possible_percent

CHANCE_LEVEL = 0.05
QUESTIONS = {"Minerva": 272, "Math500": 500, "AMC": 83, "AIME24": 30, "AIME25": 30, "Olympiad": 675}
"""Questions of Table 2's benchmarks; AMC's are those of the set that its scores fit."""


@dataclass(frozen=True)
class Fit:
    """How many printed values a denominator can give.

    `chance` is the share of all percentages with as many decimals that it can give: a large denominator fits
    everything and tells nothing.
    """

    denominator: int
    fitting: int
    total: int
    chance: float

    @property
    def all_fit(self) -> bool:
        """Whether every value can be reached."""
        return self.fitting == self.total

    @property
    def no_better_than_chance(self) -> bool:
        """Whether arbitrary values would fit as often (one-sided binomial test at 0.05)."""
        return float(binomtest(self.fitting, self.total, self.chance, "greater").pvalue) > CHANCE_LEVEL


@cache
def chance_of_fit(denominator: int) -> float:
    """Return the share of the two-decimal percentages from 0.00 to 100.00 that a denominator can give."""
    return sum(possible_percent(f"{number / 100:.2f}", denominator) for number in range(10_001)) / 10_001


def fit(printed: Iterable[str], denominator: int) -> Fit:
    """Count how many two-decimal percentages a denominator can give."""
    values = list(printed)
    fitting = sum(possible_percent(value, denominator) for value in values)
    return Fit(denominator, fitting, len(values), chance_of_fit(denominator))
