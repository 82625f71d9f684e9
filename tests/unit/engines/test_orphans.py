"""A killed process takes along what it had started, marked or not."""

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

PARENT = """
import os, subprocess, sys, time
from acpo.engines.orphans import leave_no_orphans
leave_no_orphans()
environment = None if sys.argv[1] == "marked" else {}
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], env=environment)
time.sleep(3)
print(child.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("kind", ["marked", "mark written over"])
def test_sigkill_ends_the_children(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ACPO_STARTED_BY", raising=False)
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    parent = subprocess.Popen([sys.executable, script, kind], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    try:
        parent.kill()
        parent.wait()
        end = time.monotonic() + 15
        while child.is_running() and child.status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < end, "the child lives on"
            time.sleep(0.05)
    except psutil.NoSuchProcess:
        return
    finally:
        if child.is_running():
            child.kill()
