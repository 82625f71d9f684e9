"""Statistics and metrics over the data-parallel ranks."""

import torch
import torch.distributed as dist
from torch import Tensor

from acpo.objectives import Statistics, UpdateMetrics


def pooled_over_ranks(own: Statistics, group: dist.ProcessGroup) -> Statistics:
    """Merge the statistics of all ranks: sums are added, values, of which ranks may hold different numbers, gathered.

    Every rank must call it, with sums of the same shape.

    Args:
        own: This rank's statistics.
        group: The data-parallel group.

    Returns:
        The same statistics on every rank.
    """
    counts, sums = own.counts.clone(), own.sums.clone()
    dist.all_reduce(counts, group=group)
    if sums.numel():
        dist.all_reduce(sums, group=group)
    return Statistics(counts, sums, _gathered(own.values, group))


def metrics_over_ranks(own: UpdateMetrics, group: dist.ProcessGroup) -> UpdateMetrics:
    """Add up the metrics of all ranks; every rank must call it."""
    bins, responses, maxima = own.bins.clone(), own.responses.clone(), own.maxima.clone()
    dist.all_reduce(bins, group=group)
    dist.all_reduce(responses, group=group)
    dist.all_reduce(maxima, op=dist.ReduceOp.MAX, group=group)
    return UpdateMetrics(bins, responses, maxima)


def _gathered(values: Tensor, group: dist.ProcessGroup) -> Tensor:
    """Concatenate vectors of different lengths in the order of ranks."""
    ranks = dist.get_world_size(group)
    length = torch.tensor([len(values)], device=values.device)
    lengths = [torch.empty_like(length) for _ in range(ranks)]
    dist.all_gather(lengths, length, group=group)
    sizes = [int(size) for size in lengths]
    if not any(sizes):
        return values
    padded = values.new_zeros(max(sizes))
    padded[: len(values)] = values
    parts = [torch.empty_like(padded) for _ in range(ranks)]
    dist.all_gather(parts, padded, group=group)
    return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])
