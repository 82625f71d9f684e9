"""A small process that forks grading workers: imports are paid once, a killed worker is replaced in milliseconds.

Run as ``python -m acpo.grading.zygote <fd> <memory bytes> <CPU seconds>``. Over the control socket it takes ``spawn``
(with the worker's end of a socket pair attached) and ``kill <pid>``, and answers each with one line. It is
single-threaded, so that forking is safe whatever threads the parent runs; it reaps every worker it kills, and ends with
its parent.
"""

import json
import os
import resource
import signal
import socket
import sys
import time
from types import FrameType

from acpo.grading import symbolic
from acpo.grading.verdict import GRADER_ERROR, MEMORY, TIMEOUT
from acpo.grading.wire import receive, send

REASON_LENGTH = 200


class _OutOfTime(BaseException):
    """The job has used its CPU time."""


def _out_of_time(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    raise _OutOfTime


def _work(job: dict) -> tuple[bool, str]:
    """Do one job: `decide` (the default), `library` (math-verify alone), or `hang` and `eat` (tests of the limits)."""
    kind = job.pop("kind", "decide")
    if kind == "library":
        return symbolic.library(**job), "math-verify"
    if kind == "hang":
        time.sleep(3600)
    if kind == "eat":
        _ = bytearray(job["bytes"])
    if kind == "exit":
        os._exit(job["code"])
    return symbolic.decide(**job) if kind == "decide" else (False, kind)


def _serve(channel: socket.socket, memory: int, seconds: float) -> None:
    """Answer jobs until the parent goes away.

    A job that uses up its CPU time is given up here; one that waits, or computes where no signal is heard, is killed by
    the pool when its wall time is over.
    """
    signal.signal(signal.SIGVTALRM, _out_of_time)
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.setrecursionlimit(3000)
    while (message := receive(channel)) is not None:
        try:
            signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
            try:
                correct, reason = _work(json.loads(message))
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        except _OutOfTime:
            correct, reason = False, TIMEOUT
        except MemoryError:
            correct, reason = False, MEMORY
        except RecursionError:
            correct, reason = False, "nested too deeply"
        except Exception as error:  # the parent counts it by name: a worker must not die of one answer
            correct, reason = False, f"{GRADER_ERROR}: {type(error).__name__}: {error}"
        send(channel, json.dumps([correct, reason[:REASON_LENGTH]]).encode())


def _spawn(control: socket.socket, channel: socket.socket, memory: int, seconds: float) -> int:
    pid = os.fork()
    if pid:
        channel.close()
        return pid
    control.close()
    try:
        _serve(channel, memory, seconds)
    finally:
        os._exit(0)


def _kill(pid: int, children: set[int]) -> None:
    if pid in children:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        children.discard(pid)


def main(arguments: list[str]) -> None:
    """Serve the control socket until it closes, then kill what is left."""
    control = socket.socket(fileno=int(arguments[0]))
    memory, seconds = int(arguments[1]), float(arguments[2])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import math_verify  # noqa: F401 - preloaded for the workers

    children: set[int] = set()
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 64, 1)
        if not message:
            break
        if message == b"spawn":
            pid = _spawn(control, socket.socket(fileno=descriptors[0]), memory, seconds)
            children.add(pid)
        else:
            pid = int(message.removeprefix(b"kill "))
            _kill(pid, children)
        control.sendall(f"{pid}\n".encode())
    for pid in list(children):
        _kill(pid, children)


if __name__ == "__main__":
    main(sys.argv[1:])
