"""What a loss needs to know about tokens outside its own micro-batch."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

import torch
from torch import Tensor


@dataclass(frozen=True)
class Statistics:
    """Pooled quantities; none carries a gradient.

    `counts` and `sums` are additive, so a distributed trainer reduces them with one all-reduce each; `values`
    are gathered.

    Args:
        counts: (2,) float64: responses with at least one token, response tokens. Normalises the loss.
        sums: float64, any shape: the method's own additive statistic (empty for most methods).
        values: (n,) the method's own values needed one by one, for a quantile (empty for most methods).
    """

    counts: Tensor
    sums: Tensor
    values: Tensor

    @property
    def responses(self) -> Tensor:
        """Number of responses with at least one token."""
        return self.counts[0]

    @property
    def tokens(self) -> Tensor:
        """Number of response tokens."""
        return self.counts[1]


def merge(a: Statistics, b: Statistics) -> Statistics:
    """Statistics of the union of two disjoint sets of responses."""
    return Statistics(a.counts + b.counts, a.sums + b.sums, torch.cat([a.values, b.values]))


def merge_all(parts: Iterable[Statistics]) -> Statistics:
    """Statistics of the union of any number, at least one, of disjoint sets of responses."""
    return reduce(merge, parts)
