"""Progress of long work: a bar on a terminal, plain lines in a log, a record for whoever asks."""

import os
import sys
import time
from pathlib import Path
from types import TracebackType

from pydantic import BaseModel, ConfigDict
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from acpo.store import write_json

SECONDS_BETWEEN_LINES = 5.0
RECORD = "progress.json"


class ProgressRecord(BaseModel):
    """`progress.json` of a run directory: how far the work is (`scripts/cluster_status.py` reads it).

    Rates and times are None before the first step of this process. `updated` is in seconds since 1970, `job` the
    SLURM job.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    step: int
    steps: int
    tokens_per_second: float | None
    seconds_left: float | None
    updated: float
    host: str
    process: int
    job: str | None


class Progress:
    """Counts steps and tokens of one piece of work; use as a context manager."""

    def __init__(self, name: str, steps: int, done: int = 0, unit: str = "tokens", directory: Path | None = None):
        """Announce work.

        Args:
            name: What it is called.
            steps: How many steps it has.
            done: How many were made before (a resumed run).
            unit: What `advance` counts.
            directory: Where `progress.json` is kept up to date, if anywhere.
        """
        self._unit, self._directory = unit, directory
        self._name, self._steps, self._done, self._tokens = name, steps, done, 0
        self._started_at, self._start, self._last_line = done, time.perf_counter(), 0.0
        self._bar: Bar | None = None

    def __enter__(self) -> "Progress":
        self._record(None, None)
        if sys.stderr.isatty():
            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
            )
            self._bar = Bar(*columns, TextColumn("{task.fields[facts]}"))
            self._task = self._bar.add_task(self._name, total=self._steps, completed=self._done, facts="")
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, tokens: int, **facts: float) -> None:
        """Count one step.

        Args:
            tokens: Tokens that the step took.
            facts: Numbers worth showing.
        """
        self._done += 1
        self._tokens += tokens
        seconds = time.perf_counter() - self._start
        finished = self._done == self._steps
        if not finished and seconds - self._last_line < (0.5 if self._bar else SECONDS_BETWEEN_LINES):
            return
        self._last_line = seconds
        rate = self._tokens / seconds
        left = seconds / (self._done - self._started_at) * (self._steps - self._done)
        self._record(rate, left)
        shown = " ".join(f"{key} {value:.4g}" for key, value in facts.items())
        shown = f"{rate:,.0f} {self._unit}/s {shown}"
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done, facts=shown)
        else:
            print(
                f"{self._name}: {self._done}/{self._steps}, {left:.0f} s left, {shown}",
                file=sys.stderr,
                flush=True,
            )

    def _record(self, rate: float | None, left: float | None) -> None:
        if self._directory is not None:
            record = ProgressRecord(
                step=self._done, steps=self._steps, tokens_per_second=rate, seconds_left=left, updated=time.time(),
                host=os.uname().nodename, process=os.getpid(), job=os.environ.get("SLURM_JOB_ID"),
            )  # fmt: skip
            write_json(self._directory / RECORD, record)
