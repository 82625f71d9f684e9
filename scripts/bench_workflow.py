"""Time Snakemake's dry run of the default study and of one with thousands of cells; see docs/benchmarks.md."""

import argparse
import json
import math
import os
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from acpo.bench import Measurement, format_table
from acpo.cells import grid_cells
from acpo.cli import parser, run
from acpo.config import parse_study
from acpo.errors import ConfigError

WORKFLOW = Path(__file__).parent.parent
SECONDS = 3
LARGE_SECONDS = 20
METHODS_A_SUITE = 250


def main() -> None:
    """Measure, print, write."""
    given = read_arguments()
    values = yaml.safe_load(given.config.read_text(encoding="utf-8"))
    found = [
        *dry_run_medians("dry run, the study", values, given.repeats, SECONDS),
        *dry_run_medians("dry run, many cells", enlarged(values, given.cells), given.repeats, LARGE_SECONDS),
    ]
    print(format_table(found))
    if given.json:
        rows = [asdict(item) | {"met": item.met} for item in found]
        given.json.write_text(json.dumps({"repeats": given.repeats, "measurements": rows}, indent=1), encoding="utf-8")


def read_arguments() -> argparse.Namespace:
    """Read the command line."""
    arguments = parser(__doc__)
    arguments.add_argument("--cells", type=int, default=5000)
    arguments.add_argument("--repeats", type=int, default=3)
    arguments.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    return arguments.parse_args()


def enlarged(values: dict[str, Any], cells: int) -> dict[str, Any]:
    """Copy the grid's suites and methods under new names until a study has at least that many trained cells."""
    grid = values["grid"]
    per_regime = math.ceil(cells / len(grid["regimes"]))
    methods = _copies(values["methods"], grid["methods"], min(per_regime, METHODS_A_SUITE))
    suites = _copies(values["suites"], grid["suites"], math.ceil(per_regime / len(methods)))
    chosen = {"suites": list(suites), "methods": list(methods), "regimes": grid["regimes"]}
    return values | {
        "seeds": [0],
        "grid": chosen,
        "methods": values["methods"] | methods,
        "suites": values["suites"] | suites,
    }


def _copies(definitions: dict[str, Any], names: list[str], count: int) -> dict[str, Any]:
    sources = (names[i % len(names)] for i in range(count))
    return {f"{name}_copy{number}": definitions[name] for number, name in enumerate(sources)}


def dry_run_medians(name: str, values: dict[str, Any], repeats: int, limit: float) -> list[Measurement]:
    """Time the real dry run of a study in an empty directory, where nothing has been made yet.

    Returns:
        Wall seconds, which are promised, and CPU seconds, which a busy machine does not stretch as much.
    """
    name = f"{name} ({len(grid_cells(parse_study(values))):,} cells)"
    with TemporaryDirectory() as place:
        study = Path(place) / "study.json"
        study.write_text(json.dumps(values), encoding="utf-8")
        wall, cpu = zip(*(dry_run_seconds(study, Path(place)) for _ in range(repeats)), strict=True)
    return [Measurement(name, median(wall), "s", at_most=limit), Measurement(name, median(cpu), "CPU s")]


def dry_run_seconds(study: Path, place: Path) -> tuple[float, float]:
    """Return the wall and CPU seconds of one dry run.

    Raises:
        ConfigError: it failed.
    """
    command: list[str | Path] = [
        sys.executable, "-m", "snakemake", "--snakefile", WORKFLOW / "Snakefile", "--configfile", study,
        "--directory", place, "--cores", "1", "--dry-run",
    ]  # fmt: skip
    # No profile of the user's takes part.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("SNAKEMAKE_")}
    start, before = time.perf_counter(), os.times()
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    wall, after = time.perf_counter() - start, os.times()
    if done.returncode:
        raise ConfigError(f"the dry run failed:\n{done.stderr[-2000:]}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, cpu


if __name__ == "__main__":
    run(main)
