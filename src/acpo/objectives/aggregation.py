"""How token losses become one number."""

from typing import Literal

import torch
from pydantic import BaseModel, ConfigDict, PositiveFloat
from torch import Tensor


class SequenceSumNorm(BaseModel):
    """Mean over responses of the token sum over a constant (Dr. GRPO): `divisor` is in tokens.

    The divisor is a constant of the study, such as the largest response length, never the padded width, which
    would change with the composition of a micro-batch.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    mode: Literal["seq-mean-token-sum-norm"]
    divisor: PositiveFloat


Aggregation = Literal["seq-mean-token-mean", "token-mean", "seq-mean-token-sum"] | SequenceSumNorm


def response_weights(aggregation: Aggregation, length: Tensor, responses: Tensor, tokens: Tensor) -> Tensor:
    """Weight of each token loss, by response, so that the weighted sum is the aggregated loss.

    Weights use counts of the whole mini-batch: sums over micro-batches and ranks give its loss exactly.

    Args:
        aggregation: the mode. The paper's is `seq-mean-token-mean`: 1/G sum_i 1/|o_i| sum_t (Eq. 13).
        length: (responses,) tokens each response counts in its denominator.
        responses: scalar, responses in the mini-batch.
        tokens: scalar, tokens counted in the denominator over the mini-batch.

    Returns:
        (responses,) float64; finite for a response, or a mini-batch, without tokens.
    """
    if aggregation == "token-mean":
        return (1 / tokens.double().clamp(min=1)).expand(length.shape)
    per_response = (1 / responses.double().clamp(min=1)).expand(length.shape)
    if aggregation == "seq-mean-token-sum":
        return per_response
    if isinstance(aggregation, SequenceSumNorm):
        return per_response / aggregation.divisor
    return per_response / torch.clamp(length, min=1)
