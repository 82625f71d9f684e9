"""What the launcher does with any command: output, signals, causes, and nothing left behind."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest
from verl_jobs import verl_job

from acpo.config import Study
from acpo.engines import EngineError
from acpo.engines.verl import launch as launcher
from acpo.engines.verl.checkpoints import STOP_FILE
from acpo.engines.verl.launch import StoppedError, cause, free_port, launch, node_commands
from acpo.engines.verl.records import RolloutFacts, write_rollout

FACTS = RolloutFacts(
    rollout=1, reward_mean=0.25, response_tokens_mean=10.0, truncation_rate=0.0, zero_variance_fraction=0.5,
    response_tokens=80, on_policy_error=0.0, sampling_seconds=1.0, update_seconds=1.0,
)  # fmt: skip


@pytest.fixture
def job(shipped: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A mini_verl run; `program` makes its command a Python program."""
    job = verl_job(shipped, "mini_verl_dapo_offp", tmp_path)
    job.run_directory.mkdir(parents=True)

    def program(text: str) -> None:
        text = textwrap.dedent(text)
        monkeypatch.setattr(launcher, "command", lambda _job: [sys.executable, "-c", text])

    return job, program


def test_success_passes_output_on_and_tells_progress(job, capsys: pytest.CaptureFixture[str]) -> None:
    job, program = job
    program("import sys; print('hello', [word for word in sys.argv if 'ray_init' in word])")
    for rollout in range(1, 23):
        write_rollout(job.run_directory / "records", FACTS.model_copy(update={"rollout": rollout}))
    launch(job, 0)
    told = capsys.readouterr().err
    assert "hello ['+ray_kwargs.ray_init._temp_dir=/tmp/acpo-" in told
    assert "mini_verl_dapo_offp seed 0: 22/22" in told
    assert "tokens/s reward 0.25" in told


def test_leaves_no_process_and_no_directory(job, tmp_path: Path) -> None:
    job, program = job
    program(f"""
        import pathlib, subprocess, sys
        directory = next(word for word in sys.argv if "_temp_dir" in word).split("=")[1]
        waiting = [sys.executable, "-c", "import time; time.sleep(600)"]
        child = subprocess.Popen(waiting, start_new_session=True)
        pathlib.Path({str(tmp_path / "told")!r}).write_text(f"{{child.pid}} {{directory}}")
    """)
    launch(job, 0)
    pid, directory = (tmp_path / "told").read_text().split()
    assert not psutil.pid_exists(int(pid)) or psutil.Process(int(pid)).status() == psutil.STATUS_ZOMBIE
    assert not Path(directory).exists()


def test_failure_names_the_cause(job) -> None:
    job, program = job
    program("print('ValueError: no such thing'); raise SystemExit(3)")
    with pytest.raises(EngineError, match=r"verl ended with status 3 after rollout 0 of 22: ValueError: no such thing"):
        launch(job, 0)


@pytest.mark.parametrize(
    ("lines", "meaning"),
    [
        (["torch.OutOfMemoryError: CUDA out of memory. Tried to allocate"], "a GPU's memory was not enough"),
        (["ray.exceptions.OutOfMemoryError: Task was killed"], "a machine's memory was not enough"),
        (["ray.exceptions.ActorDiedError: The actor died unexpectedly"], "a worker process died"),
        (["OSError: [Errno 28] No space left on device"], "the disk is full"),
        (["KeyError: 'a'", "ray.exceptions.RayTaskError: x", "acpo.engines.EngineError: rollout 3: 5 of 8"],
         "acpo.engines.EngineError: rollout 3: 5 of 8"),
        (["(TaskRunnerV1 pid=12) ValueError: bad"], "ValueError: bad"),
        ([], "it was killed, or gave no reason"),
    ],
)  # fmt: skip
def test_causes(lines: list[str], meaning: str) -> None:
    assert cause(lines).startswith(meaning)


def test_a_signal_asks_to_stop(job) -> None:
    job, program = job
    program(f"""
        import os, pathlib, signal, time
        os.kill(os.getppid(), signal.SIGUSR1)
        while not pathlib.Path({str(job.run_directory / STOP_FILE)!r}).exists():
            time.sleep(0.05)
    """)
    handlers = [signal.getsignal(kind) for kind in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)]
    with pytest.raises(StoppedError, match=r"stopped by SIGUSR1 after rollout 0: .*newest checkpoint"):
        launch(job, 0)
    assert not (job.run_directory / STOP_FILE).exists()
    assert [signal.getsignal(kind) for kind in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)] == handlers


def test_a_second_signal_ends_it(job) -> None:
    job, program = job
    program("""
        import os, signal, time
        for _ in range(2):
            os.kill(os.getppid(), signal.SIGTERM)
            time.sleep(0.5)
        time.sleep(600)
    """)
    start = time.monotonic()
    with pytest.raises(StoppedError):
        launch(job, 0)
    assert time.monotonic() - start < 60


def test_a_killed_launcher_leaves_no_process(tmp_path: Path) -> None:
    program = textwrap.dedent("""
        import subprocess, sys, time
        from acpo.engines.orphans import leave_no_orphans
        leave_no_orphans()
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
        print(child.pid, flush=True)
        time.sleep(600)
    """)
    environment = {key: value for key, value in os.environ.items() if key != "ACPO_STARTED_BY"}
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment)
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    parent.kill()
    parent.wait()
    assert psutil.wait_procs([child], timeout=60)[1] == []


def test_node_commands(shipped: Study, tmp_path: Path) -> None:
    job = verl_job(shipped, "orz_acpo_offp", tmp_path)
    head, others = node_commands(job, ["n1", "n2", "n3"], "10.0.0.1:6400", Path("/tmp/acpo-x"), "/e/bin/python")
    assert " ".join(head) == (
        "/e/bin/ray start --head --node-ip-address=10.0.0.1 --port=6400 --temp-dir=/tmp/acpo-x "
        "--include-dashboard=false --num-cpus=32 --num-gpus=4 --block"
    )
    assert " ".join(others) == (
        "srun --nodes=2 --ntasks=2 --ntasks-per-node=1 --overlap --nodelist=n2,n3 --cpus-per-task=32 "
        "/e/bin/ray start --address=10.0.0.1:6400 --num-cpus=32 --num-gpus=4 --block"
    )


def test_free_ports_differ_from_taken_ones() -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("", 0))
        assert free_port() != taken.getsockname()[1]
