"""A pool of killable worker processes: every job ends within a limit of time and memory, as a counted outcome."""

import atexit
import json
import os
import selectors
import socket
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any

from acpo.grading import zygote
from acpo.grading.verdict import CRASHED, GRADER_ERROR, MEMORY, TIMEOUT
from acpo.grading.wire import receive, send

LIMIT_SECONDS = 2.0
LIMIT_BYTES = 1024**3
# Of its wall time a job may use this much as CPU time, so that a batch of bad answers ends soon on a busy machine.
CPU_SHARE = 0.4

Outcome = tuple[bool, str]
Job = dict[str, Any]


class PoolError(Exception):
    """The pool cannot start; the message says what is missing."""


@dataclass
class _Worker:
    """One worker: its process, the channel to it, and the job that it does."""

    pid: int
    channel: socket.socket
    job: int | None = None
    deadline: float = 0.0


class Pool:
    """Workers behind a zygote (see `zygote`); use as a context manager, or `shared` for one per process.

    Safe to use from several threads (jobs of one batch at a time). Outcomes come in the order of the jobs.
    """

    def __init__(self, workers: int = 2, seconds: float = LIMIT_SECONDS, memory: int = LIMIT_BYTES):
        """Describe a pool; processes start with the first job.

        Args:
            workers: How many processes.
            seconds: Wall time that one job may take.
            memory: Address space that one worker may take, in bytes.
        """
        self._size, self._seconds, self._memory = workers, seconds, memory
        self._zygote: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._workers: list[_Worker] = []
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self.counts: Counter[str] = Counter()

    def __enter__(self) -> "Pool":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End every process of the pool and wait for it; in a forked child, do nothing."""
        if self._owner != os.getpid():
            return
        for worker in self._workers:
            worker.channel.close()
        self._workers = []
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._zygote is not None:
            self._zygote.wait()
            self._zygote = None

    def run(self, job: Job) -> Outcome:
        """Do one job (see `map`)."""
        return next(iter(self.map([job])))

    def map(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
        """Do jobs and yield (right, reason) in their order.

        A job beyond its time is `timeout`, one beyond its memory `memory`, one whose worker died `crashed`: all are
        outcomes, counted in `counts`, and the worker is replaced. The pool is taken until the last outcome is read or
        the iterator is closed: read them all before the same thread asks for more.

        Raises:
            PoolError: the worker processes cannot start.
        """
        with self._lock:
            yield from self._map(deque(enumerate(jobs)))

    def _map(self, waiting: deque[tuple[int, Job]]) -> Iterator[Outcome]:
        total, done, following = len(waiting), {}, 0  # type: int, dict[int, Outcome], int
        self._start(min(self._size, total))
        try:
            while following < total:
                self._assign(waiting, done)
                self._collect(done)
                while following in done:
                    yield done.pop(following)
                    following += 1
        finally:
            for worker in [each for each in self._workers if each.job is not None]:
                self._replace(worker)

    def _assign(self, waiting: deque[tuple[int, Job]], done: dict[int, Outcome]) -> None:
        """Give every idle worker a job."""
        for worker in list(self._workers):
            if worker.job is None and waiting:
                worker.job, job = waiting.popleft()
                worker.deadline = time.monotonic() + self._seconds
                try:
                    send(worker.channel, json.dumps(job).encode())
                except OSError:
                    self._finish(worker, done, (False, CRASHED))

    def _collect(self, done: dict[int, Outcome]) -> None:
        """Wait for the next answer or deadline, and take what is there."""
        busy = [worker for worker in self._workers if worker.job is not None]
        if not busy:
            return
        with selectors.DefaultSelector() as selector:
            for worker in busy:
                selector.register(worker.channel, selectors.EVENT_READ, worker)
            left = min(worker.deadline for worker in busy) - time.monotonic()
            ready = [key.data for key, _ in selector.select(max(0.0, left))]
        for worker in ready:
            message = receive(worker.channel)
            if message is None:
                self._finish(worker, done, (False, CRASHED))
            else:
                correct, reason = json.loads(message)
                self._finish(worker, done, (bool(correct), str(reason)))
        now = time.monotonic()
        for worker in busy:
            if worker.job is not None and worker.deadline <= now:
                self._finish(worker, done, (False, TIMEOUT))

    def _finish(self, worker: _Worker, done: dict[int, Outcome], outcome: Outcome) -> None:
        assert worker.job is not None
        done[worker.job] = outcome
        worker.job = None
        if outcome[1] in (TIMEOUT, CRASHED, MEMORY):
            self.counts[outcome[1]] += 1
            self._replace(worker)
        elif outcome[1].startswith(GRADER_ERROR):
            self.counts[GRADER_ERROR] += 1

    def _replace(self, worker: _Worker) -> None:
        worker.channel.close()
        self._ask(f"kill {worker.pid}".encode())
        self._workers[self._workers.index(worker)] = self._spawn()

    def _start(self, needed: int) -> None:
        if self._zygote is None:
            ours, theirs = socket.socketpair()
            environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": _search_path()}
            command = [sys.executable, "-m", zygote.__name__, str(theirs.fileno())]
            command += [str(self._memory), str(self._seconds * CPU_SHARE)]
            self._zygote = subprocess.Popen(
                command, pass_fds=[theirs.fileno()], env=environment, stdin=subprocess.DEVNULL
            )
            theirs.close()
            self._control = ours
        while len(self._workers) < needed:
            self._workers.append(self._spawn())

    def _spawn(self) -> _Worker:
        ours, theirs = socket.socketpair()
        pid = self._ask(b"spawn", theirs)
        theirs.close()
        return _Worker(pid, ours)

    def _ask(self, message: bytes, attached: socket.socket | None = None) -> int:
        assert self._control is not None
        try:
            socket.send_fds(self._control, [message], [attached.fileno()] if attached else [])
            reply = self._control.recv(64)
        except OSError:
            reply = b""
        if not reply:
            self.close()
            raise PoolError(
                "the grading workers cannot start or have ended; see the message above. "
                "Expected math-verify 0.9.0 and antlr4-python3-runtime 4.9.3 in this environment: install the "
                "project's pins"
            )
        return int(reply)


def _search_path() -> str:
    """Let the zygote import this very package, wherever it was imported from."""
    source = str(Path(__file__).parents[2])
    return os.pathsep.join(dict.fromkeys([source, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]))


@lru_cache(maxsize=1)
def _shared(process: int) -> Pool:  # noqa: ARG001
    pool = Pool(workers=min(8, 2 * (os.cpu_count() or 1)))
    atexit.register(pool.close)
    return pool


def shared() -> Pool:
    """Return this process's pool (a forked child gets one of its own)."""
    return _shared(os.getpid())
