"""A real SLURM on this machine, started and stopped by its pid files. Needs root.

Each process of the tests has a node of its own, of four fake GPUs: what a test does to its node, no other test sees.
"""

import contextlib
import fcntl
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

CONFIGURATION = Path("/etc/slurm")  # SLURM strips SLURM_* from job steps, so that no other place is found there
MUNGE_SOCKET = Path("/run/munge/munge.socket.2")
MUNGE_PID = MUNGE_SOCKET.parent / "test.pid"
MARK = "# written by the tests of this project"
SECONDS_TO_START = 30

SLURM_CONF = """{mark}
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=cred_expire=5
SlurmctldPort=16817
StateSaveLocation={place}/ctld
SlurmdSpoolDir={place}/spool_%n
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/%n.pid
SlurmctldLogFile={place}/slurmctld.log
SlurmdLogFile={place}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=0
ReturnToService=2
SlurmdParameters=config_overrides
SlurmdTimeout=20
KillWait=5
MinJobAge=3600
JobRequeue=1
GresTypes=gpu
AccountingStorageType=accounting_storage/none
{nodes}
PartitionName=cpu Nodes=ALL Default=YES MaxTime=INFINITE
PartitionName=gpu Nodes=ALL MaxTime=INFINITE
"""
NODE_CONF = (
    "NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} Feature={node} "
    "CPUs=16 RealMemory=64000 Gres=gpu:h200:{gpus}"
)
GPUS = 4  # of a node
FIRST_PORT = 16820


def why_not() -> str | None:
    """Say why no cluster can be started here; None where one can."""
    if os.geteuid() != 0:
        return "starting SLURM daemons needs root"
    missing = [name for name in ("slurmctld", "slurmd", "munged") if shutil.which(name) is None]
    if missing:
        return f"no {', '.join(missing)}: apt-get install -y --no-install-recommends slurm-wlm munge"
    conf = CONFIGURATION / "slurm.conf"
    if conf.exists() and MARK not in conf.read_text():
        return f"{conf} is not from these tests: a SLURM of its own is set up on this machine"
    with tempfile.TemporaryDirectory() as place:
        try:
            make_device(Path(place) / "gpu")
        except PermissionError:
            return "root may not make device files here, which the fake GPUs are"
    return None


def make_device(path: Path) -> None:
    """Make a file that is the null device."""
    os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))


class Cluster:
    """The daemons, and what a process of the tests does to its node, alone."""

    def __init__(self, place: Path, number: int, nodes: int):
        """Keep all state in `place`, which the processes of the tests share; this one's node is `number` of `nodes`."""
        self.place = place
        self.nodes = [f"node{each}" for each in range(nodes)]
        self.node = self.nodes[number]

    def start(self) -> None:
        """Start this process's node, and the controller if no other process has."""
        self.place.mkdir(exist_ok=True)
        with locked(self.place / "lock"):
            if process_of(self.place / "slurmctld.pid", "slurmctld") is None:
                self._end_earlier()
                self._configure()
                self._start_munge()
                subprocess.run(["slurmctld"], check=True)
            self.start_node()

    def _configure(self) -> None:
        """Write the configuration, and make the devices that are taken for GPUs."""
        host = socket.gethostname().split(".")[0]
        (self.place / "ctld").mkdir(exist_ok=True)
        (self.place / "dev").mkdir(exist_ok=True)
        nodes, gpus = [], []
        for number, node in enumerate(self.nodes):
            (self.place / f"spool_{node}").mkdir(exist_ok=True)
            nodes.append(NODE_CONF.format(node=node, host=host, port=FIRST_PORT + number, gpus=GPUS))
            files = [self.place / f"dev/{node}_gpu{gpu}" for gpu in range(GPUS)]
            for device in files:
                if not device.exists():
                    make_device(device)
            gpus.append(f"NodeName={node} Name=gpu Type=h200 File={self.place}/dev/{node}_gpu[0-{GPUS - 1}]")
        CONFIGURATION.mkdir(exist_ok=True)
        conf = SLURM_CONF.format(mark=MARK, host=host, place=self.place, nodes="\n".join(nodes))
        (CONFIGURATION / "slurm.conf").write_text(conf)
        (CONFIGURATION / "gres.conf").write_text("\n".join([MARK, *gpus, ""]))

    def _end_earlier(self) -> None:
        """End the daemons of tests that were killed before they could."""
        conf = CONFIGURATION / "slurm.conf"
        if conf.exists():
            place = re.search(r"^SlurmctldPidFile=(.*)/slurmctld.pid$", conf.read_text(), re.MULTILINE)
            assert place, conf
            end_daemon(Path(place[1]) / "slurmctld.pid", "slurmctld")
            for pid_file in Path(place[1]).glob("node*.pid"):
                end_daemon(pid_file, "slurmd")

    def _start_munge(self) -> None:
        """Start munged unless one answers; a killed one leaves its socket behind."""
        if subprocess.run(["munge", "-n"], capture_output=True, check=False).returncode == 0:
            return
        subprocess.run(["install", "-d", "-o", "munge", "-g", "munge", "-m", "755", MUNGE_SOCKET.parent], check=True)
        line = ["runuser", "-u", "munge", "--", "munged", "--force", f"--pid-file={MUNGE_PID}"]
        subprocess.run(line, check=True, capture_output=True)

    def start_node(self) -> None:
        """Start slurmd and wait until its node takes jobs."""
        subprocess.run(["slurmd", "-N", self.node], check=True)
        deadline = time.monotonic() + SECONDS_TO_START
        while self.node_state() not in ("idle", "mixed", "allocated"):
            if time.monotonic() > deadline:
                raise RuntimeError(
                    f"{self.node} is {self.node_state()!r}: {(self.place / 'slurmctld.log').read_text()}"
                )
            time.sleep(0.2)

    def node_state(self) -> str:
        """Return the node's state, e.g. `idle`."""
        return (
            output("sinfo", "--noheader", "--format=%T", "--partition=cpu", f"--nodes={self.node}").strip().strip("*")
        )

    def set_node_state(self, state: str) -> None:
        """Set the node's state: `drain`, `resume`."""
        subprocess.run(["scontrol", "update", f"nodename={self.node}", f"state={state}", "reason=test"], check=True)

    def kill_node(self, with_jobs: bool = False) -> None:
        """Kill slurmd, and with it, as in a crash of the node, everything that runs in jobs."""
        doomed = self._job_processes() if with_jobs else []
        os.kill(int((self.place / f"{self.node}.pid").read_text()), signal.SIGKILL)
        for process in doomed:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def _job_processes(self) -> list[int]:
        """List the processes of this node's jobs, and of the daemons that watch over each."""
        stewards = tuple(f"slurmstepd: [{job}.".encode() for job in self.jobs())
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    steward = (entry / "cmdline").read_bytes().startswith(stewards)
                    if steward or f"\0SLURMD_NODENAME={self.node}\0".encode() in (entry / "environ").read_bytes():
                        found.append(int(entry.name))
        return found

    def jobs(self, states: str = "PENDING,RUNNING,COMPLETING") -> list[str]:
        """List the ids of this node's jobs in some states, by default those that have not ended."""
        return self.described_jobs("%i", states)

    def described_jobs(self, form: str, states: str = "all") -> list[str]:
        """Describe this node's jobs in some states, one by one, in a form of `squeue --format`."""
        lines = output("squeue", "--noheader", f"--format=%f {form}", f"--states={states}").splitlines()
        return [told for node, told in (line.split(" ", 1) for line in lines) if node == self.node]

    def stop(self) -> None:
        """Cancel what is left, end the node, and the controller after the last one."""
        if self.jobs():
            subprocess.run(["scancel", "--signal=KILL", *self.jobs()], check=False)
            subprocess.run(["scancel", *self.jobs()], check=False)
        with locked(self.place / "lock"):
            end_daemon(self.place / f"{self.node}.pid", "slurmd")
            if not any(process_of(self.place / f"{node}.pid", "slurmd") for node in self.nodes):
                end_daemon(self.place / "slurmctld.pid", "slurmctld")
                end_daemon(MUNGE_PID, "munged")
                for name in ("slurm.conf", "gres.conf"):
                    (CONFIGURATION / name).unlink()


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Let one process of the tests at a time go on."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def runs(process: int, name: str) -> bool:
    """Say whether a process is a daemon of that name and has not ended."""
    entry = Path(f"/proc/{process}")
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return (entry / "comm").read_text().strip() == name and "State:\tZ" not in (entry / "status").read_text()
    return False


def process_of(pid_file: Path, name: str) -> int | None:
    """Return the daemon that its file names, if it runs."""
    with contextlib.suppress(FileNotFoundError):
        process = int(pid_file.read_text())
        return process if runs(process, name) else None
    return None


def end_daemon(pid_file: Path, name: str) -> None:
    """End a daemon and wait for it, if it runs."""
    process = process_of(pid_file, name)
    if process is None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGTERM)
    deadline = time.monotonic() + SECONDS_TO_START
    while runs(process, name) and time.monotonic() < deadline:
        time.sleep(0.05)


def output(*line: str) -> str:
    """Run a command and return what it prints."""
    return subprocess.run(line, capture_output=True, text=True, check=True, timeout=60).stdout
