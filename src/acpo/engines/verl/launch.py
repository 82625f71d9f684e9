"""Runs verl's command: a Ray cluster of its own, its output passed on, progress, signals, and nothing left behind."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import IO

import psutil

from acpo.engines import EngineError, TrainingJob
from acpo.engines.orphans import kill_all
from acpo.engines.verl.checkpoints import STOP_FILE
from acpo.engines.verl.overrides import command, engine_of, environment, expected_rollouts
from acpo.engines.verl.records import RolloutFacts
from acpo.progress import Progress
from acpo.segments import SegmentEndedError
from acpo.store import read_json

LAUNCH_MARK = "ACPO_LAUNCH"
SOCKET_ROOT = "/tmp"
# SLURM sends its warning, SIGUSR1, to every process of a job; only the launcher acts on it.
IGNORING_THE_WARNING = ["sh", "-c", 'trap "" USR1; exec "$@"', "sh"]
SECONDS_BETWEEN_LOOKS = 0.5
SECONDS_TO_JOIN = 300
KEPT_LINES = 400
COLOR = re.compile(r"\x1b\[[0-9;]*m")
EXCEPTION = re.compile(r"^(?:\(\S+ pid=\d+[^)]*\) )?((?:\w+\.)*\w*(?:Error|Exception|Exit|Failure)): ?(.*)$")
CAUSES = {
    "CUDA out of memory": "a GPU's memory was not enough: lower engine.micro_batch_size or "
    "engine.gpu_memory_utilization, or give more GPUs",
    "OutOfMemoryError": "a machine's memory was not enough: Ray ended a worker: give more memory or lower "
    "engine.micro_batch_size",
    "ActorDiedError": "a worker process died: it was killed, or ran out of memory",
    "ActorUnavailableError": "a worker process died: it was killed, or ran out of memory",
    "WorkerCrashedError": "a worker process died: it was killed, or ran out of memory",
    "no space left on device": "the disk is full",
}


class StoppedError(SegmentEndedError):
    """A signal asked the run to end: it goes on from its newest checkpoint."""


@dataclass
class _Asked:
    """The first signal that asked for the end, and the processes that a second one ends."""

    by: signal.Signals | None = None
    processes: "list[subprocess.Popen[str]]" = field(default_factory=list)


def launch(job: TrainingJob, done: int) -> None:
    """Train with verl, from rollout `done` to the end.

    A first SIGTERM, SIGINT or SIGUSR1 lets it save and stop after the current step, a second one ends it at once.

    Args:
        job: The training run.
        done: Rollouts that its newest checkpoint has.

    Raises:
        EngineError: verl failed; names the cause and what to do.
        StoppedError: a signal asked it to end.
    """
    stop = job.run_directory / STOP_FILE
    stop.unlink(missing_ok=True)
    seen: set[psutil.Process] = set()
    with _cluster(job, seen) as (variables, settings), _signals(stop) as asked:
        process = subprocess.Popen(
            IGNORING_THE_WARNING + command(job) + settings, env=variables, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
            bufsize=1,
        )  # fmt: skip
        assert process.stdout is not None
        last_lines: deque[str] = deque(maxlen=KEPT_LINES)
        reader = threading.Thread(target=_pass_on, args=(process.stdout, last_lines), daemon=True)
        reader.start()
        asked.processes.append(process)
        reached = _watch(process, job, done, seen)
        if process.returncode:
            kill_all(seen, LAUNCH_MARK, variables[LAUNCH_MARK])
        reader.join(timeout=10)
    name = f"{job.cell} seed {job.seed}"
    stop.unlink(missing_ok=True)
    if asked.by and reached < expected_rollouts(job):
        message = f"{name}: stopped by {asked.by.name} after rollout {reached}"
        raise StoppedError(f"{message}: the same command goes on from the newest checkpoint", asked.by)
    if process.returncode:
        raise EngineError(f"{name}: verl ended with status {process.returncode} after rollout {reached} of "
                          f"{expected_rollouts(job)}: {cause(last_lines)}. The log is above; the same command goes on "
                          "from the newest checkpoint")  # fmt: skip


def cause(lines: Iterable[str]) -> str:
    """Name the cause of a failure from the last lines of verl's output."""
    lines = list(lines)
    for text, meaning in CAUSES.items():
        if any(text.lower() in line.lower() for line in lines):
            return meaning
    found = [match for line in lines if (match := EXCEPTION.match(line))]
    return f"{found[-1][1]}: {found[-1][2]}".strip(": ") if found else "it was killed, or gave no reason"


def _pass_on(output: IO[str], last_lines: deque[str]) -> None:
    for line in output:
        sys.stderr.write(line)
        last_lines.append(COLOR.sub("", line).strip())


def _watch(process: "subprocess.Popen[str]", job: TrainingJob, done: int, seen: set[psutil.Process]) -> int:
    """Tell the progress until verl ends; returns the last rollout that it recorded.

    Its descendants are added to `seen`: Ray's write a title over the environment that would tell whose they are.
    """
    reached, total = done, expected_rollouts(job)
    with Progress(job.name, total, done, directory=job.run_directory) as progress:
        ended = False
        while not ended:
            with contextlib.suppress(psutil.Error):
                seen.update(psutil.Process(process.pid).children(recursive=True))
            ended = process.poll() is not None
            path = job.run_directory / "records" / f"rollout_{reached + 1:06d}.json"
            while path.exists():
                facts = read_json(path, RolloutFacts)
                progress.advance(facts.response_tokens, reward=facts.reward_mean)
                reached += 1
                path = path.with_name(f"rollout_{reached + 1:06d}.json")
            time.sleep(0 if ended else SECONDS_BETWEEN_LOOKS)
    return reached


@contextmanager
def _signals(stop: Path) -> Iterator[_Asked]:
    """Turn the first signal into a request to stop, the second into an end of the processes that are put there."""
    asked = _Asked()

    def heard(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        name = signal.Signals(number).name
        running = [process for process in asked.processes if process.poll() is None]
        if asked.by and running:
            print(f"{name} again: ending verl now", file=sys.stderr)
            for process in running:
                os.killpg(process.pid, signal.SIGKILL)
        else:
            print(f"{name}: verl saves and stops after the current step", file=sys.stderr)
            asked.by = asked.by or signal.Signals(number)
            stop.touch()

    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    kinds = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
    before = {kind: signal.signal(kind, heard) for kind in kinds}
    try:
        yield asked
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)


@contextmanager
def _cluster(job: TrainingJob, seen: set[psutil.Process]) -> Iterator[tuple[dict[str, str], list[str]]]:
    """Yield the environment and the settings that give verl a Ray cluster of its own; end all of it afterwards."""
    directory = Path(tempfile.mkdtemp(prefix="acpo-", dir=SOCKET_ROOT))
    # Ray's workers would otherwise give way to everything else on the machine.
    ray = {"RAY_worker_niceness": "0", "RAY_DEDUP_LOGS": "0"}
    variables = os.environ | environment(job) | ray | {LAUNCH_MARK: directory.name}
    variables.pop("RAY_ADDRESS", None)
    try:
        nodes = job.study.suites[job.cell.suite].resources.nodes
        if nodes == 1:
            here = ["_temp_dir=" + str(directory), "include_dashboard=false"]
            yield variables, [f"+ray_kwargs.ray_init.{setting}" for setting in here]
        else:
            address = _start_nodes(job, directory, variables)
            yield variables | {"RAY_ADDRESS": address}, []
    finally:
        kill_all(seen, LAUNCH_MARK, directory.name)
        shutil.rmtree(directory, ignore_errors=True)


def node_commands(
    job: TrainingJob, hosts: list[str], address: str, directory: Path, python: str = sys.executable
) -> tuple[list[str], list[str]]:
    """Return the commands that start Ray on the first node and, through SLURM, on all others.

    Args:
        job: The training run.
        hosts: The nodes of the allocation; the first is this one.
        address: `host:port` of the cluster.
        directory: Where Ray keeps its files.
        python: The interpreter of the engine's environment.
    """
    suite = job.study.suites[job.cell.suite]
    gpus = suite.resources.gpus if engine_of(suite).device == "cuda" else 1
    share = [f"--num-cpus={suite.resources.cpus}", f"--num-gpus={gpus}", "--block"]
    ray = [str(Path(python).with_name("ray")), "start"]
    host, port = address.rsplit(":", 1)
    head = [*ray, "--head", f"--node-ip-address={host}", f"--port={port}", f"--temp-dir={directory}",
            "--include-dashboard=false", *share]  # fmt: skip
    others = len(hosts) - 1
    step = ["srun", f"--nodes={others}", f"--ntasks={others}", "--ntasks-per-node=1", "--overlap",
            f"--nodelist={','.join(hosts[1:])}", f"--cpus-per-task={suite.resources.cpus}"]  # fmt: skip
    return head, [*step, *ray, f"--address={address}", *share]


def _start_nodes(job: TrainingJob, directory: Path, variables: Mapping[str, str]) -> str:
    """Start Ray on all nodes of the SLURM allocation; returns its address."""
    nodes = job.study.suites[job.cell.suite].resources.nodes
    allocation = os.environ.get("SLURM_JOB_NODELIST")
    if allocation is None:
        raise EngineError(f"suites.{job.cell.suite}.resources.nodes: {nodes} nodes need a SLURM allocation: salloc "
                          f"--nodes={nodes} ..., and in it snakemake --cores all")  # fmt: skip
    shown = subprocess.run(["scontrol", "show", "hostnames", allocation], capture_output=True, text=True, check=False)
    hosts = shown.stdout.split()
    if len(hosts) < nodes:
        raise EngineError(f"the SLURM allocation {allocation} has {len(hosts)} nodes, the suite needs {nodes}")
    address = f"{socket.gethostbyname(socket.gethostname())}:{free_port()}"
    for words in node_commands(job, hosts[:nodes], address, directory):
        subprocess.Popen(words, env=variables, stdin=subprocess.DEVNULL, start_new_session=True)
    _wait_for_nodes(address, nodes)
    return address


def _wait_for_nodes(address: str, nodes: int) -> None:
    import ray

    deadline = time.monotonic() + SECONDS_TO_JOIN
    while True:
        try:
            ray.init(address=address, log_to_driver=False, configure_logging=False)
            joined = sum(node["Alive"] for node in ray.nodes())
        except (ConnectionError, RuntimeError, ValueError):
            joined = 0
        finally:
            ray.shutdown()
        if joined >= nodes:
            return
        if time.monotonic() > deadline:
            raise EngineError(f"{joined} of {nodes} nodes joined Ray at {address} within {SECONDS_TO_JOIN} s: see the "
                              "messages above")  # fmt: skip
        time.sleep(2)


def free_port() -> int:
    """Return a TCP port that nothing listens on."""
    with socket.socket() as listener:
        listener.bind(("", 0))
        return int(listener.getsockname()[1])
