"""Progress: plain lines in a log, at most one every five seconds and always the last."""

import itertools
import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from acpo import progress as progress_module
from acpo.progress import Progress


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A clock that a test turns by hand."""
    made = SimpleNamespace(now=100.0)
    monkeypatch.setattr(progress_module.time, "perf_counter", lambda: made.now)
    return made


def test_lines_by_hand(clock: SimpleNamespace, capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("mini_acpo_offp seed 0", 4) as progress:
        for seconds in (2, 4, 4, 4):  # told after 6 s and, being the last, after 14 s
            clock.now += seconds
            progress.advance(1000, reward=0.25, entropy=1.23456)
    assert capsys.readouterr().err.splitlines() == [
        "mini_acpo_offp seed 0: 2/4, 6 s left, 333 tokens/s reward 0.25 entropy 1.235",
        "mini_acpo_offp seed 0: 4/4, 0 s left, 286 tokens/s reward 0.25 entropy 1.235",
    ]


def test_a_resumed_run_expects_the_pace_of_this_process(
    clock: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    with Progress("run", 20, done=10) as progress:
        clock.now += 6
        progress.advance(600)
    assert capsys.readouterr().err.splitlines() == ["run: 11/20, 54 s left, 100 tokens/s "]


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(progress_module.sys.stderr, "isatty", lambda: True, raising=False)
    seen = []
    monkeypatch.setattr(progress_module.Bar, "update", lambda self, task, **values: seen.append(values["completed"]))
    monkeypatch.setattr(progress_module.Bar, "start", lambda self: seen.append("start"))
    monkeypatch.setattr(progress_module.Bar, "stop", lambda self: seen.append("stop"))
    times = itertools.count(0, 1)
    monkeypatch.setattr(progress_module.time, "perf_counter", lambda: float(next(times)))
    with Progress("run", 3) as progress:
        progress.advance(10)
        progress.advance(10)
    assert seen == ["start", 1, 2, "stop"]
    assert "run: 1/3" not in capsys.readouterr().err


def test_a_record_for_whoever_asks(clock: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    monkeypatch.setattr(progress_module.time, "time", lambda: 1e9)

    def told() -> dict:
        return json.loads((tmp_path / "progress.json").read_text())

    with Progress("run", 20, done=10, directory=tmp_path) as progress:
        assert told() == {
            "step": 10, "steps": 20, "tokens_per_second": None, "seconds_left": None, "updated": 1e9,
            "host": os.uname().nodename, "process": os.getpid(), "job": "17",
        }  # fmt: skip
        clock.now += 6
        progress.advance(600)
        assert (told()["step"], told()["tokens_per_second"], told()["seconds_left"]) == (11, 100.0, 54.0)
        clock.now += 1
        progress.advance(600)
        assert told()["step"] == 11  # as seldom as lines
