"""Time the embedded engine beside transformers, DAPO and (with --trl) TRL's GRPOTrainer; see docs/benchmarks.md."""

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from acpo.bench import (
    Measurement,
    Setting,
    compare_sampling,
    compare_updates,
    engine_settings,
    format_table,
    interleave,
    training_speed,
)
from acpo.cli import parser, run
from acpo.config import ConfigError, Study, load_study
from acpo.datasets import write_problems
from acpo.results import RunRecord
from acpo.store import StoreError, read_json, write_json
from acpo.tasks import load_task

SCRIPTS = Path(__file__).parent
PARTS = ("sampler", "updates", "training", "memory")
MEMORY_MB = 1500


def read_arguments() -> argparse.Namespace:
    """Read the command line."""
    arguments = parser(__doc__)
    arguments.add_argument("--suite", default="mini")
    arguments.add_argument("--base", type=Path, help="the base model (results/runs/<suite>_base/seed0/last)")
    arguments.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    arguments.add_argument("--rounds", type=int, default=5, help="turns of each contestant")
    arguments.add_argument("--trl", action="store_true", help="compare with TRL; needs envs/bench/requirements.txt")
    arguments.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    return arguments.parse_args()


def main() -> None:
    """Measure, print, write."""
    given = read_arguments()
    study = load_study(given.config)
    base = given.base or Path(f"results/runs/{given.suite}_base/seed0/last")
    if not base.is_dir():
        raise StoreError(f"{base}: no base model. Make it: snakemake --cores 1 {base.parent}/run.json")
    setting = Setting.of(study, given.suite, base)
    found: list[Measurement] = []
    for part in given.parts:
        new = measure(part, setting, given)
        print(format_table(new), flush=True)
        found += new
    if given.json:
        rows = [asdict(item) | {"ratio": item.ratio, "met": item.met} for item in found]
        given.json.write_text(json.dumps({"rounds": given.rounds, "measurements": rows}, indent=1), encoding="utf-8")


def measure(part: str, setting: Setting, given: argparse.Namespace) -> list[Measurement]:
    """Make one part's measurements."""
    grid = setting.study.grid
    if part == "sampler":
        return compare_sampling(setting, 64, given.rounds)
    if part == "updates":
        return [m for regime in grid.regimes for m in compare_updates(setting, regime, grid.methods, given.rounds)]
    if part == "training":
        return [compare_training(setting, regime, given.rounds, given.trl) for regime in grid.regimes]
    return measure_memory(setting)


def compare_training(setting: Setting, regime: str, rounds: int, trl: bool) -> Measurement:
    """End-to-end tokens per second of the embedded trainer, beside TRL's where asked for."""
    contestants = {"ours": lambda: training_speed(setting, regime, 2)}
    if trl:
        contestants["trl"] = lambda: trl_speed(setting, regime, 2)
    speeds = {name: median(values) for name, values in interleave(contestants, rounds).items()}
    name = f"training / TRL GRPOTrainer, {regime}" if trl else f"training, {regime}"
    return Measurement(name, speeds["ours"], "tokens/s", speeds.get("trl"), at_least=6 if trl else None)


def trl_speed(setting: Setting, regime: str, rollouts: int) -> list[float]:
    """Response tokens per second of TRL's GRPOTrainer, by rollout; the first is dropped.

    Raises:
        ConfigError: TRL is not installed.
    """
    try:
        from acpo_bench_trl import time_trl  # scripts/acpo_bench_trl.py, beside this file
    except ModuleNotFoundError as error:
        raise ConfigError(f"--trl needs the packages of envs/bench/requirements.txt ({error})") from error
    with engine_settings(deterministic=False):
        return time_trl(setting, regime, rollouts)


if __name__ == "__main__":
    run(main)
