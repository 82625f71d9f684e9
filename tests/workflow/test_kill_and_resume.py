"""Training that is killed, or runs out of disk, at any point ends with the bytes of an undisturbed run."""

import json
import os
import random
import re
import resource
import runpy
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/unit"))

from small_study import SmallStudy, make_small_study  # noqa: E402

CELL = "mini_acpo_nonp"
SCRIPT = ROOT / "scripts/train_policy.py"
PASSING = ("wall_seconds", "peak_memory_mb", "git_commit", "git_dirty")
TIMES = ("tensorboard", "timings.parquet", "progress.json", "segments.json", "lock")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> SmallStudy:
    return make_small_study(tmp_path_factory.mktemp("kill"))


@pytest.fixture(scope="module")
def undisturbed(small: SmallStudy, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    run = tmp_path_factory.mktemp("undisturbed") / "run"
    assert forked(small, run).wait() == 0
    return content(run)


def content(run: Path) -> dict[str, bytes]:
    """Every byte that a run promises: not its times, its lock, its event log, nor the state of the checkout."""
    files = {str(path.relative_to(run)): path.read_bytes() for path in sorted(run.rglob("*")) if path.is_file()}
    record = json.loads(files.pop("run.json"))
    for key in PASSING:
        del record["provenance"][key]
    files["run.json"] = json.dumps(record, sort_keys=True).encode()
    return {name: data for name, data in files.items() if name.split("/")[0] not in TIMES}


def test_what_is_compared(undisturbed: dict[str, bytes]) -> None:
    assert {name.split("/")[0] for name in undisturbed} == {
        "best", "last", "metrics.parquet", "rollouts.parquet", "run.json", "tokens",
    }  # fmt: skip
    assert {"best/model.safetensors", "last/model.safetensors", "tokens/rollout_000002.parquet"} < set(undisturbed)


class Child:
    """The training script in a forked process: torch is imported already, so that many can be killed quickly."""

    def __init__(self, log: Path, arguments: list[str], prepare: Callable[[], None]):
        self.log = log
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:  # pragma: no cover - another process
            code = 70
            try:
                with log.open("ab") as output:
                    os.dup2(output.fileno(), 1)
                    os.dup2(output.fileno(), 2)
                sys.stdout, sys.stderr = (os.fdopen(descriptor, "w", buffering=1) for descriptor in (1, 2))
                sys.argv = [str(SCRIPT), *arguments]
                prepare()
                runpy.run_path(str(SCRIPT), run_name="__main__")
                code = 0
            except SystemExit as end:
                code = int(end.code or 0)
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)

    def wait(self) -> int:
        """Return the exit status, negative for a signal."""
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def kill_after(self, seconds: float) -> int:
        time.sleep(seconds)
        os.kill(self.pid, signal.SIGKILL)
        return self.wait()

    @property
    def told(self) -> list[str]:
        return self.log.read_text().splitlines()


def forked(small: SmallStudy, run: Path, prepare: Callable[[], None] = lambda: None) -> Child:
    run.parent.mkdir(parents=True, exist_ok=True)
    return Child(run.parent / "log", small.train_arguments(CELL, run), prepare)


def dies_at(name: str, count: int) -> Callable[[], None]:
    """Kill the process at its `count`-th call of an operating system function, before it acts."""

    def prepare() -> None:
        real, calls = getattr(os, name), iter(range(1, 10**9))

        def deadly(*arguments: Any, **options: Any) -> Any:
            if next(calls) == count:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **options)

        setattr(os, name, deadly)

    return prepare


def finish(small: SmallStudy, run: Path) -> None:
    child = forked(small, run)
    assert child.wait() == 0, child.told


WRITES = [("fsync", n) for n in (1, 2, 4, 7, 9, 13, 16, 19, 22, 25, 30)] + [("rename", n) for n in (1, 2, 3, 4)]


@pytest.mark.parametrize(("call", "count"), WRITES)
def test_killed_while_writing(
    small: SmallStudy, undisturbed: dict[str, bytes], tmp_path: Path, call: str, count: int
) -> None:
    """Flushes and renames are the moments between half-written and written, of checkpoints and of results."""
    run = tmp_path / "run"
    assert forked(small, run, dies_at(call, count)).wait() == -signal.SIGKILL
    assert not (run / "run.json").exists()
    finish(small, run)
    assert content(run) == undisturbed
    assert not list(run.rglob("*.tmp"))


def test_killed_at_random_moments_until_done(small: SmallStudy, undisturbed: dict[str, bytes], tmp_path: Path) -> None:
    """Twelve lives, most of them cut short: every one goes on where the last whole state was."""
    run, draw, deaths = tmp_path / "run", random.Random(0), 0
    for _ in range(12):
        deaths += forked(small, run).kill_after(draw.uniform(0.03, 0.25)) == -signal.SIGKILL
    assert deaths > 2
    finish(small, run)
    assert content(run) == undisturbed


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_status_75_and_one_line(
    small: SmallStudy, undisturbed: dict[str, bytes], tmp_path: Path, number: signal.Signals
) -> None:
    run = tmp_path / "run"
    child = forked(small, run)
    while not (run / "tensorboard").exists():
        time.sleep(0.005)
    os.kill(child.pid, number)
    assert child.wait() == 75
    assert child.told[-2] == f"{number.name}: mini_acpo_nonp seed 0 ends at its next safe point"
    saved = re.fullmatch(
        rf"ended by {number.name}: mini_acpo_nonp seed 0 is saved after step (\d): the same command goes on from there",
        child.told[-1],
    )
    assert saved, child.told
    assert not any("Traceback" in line for line in child.told)
    finish(small, run)
    assert f"resumed mini_acpo_nonp seed 0 after rollout {saved[1]}" in child.told
    assert content(run) == undisturbed


def test_killed_over_and_over_at_its_next_state(
    small: SmallStudy, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    """Progress is made by runs that never live longer than to their second state."""
    run = tmp_path / "run"
    for _ in range(8):
        child = forked(small, run, dies_at("rename", 2))
        if child.wait() == 0:
            break
    assert (run / "run.json").exists() or forked(small, run).wait() == 0
    assert sum("resumed mini_acpo_nonp seed 0 after rollout" in line for line in child.told) >= 2
    assert content(run) == undisturbed


def test_a_finished_run_is_made_again_alike(small: SmallStudy, undisturbed: dict[str, bytes], tmp_path: Path) -> None:
    run = tmp_path / "run"
    finish(small, run)
    finish(small, run)
    assert content(run) == undisturbed


def smallest_limit(bytes_: int) -> Callable[[], None]:
    """Let no file grow past a size: the operating system then refuses the write half-way, as a full disk does."""

    def prepare() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_, bytes_))

    return prepare


@pytest.mark.parametrize("limit", [0, 1_000, 20_000, 100_000, 150_000])
def test_a_full_disk(small: SmallStudy, undisturbed: dict[str, bytes], tmp_path: Path, limit: int) -> None:
    run = tmp_path / "run"
    log = tmp_path / "log"
    log.write_text("")
    reader, writer = os.pipe()  # the limit must not hold for what the script says
    child = Child(log, small.train_arguments(CELL, run), lambda: (os.dup2(writer, 2), smallest_limit(limit)()))
    os.close(writer)
    with os.fdopen(reader) as stream:
        told = stream.read().splitlines()
    assert child.wait() == 1, told
    errors = [line for line in told if line.startswith("error: ")]
    assert len(errors) == 1, told
    assert "cannot write" in errors[0]
    assert not any("Traceback" in line for line in told)
    assert not (run / "run.json").exists()
    finish(small, run)
    assert content(run) == undisturbed


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 700 kB; needs the right to mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=700k", "none", place], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("cannot mount a file system here; test_a_full_disk limits file sizes instead")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def test_a_really_full_disk(small: SmallStudy, undisturbed: dict[str, bytes], tmp_path: Path, tiny_disk: Path) -> None:
    ballast = tiny_disk / "ballast"
    ballast.write_bytes(b"x" * 400_000)
    run = tiny_disk / "run"
    child = Child(tmp_path / "log", small.train_arguments(CELL, run), lambda: None)
    assert child.wait() == 1, child.told
    errors = [line for line in child.told if line.startswith("error: ")]
    assert len(errors) == 1, child.told
    assert "cannot write" in errors[0]
    assert "No space left on device" in errors[0]
    assert not any("Traceback" in line for line in child.told)
    ballast.unlink()
    subprocess.run(["mount", "-o", "remount,size=8m", tiny_disk], check=True)
    again = Child(tmp_path / "log2", small.train_arguments(CELL, run), lambda: None)
    assert again.wait() == 0, again.told
    assert content(run) == undisturbed


def test_two_processes_on_one_run(small: SmallStudy, undisturbed: dict[str, bytes], tmp_path: Path) -> None:
    """The second is refused in one line; the first, stopped meanwhile, goes on unharmed."""
    run = tmp_path / "run"
    first = forked(small, run)
    while not (run / "tensorboard").exists():
        time.sleep(0.01)
    os.kill(first.pid, signal.SIGSTOP)
    second = Child(tmp_path / "second", small.train_arguments(CELL, run), lambda: None)
    assert second.wait() == 1
    assert second.told == [f"error: {run}: another process is training this run: wait for it or end it"]
    os.kill(first.pid, signal.SIGCONT)
    assert first.wait() == 0
    assert content(run) == undisturbed


def test_a_real_process_killed_and_started_again(
    small: SmallStudy, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    """As a user does it: a new Python each time, killed once its first state is there."""
    run = tmp_path / "run"
    command = [sys.executable, str(SCRIPT), *small.train_arguments(CELL, run)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    first = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not list(run.glob("states/rollout_*")) and first.poll() is None:
        time.sleep(0.002)
    first.kill()
    assert first.wait() == -signal.SIGKILL
    second = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert "resumed mini_acpo_nonp seed 0 after rollout" in second.stderr
    assert content(run) == undisturbed
