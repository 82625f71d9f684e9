"""Long training in short slots: a signal ends a segment at a safe point, and the next one goes on from there.

A segment is one process's share of a training run. `segments.json` in the run directory lists them. Engines use it so:

    with Segment(run_directory, "mini_acpo_offp seed 0", fingerprint) as segment:
        segment.begin(step)                     # the step of the state that it resumes from
        for step in ...:
            ...                                 # train
            segment.alive()
            if due or segment.signalled:
                ...                             # save a state
                segment.saved(step)
                segment.end_if_signalled()
"""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Literal

from pydantic import BaseModel, ConfigDict

from acpo.store import StoreError, read_json, write_json

EXIT_STATUS = 75  # EX_TEMPFAIL of sysexits.h: nothing is wrong, start again to go on
SIGNALS = (signal.SIGUSR1, signal.SIGTERM, signal.SIGINT)
ENDED_BY_SIGNAL = frozenset(number.name for number in SIGNALS)
ENDED_EARLY = frozenset(["SIGTERM", "SIGINT"])  # cancellation, preemption, Ctrl-C: they say nothing about the slot
SHORTEST_COUNTED_SECONDS = 30.0  # a segment that was killed sooner says nothing about the length of its slot
SECONDS_BETWEEN_SIGNS = 20.0
RECORD = "segments.json"


class SegmentEndedError(Exception):
    """A signal ended the segment at a safe point; the message says where the run stands."""

    def __init__(self, message: str, by: signal.Signals):
        """Say what, and which signal it was."""
        super().__init__(message)
        self.by = by


class NoProgressError(Exception):
    """Two segments in a row saved nothing: more of them would only use up the allocation."""


class SegmentRecord(BaseModel):
    """One segment: the steps that were on disk at its start and at its end, and how long it is known to have run.

    `ended_by` is the first signal's name, `done`, `error`, or None: running, or killed without a word.
    """

    model_config = ConfigDict(extra="forbid")

    start: int
    end: int
    seconds: float
    ended_by: str | None
    job: str | None

    @property
    def idle(self) -> bool:
        """Whether it had time and saved nothing; what a person or another job ended (`ENDED_EARLY`) does not count."""
        return self.end <= self.start and self.seconds >= SHORTEST_COUNTED_SECONDS and self.ended_by not in ENDED_EARLY


class SegmentList(BaseModel):
    """`segments.json`: the segments of one run, oldest first."""

    model_config = ConfigDict(extra="forbid")

    schema_version: Literal[1] = 1
    fingerprint: str
    segments: list[SegmentRecord] = []


class Segment:
    """One process's share of a training run; a context manager, in the main thread, around all that must not be cut.

    SIGUSR1 (the warning before a time limit), SIGTERM (preemption, cancellation) and SIGINT (Ctrl-C) are noted, and
    acted on where the run says so (`end_if_signalled`). A second SIGINT ends it at once.
    """

    def __init__(self, run_directory: Path, name: str, fingerprint: str, signals: Sequence[signal.Signals] = SIGNALS):
        """Prepare.

        Args:
            run_directory: Where `segments.json` lies; held by this process alone.
            name: What is trained, for messages.
            fingerprint: Hash of all that segments of one run share; a file of another run is begun anew.
            signals: Which signals are noted; none where the engine takes them itself and raises `SegmentEndedError`.
        """
        self._interrupts = 0
        self._signals = signals
        self._path, self._name, self._fingerprint = run_directory / RECORD, name, fingerprint
        self._signal: signal.Signals | None = None
        self._list: SegmentList | None = None
        self._clock, self._last_written = time.monotonic(), 0.0

    def __enter__(self) -> "Segment":
        self._before = {number: signal.signal(number, self._noted) for number in self._signals}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self._list is not None:
            by = error.by if isinstance(error, SegmentEndedError) else self._signal
            ended_by = "done" if error is None else by.name if by else "error"
            with contextlib.suppress(StoreError) if error else contextlib.nullcontext():
                self._write(ended_by)

    @property
    def signalled(self) -> bool:
        """Whether a signal asked for the end of the segment."""
        return self._signal is not None

    def begin(self, step: int) -> None:
        """Start at a step, 0 for a new run.

        Raises:
            NoProgressError: the last two segments that had time for it saved nothing.
        """
        known = self._earlier()
        telling = [each for each in known.segments if each.end > each.start or each.idle]
        if len(telling) > 1 and telling[-1].idle and telling[-2].idle:
            times = " and ".join(f"{each.seconds:.0f} s" for each in telling[-2:])
            raise NoProgressError(
                f"{self._name}: no progress after step {step} in two segments of {times}. Give it longer slots, save "
                f"more often (checkpoint_every), or see its log for another cause; then delete {self._path} and start "
                "again"
            )
        job = os.environ.get("SLURM_JOB_ID")
        known.segments.append(SegmentRecord(start=step, end=step, seconds=0, ended_by=None, job=job))
        self._list = known
        self._write(None)

    def saved(self, step: int) -> None:
        """Say that the state after a step is on disk."""
        assert self._list is not None
        self._list.segments[-1].end = step
        self._write(None)

    def alive(self) -> None:
        """Say that the run goes on; keeps the known length of the segment up to date."""
        if time.monotonic() - self._last_written > SECONDS_BETWEEN_SIGNS:
            self._write(None)

    def end_if_signalled(self) -> None:
        """End the segment if a signal asked for it.

        Raises:
            SegmentEndedError: it did.
        """
        if self._signal is not None:
            step = self._list.segments[-1].end if self._list else 0
            stands = f"is saved after step {step}: the same command goes on from there" if step else "starts anew"
            raise SegmentEndedError(f"ended by {self._signal.name}: {self._name} {stands}", self._signal)

    def _noted(self, number: int, _frame: FrameType | None) -> None:
        """Note a signal, and at once how long the segment ran: its slot may end before a safe point comes.

        The first one counts: a time limit that is reached sends SIGTERM after the warning.
        """
        self._interrupts += number == signal.SIGINT
        if self._interrupts > 1:
            raise KeyboardInterrupt
        self._signal = self._signal or signal.Signals(number)
        with contextlib.suppress(OSError):  # no print: a handler may interrupt one
            os.write(2, f"{self._signal.name}: {self._name} ends at its next safe point\n".encode())
        if self._list is not None:
            with contextlib.suppress(StoreError):
                self._write(self._signal.name)

    def _earlier(self) -> SegmentList:
        """Read the segments of this run; those of another one, or of a finished one, are of no interest."""
        if self._path.exists():
            try:
                known = read_json(self._path, SegmentList)
            except StoreError as error:
                print(f"warning: {error}", file=sys.stderr)
            else:
                last = known.segments[-1].ended_by if known.segments else None
                if known.fingerprint == self._fingerprint and last != "done":
                    return known
        return SegmentList(fingerprint=self._fingerprint)

    def _write(self, ended_by: str | None) -> None:
        assert self._list is not None
        last = self._list.segments[-1]
        last.seconds, last.ended_by = round(time.monotonic() - self._clock, 1), ended_by
        self._last_written = time.monotonic()
        write_json(self._path, self._list)
