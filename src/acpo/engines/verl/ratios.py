"""Whether the importance ratios of a rollout are possible."""

import math
from collections.abc import Mapping

from acpo.engines import EngineError
from acpo.objectives import LOG_BINS

LARGEST_ERROR = {"fp32": 1e-3}
LARGEST_SPREAD = {"fp32": 1e-3, "bf16": 0.1}


class RatioError(EngineError):
    """The importance ratios are impossible: old log-probabilities do not belong to this rollout."""


class RatioCheck:
    """Watches the ratios of one rollout's updates.

    verl's trainer computes old log-probabilities with the policy that it then updates, so that before the first update
    every ratio is 1 up to rounding. In bf16, where a logit has 8 significant bits, rounding alone spreads the ratios of
    a bin by a percent or two and moves single tokens further: there only a gross fault shows, in the spread.

    Args:
        rollout: Its number.
        precision: In which the model computes, as verl writes it.
    """

    def __init__(self, rollout: int, precision: str) -> None:
        self._rollout = rollout
        self._precision = {"float32": "fp32", "bfloat16": "bf16"}.get(precision, precision)
        self._updates = 0
        self._moved = False
        self._due = False
        self._changed = False

    def add(self, facts: Mapping[str, float], error: float) -> None:
        """Check an update.

        Args:
            facts: What is logged about it.
            error: Its max |rho - 1|.

        Raises:
            RatioError: it is the first one and its ratios are not 1.
        """
        if self._updates == 0:
            self._check_first(facts, error)
        else:
            self._due = self._moved
            self._changed = self._changed or error > 0
        self._updates += 1
        self._moved = self._moved or 0 < facts["gradient_norm"] < math.inf

    def finish(self) -> None:
        """Check the rollout as a whole.

        Raises:
            RatioError: updates moved the policy and yet every ratio stayed exactly 1.
        """
        if self._due and not self._changed:
            raise RatioError(
                f"rollout {self._rollout}: every importance ratio is exactly 1 in all of its {self._updates} updates: "
                "old log-probabilities are not those of the behavior policy, or no update reaches the weights"
            )

    def _check_first(self, facts: Mapping[str, float], error: float) -> None:
        bins = range(1, LOG_BINS + 1)
        spread = max((facts[f"bin{b}/ratio_std"] for b in bins if facts[f"bin{b}/count"]), default=0.0)
        if self._precision not in LARGEST_SPREAD:
            raise EngineError(f"mixed_precision.param_dtype: {self._precision!r} is not one of fp32, bf16")
        allowed = LARGEST_ERROR.get(self._precision, math.inf)
        if not (error <= allowed and spread <= LARGEST_SPREAD[self._precision]):
            raise RatioError(
                f"rollout {self._rollout}: before any update the importance ratio differs from 1 by up to {error:.6f} "
                f"(largest spread in a probability bin {spread:.2e}, {self._precision}): the old log-probabilities "
                "are not those of the policy that is updated. Is algorithm.rollout_correction.bypass_mode set?"
            )
