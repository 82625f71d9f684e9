"""Show how far each run of a study is: queued, running (step, tokens/s, time left), failed with its log, done."""

import argparse
import json
import sys
from collections import Counter
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from acpo.cli import run
from acpo.config import Study, load_study
from acpo.errors import ConfigError
from acpo.slurm import SlurmError, queued_jobs
from acpo.status import RunStatus, study_status

WIDTH_OF_A_FILE = 160
COLOURS = {"running": "green", "queued": "cyan", "failed": "red", "stopped": "yellow", "done": "dim", "waiting": "dim"}


def main() -> None:
    """Read arguments, gather, print."""
    arguments = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    arguments.add_argument("--config", type=Path, help="the study; without it, the one that was started last")
    arguments.add_argument("--results", type=Path, default=Path("results"))
    arguments.add_argument("--json", action="store_true", help="print JSON")
    given = arguments.parse_args()
    study = load_study(given.config) if given.config else newest_study(given.results)
    try:
        jobs = queued_jobs(Path.cwd())
    except SlurmError as error:
        jobs = []
        print(f"without the queue: {error}", file=sys.stderr)
    found = study_status(study, given.results, jobs)
    if given.json:
        print(json.dumps([asdict(each) for each in found], indent=1))
    else:
        show(found)


def newest_study(results: Path) -> Study:
    """Load the snapshot of the study that was started last."""
    snapshots = sorted(results.glob("config/*.json"), key=lambda file: file.stat().st_mtime)
    if not snapshots:
        raise ConfigError(f"{results}/config: nothing was started here yet; --config config.yaml shows what is to come")
    return load_study(snapshots[-1])


def show(found: list[RunStatus]) -> None:
    """Print a table and a line of totals."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    numbers = {"seed", "step", "tokens/s", "left", "slots"}
    for heading in ("cell", "seed", "stage", "state", "step", "tokens/s", "left", "slots", "job", ""):
        table.add_column(heading, justify="right" if heading in numbers else "left")
    for each in found:
        table.add_row(
            each.cell, str(each.seed), each.stage, Text(each.state, style=COLOURS[each.state]),
            f"{each.step}/{each.steps}" if each.step is not None else "",
            f"{each.tokens_per_second:,.0f}" if each.tokens_per_second is not None else "",
            str(timedelta(seconds=round(each.seconds_left))) if each.seconds_left is not None else "",
            str(each.segments or ""), each.job or "", Text(each.detail),
        )  # fmt: skip
    console = Console(width=None if sys.stdout.isatty() else WIDTH_OF_A_FILE)
    console.print(table)
    counts = Counter(each.state for each in found)
    console.print(f"{len(found)} runs: " + ", ".join(f"{counts[state]} {state}" for state in COLOURS if counts[state]))


if __name__ == "__main__":
    run(main)
