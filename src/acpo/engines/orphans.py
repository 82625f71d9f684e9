"""What a process has started ends with it, also when it is killed: it would keep a GPU's memory otherwise."""

import contextlib
import os
import subprocess
import sys
import time
import uuid
from typing import Any

MARK = "ACPO_STARTED_BY"
SECONDS_BETWEEN_LOOKS = 0.5
SECONDS_TO_END = 5.0


def leave_no_orphans() -> None:
    """Start a process that waits until this one has ended, however, and then kills what this one had started.

    It knows them by a mark in the environment that they inherit, so they must be started by `exec` and after this call.
    """
    if MARK in os.environ:
        return
    os.environ[MARK] = uuid.uuid4().hex
    arguments = [sys.executable, "-m", __name__, str(os.getpid()), os.environ[MARK]]
    quiet = subprocess.DEVNULL
    subprocess.Popen(arguments, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)


def watch(parent: int, mark: str) -> None:
    """Wait for the end of the process that started this one, then kill all that bear its mark."""
    while os.getppid() == parent:
        time.sleep(SECONDS_BETWEEN_LOOKS)
    kill_marked(MARK, mark)


def kill_marked(variable: str, mark: str) -> list[int]:
    """Kill every other process that has a variable of its environment set to a mark, and wait for their end.

    Returns:
        Their process ids.
    """
    import psutil

    killed = []
    while found := [process for process in psutil.process_iter() if _is_marked(process, variable, mark)]:
        for process in found:
            with contextlib.suppress(psutil.Error):
                process.kill()
        killed += [process.pid for process in found]
        psutil.wait_procs(found, timeout=SECONDS_TO_END)
    return sorted(set(killed))


def _is_marked(process: Any, variable: str, mark: str) -> bool:
    import psutil

    try:
        alive = process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE
        return bool(alive and process.environ().get(variable) == mark)
    except psutil.Error:
        return False


if __name__ == "__main__":
    watch(int(sys.argv[1]), sys.argv[2])
