"""Differences over training seeds, and what they allow to be said."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from acpo.audit.evidence import MissingEvidenceError
from acpo.audit.verdict import Verdict

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Difference:
    """A difference measured once a training seed, seeds paired (two methods of one seed meet the same draws)."""

    values: Sequence[float]

    @property
    def mean(self) -> float:
        """The mean over seeds."""
        return float(np.mean(self.values))

    def interval(self, comparisons: int = 1) -> tuple[float, float]:
        """Return Student's t interval of the mean over training seeds, normality assumed.

        Args:
            comparisons: How many intervals are to hold together with 95 % (Bonferroni).
        """
        count = len(self.values)
        error = float(np.std(self.values, ddof=1)) / math.sqrt(count)
        reach = float(student.ppf(1 - (1 - CONFIDENCE) / (2 * comparisons), count - 1)) * error
        return self.mean - reach, self.mean + reach

    def text(self, scale: float = 100.0) -> str:
        """Print mean and interval, by default in points."""
        low, high = self.interval()
        return f"{scale * self.mean:+.2f} [{scale * low:+.2f}, {scale * high:+.2f}]"


def paired(first: Mapping[int, float], second: Mapping[int, float], names: str) -> Difference:
    """Subtract by training seed.

    Args:
        first: By seed.
        second: By seed; the single value of a base model stands for every seed.
        names: What is compared, for the message.

    Raises:
        MissingEvidenceError: fewer than two seeds have both: their spread is unknown, so nothing can be inferred.
    """
    if len(second) == 1 and len(first) > 1:
        second = dict.fromkeys(first, next(iter(second.values())))
    seeds = sorted(first.keys() & second.keys())
    if len(seeds) < 2:
        raise MissingEvidenceError(
            f"two training seeds or more of {names} (there {'is' if len(seeds) == 1 else 'are'} {len(seeds)})",
            "snakemake --cores 2 all --config seeds='[0, 1, 2]'",
        )
    return Difference([first[seed] - second[seed] for seed in seeds])


def all_positive(differences: Collection[Difference]) -> Verdict:
    """Judge the claim that every difference is positive.

    Reproduced: each 95 % interval lies above 0. Contradicted: one lies below 0 even when all are to hold together.
    Otherwise the seeds do not decide it: not reproduced.
    """
    if all(difference.interval()[0] > 0 for difference in differences):
        return Verdict.REPRODUCED
    if any(difference.interval(len(differences))[1] < 0 for difference in differences):
        return Verdict.CONTRADICTED
    return Verdict.NOT_REPRODUCED
