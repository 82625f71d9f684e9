"""What every engine does with a run's directory: hold it alone, know whose states lie there, complete it."""

import fcntl
import math
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from acpo.cells import resolve
from acpo.config import digest
from acpo.engines import TrainingJob
from acpo.provenance import Clock, code_hash, training_modules
from acpo.results import CheckpointInfo, RunRecord
from acpo.store import StoreError, write_json

STATES = "states"
"""The directory of a run in which an engine keeps what it resumes from; removed when the run is complete."""


@contextmanager
def exclusive(directory: Path) -> Iterator[None]:
    """Hold a run directory for this process alone; the lock goes with the process, however it ends.

    What a killed process left half-written is removed, and so is the completion file of an earlier run.

    Args:
        directory: The run directory; it is made.

    Raises:
        StoreError: another process holds it, or it cannot be written.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(directory / "lock", os.O_CREAT | os.O_RDWR, 0o644)
    except OSError as error:
        raise StoreError(f"cannot write in {directory}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StoreError(f"{directory}: another process is training this run: wait for it or end it") from error
        except OSError as error:
            raise StoreError(
                f"{directory}: no file locks on this file system ({error.strerror}), without which two jobs could "
                "train one run: mount it with flock, or work on another one"
            ) from error
        (directory / "run.json").unlink(missing_ok=True)
        for leftover in [*directory.glob(".*.tmp"), *directory.glob("*/.*.tmp")]:
            shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
        yield
    finally:
        os.close(descriptor)


def fingerprint(job: TrainingJob) -> str:
    """Hash all that a resumed run must share with the one that was killed: configuration, seed, code, data."""
    content = {
        "configuration": resolve(job.study, job.cell),
        "seed": job.seed,
        "code": code_hash(training_modules(job.study, job.cell)),
        "data": job.data_hashes,
        "measured": job.measured,
    }
    return digest(content)


def complete(
    job: TrainingJob,
    clock: Clock,
    checkpoints: dict[str, CheckpointInfo],
    rollouts: int,
    updates: int,
    tokens: int,
    device: str = "cpu",
) -> None:
    """Write `run.json`, which says that a run is finished, and remove the states that it could resume from.

    Args:
        job: The run.
        clock: Started when the run, or what was left of it, was.
        checkpoints: Its models by kind (`last`, `best`).
        rollouts: How many rollouts it made in all.
        updates: How many updates.
        tokens: How many response tokens.
        device: Where it ran.

    Raises:
        StoreError: a measured parameter is not a number, or the file cannot be written.
    """
    modules = training_modules(job.study, job.cell)
    if any(not math.isfinite(value) for value in job.measured.values()):
        raise StoreError(f"{job.cell}: a measured parameter is not a number: {job.measured}")
    record = RunRecord(
        cell=str(job.cell), seed=job.seed, rollouts=rollouts, updates=updates, response_tokens=tokens,
        checkpoints=checkpoints, measured_parameters=job.measured,
        provenance=clock.provenance(resolve(job.study, job.cell), modules, job.data_hashes, device),
    )  # fmt: skip
    write_json(job.run_directory / "run.json", record)
    shutil.rmtree(job.run_directory / STATES, ignore_errors=True)
