"""Pooling of statistics over the micro-batches and ranks of one mini-batch."""

from collections.abc import Sequence
from typing import assert_never

from acpo.objectives.base import Objective
from acpo.objectives.batch import TokenBatch
from acpo.objectives.statistics import Statistics, merge_all


def pooled_statistics(objective: Objective, ranks: Sequence[Sequence[TokenBatch]]) -> list[list[Statistics]]:
    """Statistics with which each micro-batch computes its share of the mini-batch loss.

    The normaliser always covers the whole mini-batch, so that losses summed over micro-batches and ranks are
    the mini-batch loss. The method's own statistic covers what `objective.pool` says: `minibatch` all
    micro-batches of all ranks, `ranks` the i-th micro-batch of every rank, `microbatch` that one alone.

    Args:
        objective: the method.
        ranks: for each data-parallel rank, its micro-batches in order.

    Returns:
        One `Statistics` per rank per micro-batch, in the same order.

    Raises:
        ValueError: the method pools over ranks and ranks hold different numbers of micro-batches.
    """
    own = [[objective.statistics(batch) for batch in rank] for rank in ranks]
    flat = [statistics for rank in own for statistics in rank]
    if not flat:
        return own
    whole = merge_all(flat)
    match objective.pool:
        case "minibatch":
            return [[whole for _ in rank] for rank in own]
        case "ranks":
            if len({len(rank) for rank in own}) > 1:
                raise ValueError(
                    "pool 'ranks' needs as many micro-batches on every rank, "
                    f"got {[len(rank) for rank in own]}; pad with micro-batches whose mask is all false"
                )
            step = [merge_all(parts) for parts in zip(*own, strict=True)]
            return [[_normalised(part, whole) for part in step] for _ in own]
        case "microbatch":
            return [[_normalised(part, whole) for part in rank] for rank in own]
        case _:
            assert_never(objective.pool)


def _normalised(own: Statistics, whole: Statistics) -> Statistics:
    return Statistics(whole.counts, own.sums, own.values)
