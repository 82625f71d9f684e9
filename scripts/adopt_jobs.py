"""After Snakemake was killed: wait for its jobs on the cluster (or cancel them), unlock, record what they finished."""

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from acpo.cells import CellNames, resolve
from acpo.cli import run
from acpo.config import Study, digest, load_study
from acpo.errors import ConfigError
from acpo.provenance import code_hash, training_modules
from acpo.results import RunRecord
from acpo.slurm import Job, SlurmError, command, queued_jobs, unrecorded_outputs
from acpo.store import read_json

SECONDS_BETWEEN_LOOKS = 5.0
SECONDS_TO_SAVE = 900.0  # as long before a time limit as the profile has training warned
RESULTS = Path("results")


def main() -> None:
    """Read arguments, wait or cancel, unlock, record."""
    arguments = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    arguments.add_argument(
        "--cancel", action="store_true",
        help="end the jobs: training is warned as before a time limit, saves and resumes later",
    )  # fmt: skip
    arguments.add_argument(
        "snakemake", nargs="*", default=["--profile", "slurm"],
        help="how Snakemake was called, after --; default: --profile slurm",
    )  # fmt: skip
    given = arguments.parse_args()
    try:
        wait_for_jobs(given.cancel)
    except SlurmError as error:
        raise ConfigError(str(error)) from error
    call_snakemake([*given.snakemake, "--unlock"])
    record(unrecorded_outputs(RESULTS), given.snakemake)
    print(f"go on: snakemake {' '.join(given.snakemake)} all")


def wait_for_jobs(cancel: bool) -> None:
    """Wait until no job of this directory is left."""
    told, start, warned = -1, time.monotonic(), set[str]()
    while jobs := queued_jobs(Path.cwd()):
        if cancel:
            end_jobs(jobs, warned, patient=time.monotonic() - start < SECONDS_TO_SAVE)
        if len(jobs) != told:
            told = len(jobs)
            print(f"waiting for {told} jobs: {' '.join(job.identifier for job in jobs)}", flush=True)
        time.sleep(SECONDS_BETWEEN_LOOKS)


def end_jobs(jobs: Sequence[Job], warned: set[str], patient: bool) -> None:
    """Warn training that runs, as before a time limit; cancel all else.

    After SIGTERM a cluster may give training less time than a rollout takes. It is warned once, because verl ends at
    once on a second signal.

    Args:
        jobs: Those that are left.
        warned: Which were warned; those that are now are added.
        patient: Whether training may still take its time; else it is cancelled too.
    """
    training = {job.identifier for job in jobs if job.rule == "train_policy" and job.state == "RUNNING" and patient}
    if new := sorted(training - warned):
        command("scancel", "--signal=USR1", *new)
        warned.update(new)
    if others := [job.identifier for job in jobs if job.identifier not in training]:
        command("scancel", *others)


def record(files: list[Path], arguments: list[str]) -> None:
    """Have Snakemake record finished outputs as made with the present configuration, unless a run says otherwise."""
    if not files:
        return
    told = call_snakemake([*arguments, "--dry-run", "--printshellcmds", "--force", *map(str, files)])
    snapshots = set(re.findall(r"--config (\S+\.json)", told))
    if len(snapshots) != 1 or not (snapshot := Path(snapshots.pop())).exists():
        raise ConfigError("the configuration has changed since these jobs were submitted: adopt them with the old one")
    study = load_study(snapshot)
    good = [file for file in files if all(fits(study, run) for run in runs_behind(file))]
    if good:
        call_snakemake([*arguments, "--touch", "--force", *map(str, good)])
    for file in files:
        print(f"adopted {file}" if file in good else f"{file} is not of the present configuration and code: delete it")


def runs_behind(file: Path) -> list[Path]:
    """List the records of the runs that a file rests on: with the file, Snakemake takes them for made now."""
    kind, *rest = file.relative_to(RESULTS).parts
    if kind == "data":
        return []
    if kind in ("runs", "probes"):
        return [RESULTS / "runs" / rest[0] / rest[1] / "run.json"]
    return sorted(RESULTS.glob(f"runs/{file.stem}/seed*/run.json")) or sorted(RESULTS.glob("runs/*/seed*/run.json"))


def fits(study: Study, file: Path) -> bool:
    """Say whether a run is finished, and of the present configuration and code."""
    if not file.exists():
        return False
    found = read_json(file, RunRecord)
    cell = CellNames(study).parse(found.cell)
    wanted = (digest(resolve(study, cell)), code_hash(training_modules(study, cell)))
    return (found.provenance.configuration_hash, found.provenance.code_hash) == wanted


def call_snakemake(arguments: list[str]) -> str:
    """Run Snakemake in this directory; returns what it prints."""
    done = subprocess.run([sys.executable, "-m", "snakemake", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ConfigError(f"snakemake {' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


if __name__ == "__main__":
    run(main)
