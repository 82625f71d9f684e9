"""After `kill -9` of Snakemake its jobs live on: they are adopted or cancelled, and nothing is trained twice."""

import json
import os
import signal
import subprocess
import sys

from tests.slurm.cluster import Cluster
from tests.slurm.conftest import CELL, PATIENCE, TARGET, Clone, Fault, guarded
from tests.slurm.test_faults import endings, under_way


def script(clone: Clone, name: str, *arguments: str) -> str:
    """Run a script of the clone in it."""
    line = [sys.executable, f"scripts/{name}.py", *arguments]
    done = subprocess.run(
        line, cwd=clone.directory, env=guarded(clone.directory), capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


HOW = ("--", "--profile", "slurm", "--configfile", "small.yaml")


def killed(clone: Clone, cluster: Cluster) -> str:
    process, job = under_way(clone, cluster)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert cluster.jobs() == [job]
    return job


def test_kill_9_of_snakemake_adopting(untrained: Clone, reference: Clone, cluster: Cluster, fault: Fault) -> None:
    job = killed(untrained, cluster)
    found = {(each["cell"], each["state"]): each for each in json.loads(script(untrained, "cluster_status", "--json"))}
    running = found[CELL, "running"]
    assert (running["job"], running["stage"], running["steps"]) == (job, "train", 100)
    assert running["tokens_per_second"] is None or running["tokens_per_second"] > 0
    assert ("mini_dapo_nonp", "done") in found
    told = script(untrained, "adopt_jobs", *HOW)
    assert told.splitlines() == [
        f"waiting for 1 jobs: {job}",
        f"adopted {TARGET}",
        "go on: snakemake --profile slurm --configfile small.yaml all",
    ]
    made = (untrained.run / "run.json").read_bytes()
    untrained.snakemake(TARGET.replace("run.json", "samples.parquet"))
    assert (untrained.run / "run.json").read_bytes() == made
    assert endings(untrained) == ["done"]
    fault.same_bytes(untrained, reference)
    fault.outcome = "its job was waited for and recorded, sampling went on, nothing trained twice"
    changed = untrained.start(TARGET, "--dry-run", "--config", "suites={mini: {training: {learning_rate: 1.0e-4}}}")
    assert changed.wait(timeout=PATIENCE) == 0
    assert "Params have changed" in untrained.log, "what was adopted is not watched for changes"


def test_kill_9_of_snakemake_cancelling(untrained: Clone, reference: Clone, cluster: Cluster, fault: Fault) -> None:
    killed(untrained, cluster)
    script(untrained, "adopt_jobs", "--cancel", *HOW)
    assert endings(untrained) == ["SIGUSR1"]
    assert f"{CELL} 0 train stopped" in " ".join(script(untrained, "cluster_status").split())
    untrained.snakemake(TARGET)
    assert endings(untrained) == ["SIGUSR1", "done"]
    fault.same_bytes(untrained, reference)
    fault.outcome = f"its job was warned, saved step {untrained.segments()[0]['end']}, resumed there"


def test_no_progress_in_two_slots(untrained: Clone, cluster: Cluster, fault: Fault) -> None:
    """Two slots that saved nothing, as their records tell; the third stops at once, and so do its retries."""
    process, _ = under_way(untrained, cluster)
    os.kill(process.pid, signal.SIGINT)
    process.wait(timeout=PATIENCE)
    path = untrained.run / "segments.json"
    record = json.loads(path.read_text())
    (first,) = record["segments"]
    idle = {**first, "start": first["end"], "seconds": 1380.0, "ended_by": "SIGUSR1"}
    path.write_text(json.dumps({**record, "segments": [first, idle, idle]}))
    again = untrained.start(TARGET, "--retries", "1")
    assert again.wait(timeout=PATIENCE) != 0
    errors = [line for line in untrained.log.splitlines() if line.startswith("error: ")]
    assert f"no progress after step {first['end']} in two segments of 1380 s and 1380 s" in errors[0]
    assert len(json.loads(path.read_text())["segments"]) == 3
    path.unlink()
    untrained.snakemake(TARGET)
    assert endings(untrained) == ["done"]
    fault.outcome = "one line says so, no further training; deleting segments.json lets it go on"
