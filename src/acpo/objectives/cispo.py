"""CISPO: the ratio is clipped as a weight, tokens are not gated."""

import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor
from typing_extensions import override

from acpo.objectives.base import Objective, ObjectiveParameters, Width
from acpo.objectives.batch import TokenBatch
from acpo.objectives.clipping import TokenTerms, as_width
from acpo.objectives.statistics import Statistics


class Gate(BaseModel):
    """Drop a token when (A > 0 and rho > 1 + clip_high) or (A < 0 and rho < 1 - clip_low)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    clip_low: Width
    clip_high: Width


class CispoParameters(ObjectiveParameters):
    """Bounds of the weight [1 - clip_low, 1 + clip_high]; `gate` None keeps every token, as CISPO says.

    The authors' released code gates at DAPO's widths.
    """

    clip_low: Width
    clip_high: Width
    gate: Gate | None


class Cispo(Objective):
    """Loss -sg[clip(rho, 1 - eps_l, 1 + eps_h)] A log pi.

    The gradient flows through log pi alone, so a token far outside the bounds keeps the bounded gradient
    -clip(rho) A, where the clipped surrogate would drop it. Logged clip widths are the bounds of the
    weight; the logged clip fraction counts gated tokens, hence 0 without a gate. Gated tokens stay in the
    denominator.
    """

    Parameters = CispoParameters
    parameters: CispoParameters

    @override
    def terms(self, batch: TokenBatch, statistics: Statistics, stage: str) -> TokenTerms:
        """Token losses; see `Objective.terms`."""
        p = self.parameters
        log_ratio = batch.log_ratio().detach()
        ratio = log_ratio.exp()
        dropped_low, dropped_high = _gated(ratio, batch.token_advantage, p.gate)
        kept = batch.mask & ~(dropped_low | dropped_high)
        coefficient = -ratio.clamp(1 - p.clip_low, 1 + p.clip_high) * batch.token_advantage
        return TokenTerms(
            loss=torch.where(kept, coefficient * batch.current_log_prob(), 0.0),
            ratio=ratio,
            log_ratio=log_ratio,
            clip_low=as_width(p.clip_low, ratio),
            clip_high=as_width(p.clip_high, ratio),
            clipped_low=dropped_low,
            clipped_high=dropped_high,
            dual_clipped=torch.zeros_like(batch.mask),
            coefficient=torch.where(kept, coefficient, 0.0),
            selected=batch.mask,
            length=batch.length,
            tokens=statistics.tokens,
        )


def _gated(ratio: Tensor, advantage: Tensor, gate: Gate | None) -> tuple[Tensor, Tensor]:
    if gate is None:
        none = torch.zeros_like(ratio, dtype=torch.bool)
        return none, none
    low = (advantage < 0) & (ratio < 1 - gate.clip_low)
    high = (advantage > 0) & (ratio > 1 + gate.clip_high)
    return low, high
