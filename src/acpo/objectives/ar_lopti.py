"""AR-Lopti: advantage reweighting and isolation of low-probability tokens."""

from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor
from typing_extensions import override

from acpo.objectives.base import ClippedParameters, Objective, Width
from acpo.objectives.batch import TokenBatch
from acpo.objectives.clipping import TokenTerms, clipped_terms
from acpo.objectives.statistics import Statistics


class ArLoptiParameters(ClippedParameters):
    """`ar_alpha`, `ar_tau`, `w_neg` reweight advantages; `threshold` on pi_old separates the two passes."""

    ar_alpha: Width
    ar_tau: Width
    w_neg: Width
    threshold: Annotated[float, Field(gt=0, lt=1)]


class ArLopti(Objective):
    """Clipped surrogate on reweighted advantages, in two passes over all mini-batches of a rollout.

    The first pass trains on tokens with pi_old below the threshold, the second on the rest, both against the
    same old log-probabilities: twice the optimizer steps of any other method. Tokens of the other pass add 0
    and stay in the denominator.
    """

    Parameters = ArLoptiParameters
    parameters: ArLoptiParameters
    stages = ("low_probability", "high_probability")

    @override
    def terms(self, batch: TokenBatch, statistics: Statistics, stage: str) -> TokenTerms:
        """Token losses; see `Objective.terms`."""
        p = self.parameters
        advantage = reweighted_advantage(batch, p)
        terms = clipped_terms(batch, statistics.tokens, p.clip_low, p.clip_high, p.dual_clip, advantage)
        low = batch.behavior_prob < p.threshold
        return terms.restricted(batch.mask & (low if stage == "low_probability" else ~low))


def reweighted_advantage(batch: TokenBatch, parameters: ArLoptiParameters) -> Tensor:
    """A' = (ar_alpha * pi_old + ar_tau) * A, times w_neg where A <= 0; (responses, tokens)."""
    p = parameters
    advantage = (p.ar_alpha * batch.behavior_prob + p.ar_tau) * batch.token_advantage
    return torch.where(batch.token_advantage > 0, advantage, p.w_neg * advantage)
