"""ACPO: clip widths that follow the spread of the ratio within probability bins."""

from collections.abc import Mapping
from typing import Any, Literal, Self

import torch
from pydantic import BaseModel, PositiveInt, model_validator
from torch import Tensor
from typing_extensions import override

from acpo.objectives.base import DualClip, Objective, ObjectiveParameters, Pool, Width
from acpo.objectives.batch import TokenBatch
from acpo.objectives.binning import bin_index, bin_sums
from acpo.objectives.clipping import TokenTerms, clipped_terms
from acpo.objectives.statistics import Statistics


class AcpoParameters(ObjectiveParameters):
    """Parameters of Eq. 11-13, and those by which the authors' released code departs from them.

    `probability`: bins on pi_old (Eq. 11) or on pi (released). `pool`: where sigma comes from.
    `sigma_floor`: added to the variance under the root (0 in the paper, 1e-8 released). `dual_clip`: None
    in the paper, 3 released.
    """

    alpha: Width
    clip_base: Width
    clip_min: Width
    clip_max: Width
    bins: PositiveInt
    probability: Literal["behavior", "current"]
    pool: Pool
    sigma_floor: Width
    dual_clip: DualClip

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.clip_min > self.clip_max:
            raise ValueError(f"clip_min {self.clip_min} exceeds clip_max {self.clip_max}")
        return self


class Acpo(Objective):
    """Clipped surrogate with one symmetric width per probability bin (Eq. 11-13).

    The width is eps_j = clamp(clip_base + alpha sigma_j, clip_min, clip_max), without gradient. sigma_j is
    the population standard deviation (ddof 0) of rho over the tokens of probability bin j. A bin of one
    token has sigma 0, hence clip_base. With eps_j >= 1 the lower bound is not positive, so tokens of
    negative advantage are not gated from below.
    """

    Parameters = AcpoParameters
    parameters: AcpoParameters
    statistic_needs_policy = True

    def __init__(self, parameters: BaseModel | Mapping[str, Any]) -> None:
        super().__init__(parameters)
        self.pool = self.parameters.pool

    def own_sums(self, batch: TokenBatch) -> Tensor:
        """(bins, 3) per bin: token count, sum of (rho - 1), sum of (rho - 1)^2.

        Moments of rho - 1 rather than rho: near 1 their difference loses no digits.
        """
        excess = batch.log_ratio().exp().double() - 1
        return bin_sums(self._index(batch), [batch.mask, excess, excess.square()], self.parameters.bins)

    @override
    def terms(self, batch: TokenBatch, statistics: Statistics, stage: str) -> TokenTerms:
        """Token losses; see `Objective.terms`."""
        table = bin_widths(statistics.sums, self.parameters)
        padded = torch.cat([table, table.new_zeros(1)])  # the last entry serves padding
        width = padded[self._index(batch)]
        return clipped_terms(batch, statistics.tokens, width, width, self.parameters.dual_clip)

    def _index(self, batch: TokenBatch) -> Tensor:
        if self.parameters.probability == "behavior":
            return batch.behavior_bins(self.parameters.bins)
        return bin_index(batch.current_log_prob().exp(), batch.mask, self.parameters.bins)


def bin_widths(moments: Tensor, parameters: AcpoParameters) -> Tensor:
    """Clip width of each bin (Eq. 12).

    Args:
        moments: (bins, 3) per bin: token count, sum of (rho - 1), sum of (rho - 1)^2, pooled.
        parameters: alpha, clip_base, clip_min, clip_max, sigma_floor.

    Returns:
        (bins,) float64 widths; NaN for a bin without tokens.
    """
    p = parameters
    count, total, squares = moments.unbind(dim=1)
    mean = total / count
    variance = (squares / count - mean.square()).clamp(min=0)
    return (p.clip_base + p.alpha * (variance + p.sigma_floor).sqrt()).clamp(p.clip_min, p.clip_max)
