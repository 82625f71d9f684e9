"""A small study that verl trains in two rollouts, run as a user does: by the training script."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import psutil
import yaml
from small_study import ROOT, SmallStudy, make_small_study

from acpo.engines.orphans import MARK
from acpo.results import RunRecord
from acpo.store import read_json, read_table

ROLLOUTS, UPDATES = 2, 2
SHOWN = ["rollout", "update", "stage", "loss", "gradient_norm", "ratio_max", "clip_fraction", "entropy"]
LIMIT_SECONDS = 900
"""Far more than a launch takes, also on a busy machine."""


def make_verl_study(root: Path, suite: str) -> SmallStudy:
    """Make the small study with a suite that verl trains, its base model and its data."""
    small = make_small_study(root, hidden_size=64, attention_heads=2, key_value_heads=1)
    values = json.loads(json.dumps(yaml.safe_load(small.config.read_text())))
    values["models"]["mini_decoder_wide"] = values["models"]["mini_decoder"]
    changed, embedded = values["suites"][suite], values["suites"]["mini"]
    for name in ("training", "validation", "benchmarks"):
        changed[name] = embedded[name]
    changed["training"] |= {"validation_every": 1, "checkpoint_every": 1}
    changed["engine"] |= {"micro_batch_size": 16}
    changed["regimes"] = {
        "nonp": {"label": "N-OnP.", "train_batch_size": 16, "mini_batch_size": 8},
        "offp": {"label": "OffP.", "train_batch_size": 16, "mini_batch_size": 8},
    }
    changed["token_store"] = {"rollouts": [1]}
    small.config.write_text(yaml.safe_dump(values))
    return small


@dataclass
class Training:
    """A training script that runs, or has ended."""

    process: "subprocess.Popen[str]"
    run: Path
    log: Path

    @classmethod
    def start(cls, small: SmallStudy, cell: str, run: Path) -> "Training":
        """Start the script for a cell."""
        run.parent.mkdir(parents=True, exist_ok=True)
        log = run.with_name(f"{run.name}_{len(list(run.parent.glob('*.log')))}.log")
        environment = {key: value for key, value in os.environ.items() if key != MARK}
        command = [sys.executable, str(ROOT / "scripts" / "train_policy.py"), *small.train_arguments(cell, run)]
        with log.open("w") as output:
            process = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, text=True, cwd=small.root, env=environment
            )
        return cls(process, run, log)

    def wait(self) -> int:
        """Wait for its end and return the status; the log is shown where it fails."""
        status = self.process.wait(LIMIT_SECONDS)
        if status:
            print("\n".join(self.said().splitlines()[-60:]))
        return status

    def said(self) -> str:
        """Return its output."""
        return self.log.read_text(errors="replace")

    def until(self, reached: Callable[[Path], bool]) -> None:
        """Wait until the run directory satisfies a condition; fail if the script ends before."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while not reached(self.run):
            assert self.process.poll() is None, self.said()[-4000:]
            assert time.monotonic() < deadline, self.said()[-4000:]
            time.sleep(0.2)

    def processes(self) -> list[psutil.Process]:
        """List the processes below the script, verl's and Ray's."""
        return psutil.Process(self.process.pid).children(recursive=True)


def started_for(run: Path) -> list[psutil.Process]:
    """List all living processes that were started for a run: they inherit where its TensorBoard log lies."""
    found = []
    for process in psutil.process_iter():
        try:
            told = process.environ().get("TENSORBOARD_DIR", "")
            if told.startswith(str(run)) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def no_orphans(run: Path, seconds: float = 30) -> bool:
    """Say whether every process of a run ends within some seconds."""
    deadline = time.monotonic() + seconds
    while started_for(run):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.5)
    return True


def finished(run: Path) -> tuple[RunRecord, pd.DataFrame, pd.DataFrame]:
    """Read a finished run, and print its step metrics."""
    record = read_json(run / "run.json", RunRecord)
    metrics, rollouts = read_table(run / "metrics.parquet"), read_table(run / "rollouts.parquet")
    print(f"\n{record.cell}: {record.provenance.wall_seconds:.0f} s")
    print(metrics[SHOWN].to_string(index=False))
    print(rollouts.to_string(index=False))
    return record, metrics, rollouts
