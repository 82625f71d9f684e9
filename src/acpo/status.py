"""How far a study is on a cluster: one line a run, from its files and from the queue."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from acpo import progress, segments
from acpo.cells import BASE, Cell, CellNames, cell_seeds, grid_cells
from acpo.config import Study
from acpo.progress import ProgressRecord
from acpo.segments import SegmentList
from acpo.slurm import Job
from acpo.store import StoreError, read_json

STAGES = (
    ("train", "run.json", ("train_policy", "make_base")),
    ("sample", "samples.parquet", ("sample_responses",)),
    ("grade", "verdicts.parquet", ("grade_samples",)),
)
SILENT_SECONDS = 900.0  # a run that wrote no progress for so long, and whose process cannot be seen, is not running
LOG_LINES = 3
LOG_BYTES = 4096


@dataclass(frozen=True)
class RunStatus:
    """One run. `state`: waiting, queued, running, stopped (a signal ended it; it resumes), failed, done.

    `stage` is the step that it is at: train, sample, grade, or empty when all are done. `detail` says why it is
    queued, or quotes the log's last lines where it failed.
    """

    cell: str
    seed: int
    stage: str
    state: str
    job: str | None = None
    step: int | None = None
    steps: int | None = None
    tokens_per_second: float | None = None
    seconds_left: float | None = None
    segments: int = 0
    detail: str = ""


def study_status(study: Study, results: Path, jobs: Sequence[Job]) -> list[RunStatus]:
    """Describe every run of the grid, and those of other cells that lie in the results or in the queue.

    Args:
        study: The study that runs.
        results: Its results directory.
        jobs: What SLURM holds of it; empty without SLURM.
    """
    cells = [*grid_cells(study), *_other_cells(study, results, jobs)]
    return [run_status(cell, seed, results, jobs) for cell in dict.fromkeys(cells) for seed in cell_seeds(study, cell)]


def _other_cells(study: Study, results: Path, jobs: Sequence[Job]) -> list[Cell]:
    """List the cells that something was started for, whatever the grid: of ablations, or asked for by name."""
    names = CellNames(study)
    started = {path.name for path in results.glob("runs/*")}
    queued = {job.wildcards.rpartition("_")[0] for job in jobs} | {f"{job.wildcards}_{BASE}" for job in jobs}
    return [names.parse(name) for name in names if name in started | queued]


def run_status(cell: Cell, seed: int, results: Path, jobs: Sequence[Job]) -> RunStatus:
    """Describe one run (see `study_status`)."""
    run = results / "runs" / str(cell) / f"seed{seed}"
    open_stages = [each for each in STAGES if not (run / each[1]).exists()]
    if not open_stages:
        return RunStatus(str(cell), seed, "", "done", segments=len(_segments(run)))
    stage, _, rules = open_stages[0]
    names = {f"{cell}_{seed}", *([cell.suite] if cell.is_base else [])}
    job = next((each for each in jobs if each.rule in rules and each.wildcards in names), None)
    known = _progress(run) if stage == "train" else None
    log = results / "logs" / str(cell) / f"seed{seed}" / f"{stage}.log"
    ready = [run / output for _, output, _ in STAGES if (run / output).exists()]
    since = max((path.stat().st_mtime for path in ready), default=0.0)
    state, detail = _state(job, known, _segments(run) if stage == "train" else [], log, since)
    running = state == "running" and known is not None
    return RunStatus(
        str(cell), seed, stage, state, job.identifier if job else None, known.step if known else None,
        known.steps if known else None, known.tokens_per_second if running and known else None,
        known.seconds_left if running and known else None, len(_segments(run)), detail,
    )  # fmt: skip


def _state(
    job: Job | None, known: ProgressRecord | None, past: list[segments.SegmentRecord], log: Path, since: float
) -> tuple[str, str]:
    """Name the state and its detail; a log from before `since`, when the stage before was done, is of another time."""
    if job is not None:
        queued = job.state in ("PENDING", "REQUEUED", "CONFIGURING")
        return ("queued", job.reason) if queued else ("running", "")
    if known is not None and _lives(known):
        return "running", ""
    if past and past[-1].ended_by in segments.ENDED_BY_SIGNAL:
        return "stopped", f"{past[-1].ended_by} at step {past[-1].end}: the next slot goes on from there"
    if log.exists() and log.stat().st_mtime >= since:
        return "failed", _last_lines(log)
    return "waiting", ""


def _lives(known: ProgressRecord) -> bool:
    """Say whether the process that wrote a record still runs: seen on this machine, judged by its silence elsewhere."""
    if known.host == os.uname().nodename:
        try:
            return b"train_policy" in Path(f"/proc/{known.process}/cmdline").read_bytes()
        except OSError:
            return False
    return time.time() - known.updated < SILENT_SECONDS


def _progress(run: Path) -> ProgressRecord | None:
    path = run / progress.RECORD
    try:
        return read_json(path, ProgressRecord) if path.exists() else None
    except StoreError:  # replaced or damaged: it only tells how far the run is
        return None


def _segments(run: Path) -> list[segments.SegmentRecord]:
    path = run / segments.RECORD
    try:
        return read_json(path, SegmentList).segments if path.exists() else []
    except StoreError:
        return []


def _last_lines(log: Path) -> str:
    with log.open("rb") as handle:
        handle.seek(max(0, log.stat().st_size - LOG_BYTES))
        text = handle.read().decode("utf-8", errors="replace")
    return "\n".join(line for line in text.splitlines()[-LOG_LINES:] if line.strip()) or f"{log} is empty"
