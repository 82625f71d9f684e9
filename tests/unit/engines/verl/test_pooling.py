"""Statistics and metrics over ranks, with two processes over gloo."""

from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from acpo.engines.verl.pooling import metrics_over_ranks, pooled_over_ranks
from acpo.objectives import LOG_BINS, Statistics, UpdateMetrics, merge


def statistics(rank: int) -> Statistics:
    """Rank 0 holds two values and rank 1 none."""
    values = torch.tensor([0.5, 0.25]) if rank == 0 else torch.empty(0)
    return Statistics(torch.tensor([2.0, 7.0 + rank]).double(), torch.full((3, 2), 1.0 + rank).double(), values)


def metrics(rank: int) -> UpdateMetrics:
    bins = torch.arange(LOG_BINS * 13, dtype=torch.float64).view(LOG_BINS, 13) * (rank + 1)
    return UpdateMetrics(bins, torch.tensor(2.0).double(), torch.tensor([1.5 - rank, 0.2 + rank]).double())


def rank_main(rank: int, directory: str) -> None:
    place = Path(directory)
    dist.init_process_group("gloo", f"file://{place / 'store'}", rank=rank, world_size=2)
    pooled = pooled_over_ranks(statistics(rank), dist.group.WORLD)
    none = pooled_over_ranks(Statistics(torch.ones(2).double(), torch.empty(0), torch.empty(0)), dist.group.WORLD)
    summed = metrics_over_ranks(metrics(rank), dist.group.WORLD)
    torch.save(
        [
            pooled.counts,
            pooled.sums,
            pooled.values,
            none.sums,
            none.values,
            summed.bins,
            summed.responses,
            summed.maxima,
        ],
        place / f"{rank}.pt",
    )
    dist.destroy_process_group()


def test_every_rank_has_what_one_process_would(tmp_path) -> None:
    mp.start_processes(rank_main, (str(tmp_path),), nprocs=2, start_method="fork")
    pooled, summed = merge(statistics(0), statistics(1)), metrics(0) + metrics(1)
    empty = torch.empty(0)
    expected = [
        pooled.counts, pooled.sums, pooled.values, empty, empty, summed.bins, summed.responses, summed.maxima,
    ]  # fmt: skip
    for rank in (0, 1):
        for made, wanted in zip(torch.load(tmp_path / f"{rank}.pt", weights_only=True), expected, strict=True):
            torch.testing.assert_close(made, wanted, check_dtype=False)
