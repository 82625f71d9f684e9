"""Whatever happens to a training job on a real SLURM, its run ends with the bytes of an undisturbed local one."""

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from tests.slurm.cluster import Cluster, output
from tests.slurm.conftest import PATIENCE, TARGET, Clone, Fault, wait_until


def under_way(clone: Clone, cluster: Cluster, *arguments: str, target: str = TARGET) -> tuple[subprocess.Popen, str]:
    """Start the training job and wait until it trains; returns Snakemake and the job's id."""
    process = clone.start(target, *arguments)
    wait_until(lambda: (clone.run / "tensorboard").exists() or process.poll() is not None, told=lambda: clone.log)
    jobs = cluster.jobs()
    assert len(jobs) == 1, clone.log
    return process, jobs[0]


def saved(clone: Clone) -> bool:
    """Say whether training has a state to go on from."""
    return any(clone.run.glob("states/rollout_*"))


def finished(process: subprocess.Popen, clone: Clone) -> None:
    assert process.wait(timeout=PATIENCE) == 0, clone.log[-8000:]


def endings(clone: Clone) -> list[str | None]:
    return [segment["ended_by"] for segment in clone.segments()]


def signalled(process: int, number: signal.Signals) -> bool:
    """Say whether a signal waits for a stopped process, or has ended it: SLURM wakes what it signals."""
    try:
        status = dict(line.split(":\t", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
    except (FileNotFoundError, ProcessLookupError):
        return True
    return bool(int(status["ShdPnd"], 16) >> (number - 1) & 1)


def test_scancel(untrained: Clone, reference: Clone, cluster: Cluster, fault: Fault) -> None:
    process, job = under_way(untrained, cluster)
    subprocess.run(["scancel", job], check=True)
    finished(process, untrained)
    first, second = untrained.segments()
    assert (first["ended_by"], second["start"]) == ("SIGTERM", first["end"])
    fault.same_bytes(untrained, reference)
    fault.outcome = f"saved at step {first['end']}, retried, resumed there"


def shorten(job: str, minutes: int) -> None:
    """Bring a running job's time limit to so many minutes from now, one at the least."""
    hours, past, _ = next(
        pair.removeprefix("RunTime=") for pair in output("scontrol", "show", "job", job).split() if "RunTime=" in pair
    ).split(":")
    limit = max(1, 60 * int(hours) + int(past) + minutes)
    subprocess.run(["scontrol", "update", f"jobid={job}", f"timelimit={limit}"], check=True)


def test_warning_before_the_time_limit(untrained: Clone, reference: Clone, cluster: Cluster, fault: Fault) -> None:
    """Training stands still until the warning of the profile comes, which SLURM sends every half minute."""
    process, job = under_way(untrained, cluster)
    (trainer,) = untrained.training()
    os.kill(trainer, signal.SIGSTOP)
    shorten(job, 4)
    wait_until(lambda: signalled(trainer, signal.SIGUSR1))
    with suppress(ProcessLookupError):
        os.kill(trainer, signal.SIGCONT)
    finished(process, untrained)
    first, second = untrained.segments()
    assert (first["ended_by"], second["ended_by"]) == ("SIGUSR1", "done")
    assert first["job"] == job != second["job"]
    assert 0 < first["end"] == second["start"]
    fault.same_bytes(untrained, reference)
    fault.outcome = f"saved at step {first['end']}, status 75, the next slot resumed there"


def test_time_limit_of_a_hung_process(untrained: Clone, reference: Clone, cluster: Cluster, fault: Fault) -> None:
    process, job = under_way(untrained, cluster)
    (trainer,) = untrained.training()
    os.kill(trainer, signal.SIGSTOP)
    shorten(job, 0)

    def timed_out() -> bool:
        with suppress(ProcessLookupError):
            os.kill(trainer, signal.SIGSTOP)  # again: SLURM wakes what it signals
        return f"{job} TIMEOUT" in cluster.described_jobs("%i %T")

    wait_until(timed_out)
    finished(process, untrained)
    assert len(untrained.segments()) == 2
    assert endings(untrained)[1] == "done"
    fault.same_bytes(untrained, reference)
    fault.outcome = f"TIMEOUT, retried, resumed at step {untrained.segments()[1]['start']}"


def test_requeue(untrained: Clone, reference: Clone, cluster: Cluster, fault: Fault) -> None:
    process, job = under_way(untrained, cluster)
    subprocess.run(["scontrol", "requeue", job], check=True)
    finished(process, untrained)
    jobs = {segment["job"] for segment in untrained.segments()}
    assert jobs == {job}
    assert len(untrained.segments()) == 2
    fault.same_bytes(untrained, reference)
    fault.outcome = f"the same job started again, resumed at step {untrained.segments()[1]['start']}"


def test_node_drain(untrained: Clone, reference: Clone, cluster: Cluster, fault: Fault) -> None:
    process, job = under_way(untrained, cluster, target=TARGET.replace("run.json", "samples.parquet"))
    cluster.set_node_state("drain")
    try:
        wait_until((untrained.run / "run.json").exists, told=lambda: untrained.log)
        wait_until(lambda: set(cluster.jobs()) - {job}, told=lambda: untrained.log)
        assert cluster.described_jobs("%T", "PENDING,RUNNING,COMPLETING") == ["PENDING"]
    finally:
        cluster.set_node_state("resume")
    finished(process, untrained)
    assert endings(untrained) == ["done"]
    fault.same_bytes(untrained, reference)
    fault.outcome = "training ended undisturbed, sampling waited for the node"


def test_node_failure(untrained: Clone, reference: Clone, cluster: Cluster, fault: Fault) -> None:
    """The node goes dark with all that runs on it, and comes back when SLURM has given it up."""
    process, job = under_way(untrained, cluster)
    wait_until(lambda: saved(untrained), told=lambda: untrained.log)
    cluster.kill_node(with_jobs=True)
    wait_until(lambda: cluster.node_state() == "down")
    cluster.start_node()
    finished(process, untrained)
    assert [segment["job"] for segment in untrained.segments()] == [job, job]
    assert endings(untrained) == [None, "done"]
    assert untrained.segments()[1]["start"] > 0
    fault.same_bytes(untrained, reference)
    fault.outcome = f"requeued by SLURM, resumed at step {untrained.segments()[1]['start']}"


def test_kill_9_of_slurmd(untrained: Clone, reference: Clone, cluster: Cluster, fault: Fault) -> None:
    process, _ = under_way(untrained, cluster)
    cluster.kill_node()
    time.sleep(2)
    cluster.start_node()
    finished(process, untrained)
    assert endings(untrained) == ["done"]
    fault.same_bytes(untrained, reference)
    fault.outcome = "the job went on, slurmd found it again"


def test_crash_of_the_node(untrained: Clone, reference: Clone, cluster: Cluster, fault: Fault) -> None:
    process, _ = under_way(untrained, cluster)
    wait_until(lambda: saved(untrained), told=lambda: untrained.log)
    cluster.kill_node(with_jobs=True)
    time.sleep(1)
    cluster.start_node()
    finished(process, untrained)
    assert endings(untrained) == [None, "done"]
    assert untrained.segments()[1]["start"] > 0
    fault.same_bytes(untrained, reference)
    fault.outcome = f"run again, resumed at step {untrained.segments()[1]['start']}"


def test_kill_9_of_training(untrained: Clone, reference: Clone, cluster: Cluster, fault: Fault) -> None:
    process, _ = under_way(untrained, cluster)
    wait_until(lambda: saved(untrained), told=lambda: untrained.log)
    (trainer,) = untrained.training()
    os.kill(trainer, signal.SIGKILL)
    finished(process, untrained)
    assert endings(untrained) == [None, "done"]
    assert untrained.segments()[1]["start"] > 0
    fault.same_bytes(untrained, reference)
    fault.outcome = f"retried, resumed at step {untrained.segments()[1]['start']}"


def test_ctrl_c_of_snakemake(untrained: Clone, reference: Clone, cluster: Cluster, fault: Fault) -> None:
    process, _ = under_way(untrained, cluster)
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(timeout=PATIENCE) != 0
    wait_until(lambda: not cluster.jobs())
    untrained.snakemake(TARGET)
    assert endings(untrained) == ["SIGTERM", "done"]
    fault.same_bytes(untrained, reference)
    fault.outcome = "its jobs were cancelled and saved; the same command went on"
