"""The jobs that SLURM holds for this workflow, and the records that a killed Snakemake left behind."""

import json
import shutil
import subprocess
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from pathlib import Path

FIELDS = ("%i", "%T", "%r", "%k", "%Z")
TIMEOUT_SECONDS = 60
RECORDS = Path(".snakemake/metadata")
OUTPUTS = (
    *("data/*/*.parquet", "data/*/*.manifest.json", "runs/*/seed*/run.json", "runs/*/seed*/samples.parquet"),
    *("runs/*/seed*/verdicts.parquet", "*.json", "probes/*/seed*/*.json", "probes/*/seed*/drift/drift.json"),
    *("data/overlap/*.json", "statistics/statistics.json", "export/numbers.parquet"),
)
"""What jobs on the cluster make, as `unrecorded_outputs` looks for it."""


class SlurmError(Exception):
    """SLURM could not be asked; the message says what it said."""


@dataclass(frozen=True)
class Job:
    """A pending or running job of this workflow. `wildcards` are those of its rule, joined by `_`."""

    identifier: str
    state: str
    reason: str
    rule: str
    wildcards: str


def command(*line: str) -> str:
    """Run a SLURM command.

    Raises:
        SlurmError: it is not there, fails, or does not answer within a minute.
    """
    if shutil.which(line[0]) is None:
        raise SlurmError(f"no {line[0]} here: run this on the cluster's login node")
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise SlurmError(f"{line[0]} does not answer: try again later") from error
    if done.returncode:
        raise SlurmError(f"{' '.join(line)}: {done.stderr.strip()}")
    return done.stdout


def queued_jobs(directory: Path) -> list[Job]:
    """List the jobs that were submitted from a directory and have not ended.

    Raises:
        SlurmError: see `command`.
    """
    lines = command("squeue", "--me", "--noheader", f"--format={'|'.join(FIELDS)}").splitlines()
    jobs = []
    for line in lines:
        identifier, state, reason, comment, place = line.split("|", len(FIELDS) - 1)
        if Path(place) == directory.resolve() and comment.startswith("rule_"):
            rule, _, wildcards = comment.removeprefix("rule_").partition("_wildcards_")
            jobs.append(Job(identifier, state, reason, rule, wildcards))
    return jobs


def unrecorded_outputs(results: Path) -> list[Path]:
    """List finished outputs that Snakemake has no record of, or an older file's: it was killed while their jobs ran.

    Without a record Snakemake takes such a file for good whatever becomes of the configuration; by an older file's it
    makes it again.
    """
    files = sorted(file for pattern in OUTPUTS for file in results.glob(pattern))
    return [file for file in files if _recorded_time(file) < file.stat().st_mtime - 1]


def _recorded_time(output: Path) -> float:
    """Return when the file that Snakemake recorded was written; 0 where it recorded none."""
    try:
        record = json.loads((RECORDS / urlsafe_b64encode(str(output).encode()).decode()).read_text(encoding="utf-8"))
        return float(record["endtime"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0
