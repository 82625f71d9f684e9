"""Snakemake and all its jobs killed twenty times at random moments; the results are an undisturbed run's."""

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
import yaml

from tests.workflow.conftest import SMALL, command, environment
from tests.workflow.test_small_study import results_of

pytestmark = pytest.mark.slow
KILLS = 20
STUDY = {**SMALL, "grid": {"methods": ["acpo"], "regimes": ["nonp"]}}


def line(directory: Path, *arguments: str) -> list[str]:
    directory.mkdir(exist_ok=True)
    (directory / "small.yaml").write_text(yaml.safe_dump(STUDY))
    return command(directory, "--cores", "2", "--configfile", str(directory / "small.yaml"), *arguments)


def finish(directory: Path, *arguments: str) -> None:
    done = subprocess.run(line(directory, *arguments), capture_output=True, text=True, env=environment(), timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr


def traces(directory: Path) -> set[tuple[str, int]]:
    """List what jobs have written, and when."""
    found = set()
    for path in (directory / "results").rglob("*"):
        try:
            found.add((str(path), path.stat().st_mtime_ns))
        except FileNotFoundError:  # a temporary file
            continue
    return found


def killed(directory: Path, draw: random.Random) -> bool:
    """Live one life: some time after the first trace of a job everything is killed, if it has not ended by itself."""
    directory.mkdir(exist_ok=True)
    before = traces(directory)
    with (directory / "out.txt").open("a") as out:
        process = subprocess.Popen(
            line(directory, "--rerun-incomplete"), env=environment(), start_new_session=True, stdout=out, stderr=out
        )
    while process.poll() is None and traces(directory) == before:
        time.sleep(0.02)
    time.sleep(draw.uniform(0, 5))
    ended = process.poll() is not None
    if not ended:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return not ended


def test_twenty_kills(tmp_path: Path) -> None:
    finish(tmp_path / "undisturbed")
    directory, draw = tmp_path / "killed", random.Random(5)
    kills = 0
    for _ in range(KILLS):
        kills += killed(directory, draw)
        finish(directory, "--unlock")
        if (directory / "results/report.html").exists():  # it got through: start over with another part of the study
            for name in draw.sample(["runs/mini_acpo_nonp/seed0/run.json", "data/countdown_mini/dev.parquet"], 1):
                (directory / "results" / name).unlink()
    finish(directory, "--rerun-incomplete")
    print(f"{kills} kills")
    assert kills >= KILLS * 3 // 4
    assert results_of(directory) == results_of(tmp_path / "undisturbed")
