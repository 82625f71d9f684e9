"""Probability bins (Eq. 11) and sums over them."""

import torch
from torch import Tensor


def bin_index(probability: Tensor, mask: Tensor, bins: int) -> Tensor:
    """Bin of each token among equal-width bins on probability (Eq. 11).

    The paper's bin j = min(B, floor(B p) + 1) counts from 1; this index is j - 1. The product is taken in
    float32, so that p = k/B lands where the floor says, and p = 1, or a hair above, belongs to the last bin.

    Args:
        probability: (responses, tokens) token probabilities.
        mask: (responses, tokens) bool, response tokens.
        bins: B, number of bins.

    Returns:
        (responses, tokens) int64 in 0..B-1; B at padding.
    """
    scaled = (probability.detach().float() * bins).clamp(max=bins - 1)
    return torch.where(mask, scaled.long().clamp(min=0), bins)


def bin_sums(index: Tensor, columns: list[Tensor], bins: int) -> Tensor:
    """Sum each quantity over the tokens of each bin, in float64.

    A product with the one-hot matrix: deterministic on every device and no loop over bins.

    Args:
        index: (responses, tokens) from `bin_index`.
        columns: tensors of the shape of `index`, finite at padding.
        bins: B, number of bins.

    Returns:
        (bins, len(columns)) sums.
    """
    member = index.flatten() == torch.arange(bins, device=index.device).unsqueeze(1)
    values = torch.stack([column.detach().flatten().double() for column in columns])
    return member.double() @ values.T
