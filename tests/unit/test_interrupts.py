"""Ctrl-C ends any script in one line, whenever it comes: while it imports, reads, works."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small_study import ROOT, SmallStudy

from acpo import cli, interrupts
from acpo.segments import EXIT_STATUS, NoProgressError, SegmentEndedError

SCRIPTS = sorted((ROOT / "scripts").glob("*.py"))
# What Python itself loads is none of ours: its own traceback there cannot be helped.
STARTER = """
import argparse, pathlib, runpy, signal, sys
print("up", flush=True)
sys.argv.pop(0)
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def interrupted(line: list[str], after: float) -> tuple[int, str]:
    """Run a script and press Ctrl-C some seconds after Python itself is up; returns its status and what it said."""
    process = subprocess.Popen(
        [sys.executable, "-c", STARTER, *line], cwd=ROOT, env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    time.sleep(after)
    process.send_signal(signal.SIGINT)
    return process.wait(timeout=60), process.communicate()[1]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_every_script_goes_through_the_frame(script: Path) -> None:
    """`acpo.cli` comes before any other import of weight, and `run` has the last word."""
    text = script.read_text()
    imports = re.findall(r"^from (acpo\S*|pandas|torch|rich\S*)", text, re.MULTILINE)
    assert "acpo.cli" in imports
    assert re.search(r'if __name__ == "__main__":\n    run\(main\)\n$', text)


@pytest.mark.parametrize("after", [0.05, 0.2, 0.5, 1.0, 1.5, 3.0])
def test_while_it_imports_reads_and_trains(small: SmallStudy, after: float) -> None:
    small.change(training={"prompts": 32000})  # more than any machine trains before Ctrl-C
    run = small.run("mini_acpo_offp")
    line = [str(ROOT / "scripts/train_policy.py"), *small.train_arguments("mini_acpo_offp", run)]
    status, said = interrupted(line, after)
    assert "Traceback" not in said
    # An extension module that is interrupted while it is loaded may abort: nothing of ours runs there.
    assert status in (-signal.SIGINT, -signal.SIGABRT, interrupts.EXIT_STATUS, EXIT_STATUS), said
    assert said.strip(), "it ended without a word"


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (SegmentEndedError("ended by SIGUSR1: saved", signal.SIGUSR1), 75, "ended by SIGUSR1: saved\n"),
        (NoProgressError("no progress"), 1, "error: no progress\n"),
    ],
)
def test_status_and_line(error: BaseException, status: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    def main() -> None:
        raise error

    with pytest.raises(SystemExit) as end:
        cli.run(main)
    assert end.value.code == status
    assert capsys.readouterr().err == said


def test_what_an_extension_makes_of_ctrl_c_is_ctrl_c(capsys: pytest.CaptureFixture[str]) -> None:
    wrapped, other = ImportError("cannot load"), ImportError("cannot load")
    wrapped.__context__ = KeyboardInterrupt()
    interrupts._report(ImportError, wrapped, None)
    assert capsys.readouterr().err == "interrupted\n"
    interrupts._report(ImportError, other, None)
    assert "cannot load" in capsys.readouterr().err
