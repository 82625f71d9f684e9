"""What a process has started ends with it, also when it is killed: it would keep a GPU's memory otherwise."""

import contextlib
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterable
from typing import Any

MARK = "ACPO_STARTED_BY"
SECONDS_BETWEEN_LOOKS = 0.5
SECONDS_TO_END = 5.0


def leave_no_orphans() -> None:
    """Start a process that waits until this one has ended, however, and then kills what this one had started.

    It knows them by their descent while this process lives, and by a mark in the environment that they inherit.
    """
    if MARK in os.environ:
        return
    os.environ[MARK] = uuid.uuid4().hex
    arguments = [sys.executable, "-m", __name__, str(os.getpid()), os.environ[MARK]]
    quiet = subprocess.DEVNULL
    watcher = subprocess.Popen(
        arguments, stdin=quiet, stdout=subprocess.PIPE, stderr=quiet, start_new_session=True
    )  # fmt: skip
    assert watcher.stdout is not None
    watcher.stdout.readline()  # it looks
    watcher.stdout.close()


def watch(parent: int, mark: str) -> None:
    """Wait for the end of the process that started this one, then kill all that bear its mark or came from it.

    Some write a title over their environment, and with it over the mark: those are known from when they had a parent.
    """
    import psutil

    print("ready", flush=True)
    seen: set[psutil.Process] = set()
    while os.getppid() == parent:
        with contextlib.suppress(psutil.Error):
            seen.update(psutil.Process(parent).children(recursive=True))
        time.sleep(SECONDS_BETWEEN_LOOKS)
    kill_all(seen, MARK, mark)


def kill_all(seen: Iterable[Any], variable: str, mark: str) -> None:
    """Kill processes and every other one that has a variable of its environment set to a mark, and wait for their end.

    Args:
        seen: Processes (of psutil) that were seen before; those that have ended are left out.
        variable: Name of the variable.
        mark: Its value.
    """
    import psutil

    living = {process for process in seen if _is_alive(process)}
    while living := {process for process in living if _is_alive(process)} | {
        process for process in psutil.process_iter() if _is_marked(process, variable, mark)
    }:
        for process in living:
            with contextlib.suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(living, timeout=SECONDS_TO_END)


def _is_alive(process: Any) -> bool:
    import psutil

    try:
        return bool(process.pid != os.getpid() and process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def _is_marked(process: Any, variable: str, mark: str) -> bool:
    import psutil

    try:
        return _is_alive(process) and process.environ().get(variable) == mark
    except psutil.Error:
        return False


if __name__ == "__main__":
    watch(int(sys.argv[1]), sys.argv[2])
