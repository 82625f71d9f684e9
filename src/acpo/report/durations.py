"""Where the time of every training run went, from its completion file and its timings."""

from dataclasses import dataclass

from acpo.cells import Cell, grid_cells
from acpo.report.sources import Results


@dataclass(frozen=True)
class RunTime:
    """One training run. `sampling` and `updating` are None where they were not timed, times are in seconds.

    A resumed run has timed only what came after it resumed; `timed` says how many of its `rollouts` that is.
    """

    cell: str
    seed: int
    device: str
    rollouts: int
    updates: int
    tokens: int
    wall: float
    sampling: float | None
    updating: float | None
    timed: int
    memory_mb: float


def run_times(results: Results) -> list[RunTime]:
    """List the finished runs of the grid, those of base models included."""
    return [row for cell in grid_cells(results.study) for row in _cell(results, cell)]


def _cell(results: Results, cell: Cell) -> list[RunTime]:
    timings = results.timings(cell)
    rows = []
    for seed, record in results.records(cell).items():
        timing = timings.get(seed)
        rows.append(
            RunTime(
                cell=str(cell),
                seed=seed,
                device=record.provenance.device,
                rollouts=record.rollouts,
                updates=record.updates,
                tokens=record.response_tokens,
                wall=record.provenance.wall_seconds,
                sampling=None if timing is None else float(timing["sampling_seconds"].sum()),
                updating=None if timing is None else float(timing["update_seconds"].sum()),
                timed=0 if timing is None else len(timing),
                memory_mb=record.provenance.peak_memory_mb,
            )
        )
    return rows
