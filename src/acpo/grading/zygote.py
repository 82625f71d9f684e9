"""A small process that forks grading workers: imports are paid once, a killed worker is replaced in milliseconds.

Run as ``python -m acpo.grading.zygote <fd> <memory bytes>``. Over the control socket it takes ``spawn`` (with the
worker's end of a socket pair attached) and ``kill <pid>``, and answers each with one line. It is single-threaded, so
that forking is safe whatever threads the parent runs; it reaps every worker it kills, and ends with its parent.
"""

import json
import os
import resource
import signal
import socket
import sys
import time

from acpo.grading import symbolic
from acpo.grading.wire import receive, send

REASON_LENGTH = 200


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


def _serve(channel: socket.socket, memory: int) -> None:
    """Answer jobs until the parent goes away."""
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.setrecursionlimit(3000)
    while (message := receive(channel)) is not None:
        try:
            correct, reason = _work(json.loads(message))
        except MemoryError:
            correct, reason = False, "memory"
        except RecursionError:
            correct, reason = False, "nested too deeply"
        except Exception as error:  # the parent counts it by name: a worker must not die of one answer
            correct, reason = False, f"grader error: {type(error).__name__}: {error}"
        send(channel, json.dumps([correct, reason[:REASON_LENGTH]]).encode())


def _spawn(control: socket.socket, channel: socket.socket, memory: int) -> int:
    pid = os.fork()
    if pid:
        channel.close()
        return pid
    control.close()
    try:
        _serve(channel, memory)
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
    memory = int(arguments[1])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import math_verify  # noqa: F401 - preloaded for the workers

    children: set[int] = set()
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 64, 1)
        if not message:
            break
        if message == b"spawn":
            pid = _spawn(control, socket.socket(fileno=descriptors[0]), memory)
            children.add(pid)
        else:
            pid = int(message.removeprefix(b"kill "))
            _kill(pid, children)
        control.sendall(f"{pid}\n".encode())
    for pid in list(children):
        _kill(pid, children)


if __name__ == "__main__":
    main(sys.argv[1:])
