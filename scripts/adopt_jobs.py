"""After Snakemake was killed: wait for its jobs on the cluster (or cancel them), unlock, record what they finished."""

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path

from acpo.cells import CellNames, resolve
from acpo.cli import run
from acpo.config import Study, digest, load_study
from acpo.errors import ConfigError
from acpo.provenance import code_hash, training_modules
from acpo.results import RunRecord
from acpo.slurm import SlurmError, command, queued_jobs, unrecorded_outputs
from acpo.store import read_json

SECONDS_BETWEEN_LOOKS = 5.0
RESULTS = Path("results")


def main() -> None:
    """Read arguments, wait or cancel, unlock, record."""
    arguments = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    arguments.add_argument("--cancel", action="store_true", help="cancel the jobs; training saves and resumes later")
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
    told = -1
    while jobs := queued_jobs(Path.cwd()):
        if cancel:
            command("scancel", *(job.identifier for job in jobs))
            cancel = False
        if len(jobs) != told:
            told = len(jobs)
            print(f"waiting for {told} jobs: {' '.join(job.identifier for job in jobs)}", flush=True)
        time.sleep(SECONDS_BETWEEN_LOOKS)


def record(files: list[Path], arguments: list[str]) -> None:
    """Have Snakemake record finished outputs as made with the present configuration, unless a run says otherwise."""
    if not files:
        return
    told = call_snakemake([*arguments, "--dry-run", "--printshellcmds", "--force", *map(str, files)])
    snapshots = set(re.findall(r"--config (\S+\.json)", told))
    if len(snapshots) != 1 or not (snapshot := Path(snapshots.pop())).exists():
        raise ConfigError("the configuration has changed since these jobs were submitted: adopt them with the old one")
    study = load_study(snapshot)
    good = [file for file in files if file.name != "run.json" or fits(study, file)]
    if good:
        call_snakemake([*arguments, "--touch", "--force", *map(str, good)])
    for file in files:
        print(f"adopted {file}" if file in good else f"{file} is of another configuration or code: delete it")


def fits(study: Study, file: Path) -> bool:
    """Say whether a finished run is of the present configuration and code."""
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
