"""A real SLURM of one node with four fake GPUs, started and stopped by its pid files. Needs root."""

import contextlib
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import time
from pathlib import Path

CONFIGURATION = Path("/etc/slurm")  # SLURM strips SLURM_* from job steps, so that no other place is found there
MUNGE_SOCKET = Path("/run/munge/munge.socket.2")
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
SlurmdPort=16818
StateSaveLocation={place}/ctld
SlurmdSpoolDir={place}/spool
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd.pid
SlurmctldLogFile={place}/slurmctld.log
SlurmdLogFile={place}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=0
ReturnToService=2
SlurmdParameters=config_overrides
SlurmdTimeout=20
KillWait=5
MinJobAge=300
JobRequeue=1
GresTypes=gpu
AccountingStorageType=accounting_storage/none
NodeName={host} NodeAddr=127.0.0.1 CPUs=16 RealMemory=64000 Gres=gpu:h200:4
PartitionName=cpu Nodes={host} Default=YES MaxTime=INFINITE
PartitionName=gpu Nodes={host} MaxTime=INFINITE
"""


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
    return None


class Cluster:
    """The daemons, and what tests do to them."""

    def __init__(self, place: Path):
        """Keep all state in `place`."""
        self.place = place
        self.host = socket.gethostname().split(".")[0]
        self._own_munge = False

    def start(self) -> None:
        """Write the configuration, start the daemons, wait until the node is idle."""
        self._end_earlier()
        for name in ("ctld", "spool", "dev"):
            (self.place / name).mkdir(parents=True, exist_ok=True)
        for number in range(4):
            device = self.place / f"dev/gpu{number}"
            if not device.exists():
                os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))  # the null device
        CONFIGURATION.mkdir(exist_ok=True)
        conf = SLURM_CONF.format(mark=MARK, host=self.host, place=self.place)
        (CONFIGURATION / "slurm.conf").write_text(conf)
        gres = f"{MARK}\nNodeName={self.host} Name=gpu Type=h200 File={self.place}/dev/gpu[0-3]\n"
        (CONFIGURATION / "gres.conf").write_text(gres)
        self._start_munge()
        subprocess.run(["slurmctld"], check=True)
        self.start_node()

    def _end_earlier(self) -> None:
        """End the daemons of tests that were killed before they could."""
        conf = CONFIGURATION / "slurm.conf"
        if conf.exists():
            place = re.search(r"^SlurmctldPidFile=(.*)/slurmctld.pid$", conf.read_text(), re.MULTILINE)
            assert place, conf
            for name in ("slurmctld", "slurmd"):
                end_daemon(Path(place[1]) / f"{name}.pid", name)

    def _start_munge(self) -> None:
        """Start munged unless one answers; a killed one leaves its socket behind."""
        if subprocess.run(["munge", "-n"], capture_output=True, check=False).returncode == 0:
            return
        subprocess.run(["install", "-d", "-o", "munge", "-g", "munge", "-m", "755", MUNGE_SOCKET.parent], check=True)
        line = ["runuser", "-u", "munge", "--", "munged", "--force", f"--pid-file={MUNGE_SOCKET.parent}/test.pid"]
        subprocess.run(line, check=True, capture_output=True)
        self._own_munge = True

    def start_node(self) -> None:
        """Start slurmd and wait until its node takes jobs."""
        subprocess.run(["slurmd", "-N", self.host], check=True)
        deadline = time.monotonic() + SECONDS_TO_START
        while self.node_state() not in ("idle", "mixed", "allocated"):
            if time.monotonic() > deadline:
                raise RuntimeError(f"the node is {self.node_state()!r}: {(self.place / 'slurmctld.log').read_text()}")
            time.sleep(0.2)

    def node_state(self) -> str:
        """Return the node's state, e.g. `idle`."""
        return output("sinfo", "--noheader", "--format=%T", "--partition=cpu").strip().strip("*")

    def kill_node(self, with_jobs: bool = False) -> None:
        """Kill slurmd, and with it, as in a crash of the node, everything that runs in jobs."""
        os.kill(int((self.place / "slurmd.pid").read_text()), signal.SIGKILL)
        if with_jobs:
            for process in self._job_processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)

    def _job_processes(self) -> list[int]:
        """List the processes of this cluster's jobs and of the daemons that watch over each."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    steward = b"slurmstepd" in (entry / "cmdline").read_bytes().split(b"\0")[0]
                    if steward or b"\0SLURM_CLUSTER_NAME=test\0" in (entry / "environ").read_bytes():
                        found.append(int(entry.name))
        return found

    def jobs(self) -> list[str]:
        """List the ids of pending and running jobs."""
        return output("squeue", "--noheader", "--format=%i", "--states=PENDING,RUNNING,COMPLETING").split()

    def stop(self) -> None:
        """Cancel what is left and end the daemons."""
        if self.jobs():
            subprocess.run(["scancel", "--signal=KILL", *self.jobs()], check=False)
            subprocess.run(["scancel", *self.jobs()], check=False)
        for name in ("slurmctld", "slurmd"):
            end_daemon(self.place / f"{name}.pid", name)
        if self._own_munge:
            end_daemon(MUNGE_SOCKET.parent / "test.pid", "munged")
        for name in ("slurm.conf", "gres.conf"):
            (CONFIGURATION / name).unlink()


def end_daemon(pid_file: Path, name: str) -> None:
    """End a daemon and wait for it, if the process that its file names is one still."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        process = Path(f"/proc/{int(pid_file.read_text())}")
        if (process / "comm").read_text().strip() == name:
            os.kill(int(process.name), signal.SIGTERM)
            deadline = time.monotonic() + SECONDS_TO_START
            while "State:\tZ" not in (process / "status").read_text() and time.monotonic() < deadline:
                time.sleep(0.05)


def output(*line: str) -> str:
    """Run a command and return what it prints."""
    return subprocess.run(line, capture_output=True, text=True, check=True, timeout=60).stdout
