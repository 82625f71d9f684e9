"""A SLURM, an undisturbed local run to compare with, and clones to run on the cluster, a node to each process."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from tests.slurm.cluster import Cluster, locked, why_not
from tests.workflow.conftest import ROOT, SMALL, environment
from tests.workflow.test_kill_and_resume import content

CLONED = ("Snakefile", "config.yaml", "workflow", "scripts", "src", "slurm")
STUDY = {
    **SMALL,
    "grid": {"methods": ["dapo", "acpo"], "regimes": ["nonp"]},
    "suites": {
        "mini": {
            **SMALL["suites"]["mini"],
            "training": {"prompts": 800, "group_size": 8, "validation_every": 50, "checkpoint_every": 25},
        }
    },
}
CELL = "mini_acpo_nonp"  # 100 rollouts of 2 updates
TARGET = f"results/runs/{CELL}/seed0/run.json"
PATIENCE = 600.0  # seconds: what takes so long has failed, also on a machine that has other things to do
GUARD = Path(__file__).parent / "guard"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = why_not()
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("slurm")
            item.add_marker("slow")
            if reason:
                item.add_marker(pytest.mark.skip(reason=reason))
    items.sort(key=lambda item: item.name != "test_whole_grid")  # the longest first, while other processes do the rest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table of faults and outcomes, which each process of the tests has noted in its reports."""
    reports = [
        each for kind in terminalreporter.stats.values() for each in kind if getattr(each, "when", "") == "teardown"
    ]
    lines = sorted(line for report in reports for name, line in report.user_properties if name == "fault")
    if lines:
        terminalreporter.section("faults and outcomes on a real SLURM")
        terminalreporter.write_line(f"{'fault':46} {'seconds':>7}  outcome")
    for fault, seconds, outcome, equal in lines:
        terminalreporter.write_line(f"{fault:46} {seconds:7.0f}  {outcome}; {equal}")


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that all processes of the tests share."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session")
def cluster(shared: Path) -> Iterator[Cluster]:
    """The cluster, with a node of this process's own."""
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    made = Cluster(shared / "slurm", number, nodes=int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))
    made.start()
    yield made
    made.stop()


def guarded(directory: Path) -> dict[str, str]:
    """Return an environment in which Python refuses to connect anywhere, and notes each attempt in `directory`."""
    paths = [str(GUARD), str(directory / "src")]
    return {**environment(), "PYTHONPATH": ":".join(paths), "NETWORK_ATTEMPTS": str(directory / "attempts.txt")}


def hear_ctrl_c() -> None:
    """Let a process be interrupted also where these tests run in the background, which shells make deaf to Ctrl-C."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@dataclass
class Clone:
    """A copy of this repository with the small study; its Snakemake is the user's."""

    directory: Path
    node: str
    processes: list[subprocess.Popen] = field(default_factory=list)

    @property
    def log(self) -> str:
        path = self.directory / "out.txt"
        return path.read_text() if path.exists() else ""

    @property
    def run(self) -> Path:
        return self.directory / "results/runs" / CELL / "seed0"

    @property
    def attempts(self) -> str:
        path = self.directory / "attempts.txt"
        return path.read_text() if path.exists() else ""

    def start(self, *arguments: str, profile: bool = True) -> subprocess.Popen:
        """Start `snakemake --profile slurm <arguments>` as a user does, but for shorter waits than a cluster needs."""
        how = ["--profile", "slurm"] if profile else ["--cores", "2"]
        line = [sys.executable, "-m", "snakemake", *how, *arguments, "--configfile", "small.yaml"]
        if profile:
            line += ["--slurm-init-seconds-before-status-checks", "1", "--latency-wait", "5"]
        with (self.directory / "out.txt").open("a") as out:
            process = subprocess.Popen(
                line, cwd=self.directory, env={**guarded(self.directory), "SBATCH_CONSTRAINT": self.node},
                stdout=out, stderr=out, start_new_session=True, preexec_fn=hear_ctrl_c,
            )  # fmt: skip
        self.processes.append(process)
        return process

    def snakemake(self, *arguments: str, profile: bool = True) -> None:
        """Run it to its end, which must be a good one."""
        assert self.start(*arguments, profile=profile).wait(timeout=PATIENCE) == 0, self.log[-8000:]

    def segments(self) -> list[dict]:
        path = self.run / "segments.json"
        return yaml.safe_load(path.read_text())["segments"] if path.exists() else []

    def working_here(self) -> list[int]:
        """List the processes whose working directory is this clone."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    if (entry / "cwd").readlink() == self.directory:
                        found.append(int(entry.name))
        return found

    def training(self) -> list[int]:
        """List the processes that train in this clone."""
        found = []
        for process in self.working_here():
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
                if len(words) > 2 and words[1].endswith(b"train_policy.py"):
                    found.append(process)
        return found

    def end(self) -> None:
        """Leave nothing behind: this SLURM tracks processes by their parents, and loses one whose parent ends first."""
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        for orphan in self.working_here():
            with contextlib.suppress(ProcessLookupError):
                os.kill(orphan, signal.SIGKILL)


def wait_until(what: Callable[[], object], seconds: float = PATIENCE, told: Callable[[], str] = str) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, told()[-6000:]
        time.sleep(0.1)


def clone_at(directory: Path, source: Path = ROOT, node: str = "") -> Clone:
    directory.mkdir(parents=True, exist_ok=True)
    for name in CLONED:
        subprocess.run(["cp", "-a", str(source / name), str(directory)], check=True)
    (directory / "small.yaml").write_text(yaml.safe_dump(STUDY))
    return Clone(directory, node)


@pytest.fixture(scope="session")
def reference(shared: Path) -> Clone:
    """The small study, made locally and undisturbed, by the first process that needs it."""
    made, done = Clone(shared / "reference", node=""), shared / "reference.done"
    with locked(shared / "reference.lock"):
        if not done.exists():
            clone_at(made.directory)
            try:
                made.snakemake("all", profile=False)
            finally:
                made.end()
            done.touch()
    return made


@pytest.fixture
def clone(tmp_path: Path, reference: Clone, cluster: Cluster) -> Iterator[Clone]:
    """A clone of the same code as the reference."""
    made = clone_at(tmp_path / "clone", reference.directory, cluster.node)
    yield made
    made.end()


@pytest.fixture
def untrained(clone: Clone, reference: Clone, cluster: Cluster) -> Iterator[Clone]:
    """A clone in which data and base model are there, and training is to come."""
    for name in ("results", ".snakemake"):
        shutil.copytree(reference.directory / name, clone.directory / name, symlinks=True)
    shutil.rmtree(clone.run)
    yield clone
    clone.end()
    for job in cluster.jobs():
        subprocess.run(["scancel", "--full", "--signal=KILL", job], check=False)
    wait_until(lambda: not cluster.jobs())


@dataclass
class Fault:
    """One line of the table."""

    name: str
    outcome: str = "failed"
    equal: str = "not compared"

    def same_bytes(self, clone: Clone, reference: Clone) -> None:
        """Require the run to be that of the undisturbed study."""
        wanted = content(reference.run)
        trained = {name: data for name, data in wanted.items() if name not in ("samples.parquet", "verdicts.parquet")}
        found = content(clone.run)
        assert {name for name in trained if found.get(name) != trained[name]} == set()
        self.equal = "bytes equal an undisturbed local run's"


@pytest.fixture
def fault(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> Iterator[Fault]:
    """What the test tried and what came of it, for the table."""
    made = Fault(request.node.name.removeprefix("test_").replace("_", " "))
    start = time.monotonic()
    yield made
    record_property("fault", (made.name, time.monotonic() - start, made.outcome, made.equal))
