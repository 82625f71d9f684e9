"""Progress of long work: a bar on a terminal, plain lines in a log."""

import sys
import time
from types import TracebackType

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

SECONDS_BETWEEN_LINES = 5.0


class Progress:
    """Counts steps and tokens of one piece of work; use as a context manager."""

    def __init__(self, name: str, steps: int, done: int = 0, unit: str = "tokens"):
        """Announce `steps` steps, of which `done` were made before (a resumed run); `unit` is what `advance` counts."""
        self._unit = unit
        self._name, self._steps, self._done, self._tokens = name, steps, done, 0
        self._started_at, self._start, self._last_line = done, time.perf_counter(), 0.0
        self._bar: Bar | None = None

    def __enter__(self) -> "Progress":
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
        shown = " ".join(f"{key} {value:.4g}" for key, value in facts.items())
        shown = f"{self._tokens / seconds:,.0f} {self._unit}/s {shown}"
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done, facts=shown)
        else:
            left = seconds / (self._done - self._started_at) * (self._steps - self._done)
            print(
                f"{self._name}: {self._done}/{self._steps}, {left:.0f} s left, {shown}",
                file=sys.stderr,
                flush=True,
            )
