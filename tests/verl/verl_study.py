"""A small study that verl trains in two rollouts, run as a user does: by the training script."""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import psutil
import yaml
from small_study import ROOT, SmallStudy, make_small_study

from acpo.engines.orphans import MARK
from acpo.results import RunRecord
from acpo.store import read_json, read_table

ROLLOUTS, UPDATES = 2, 2
REPORT: list[str] = []
"""What the real runs gave, shown when all tests are done."""

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
    seen: set[psutil.Process] = field(default_factory=set)
    """Every process below it so far, verl's and Ray's."""

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
        deadline = time.monotonic() + LIMIT_SECONDS
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.said()[-4000:]
            self.look()
            time.sleep(0.2)
        status = self.process.returncode
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
            self.look()
            time.sleep(0.2)

    def look(self) -> None:
        """Remember the processes below the script."""
        with contextlib.suppress(psutil.Error):
            self.seen.update(psutil.Process(self.process.pid).children(recursive=True))

    def leaves_no_orphans(self, seconds: float = 60) -> bool:
        """Say whether every process that was below it ends within some seconds."""
        assert len(self.seen) > 1
        deadline = time.monotonic() + seconds
        while living := [process for process in self.seen if is_alive(process)]:
            if time.monotonic() > deadline:
                print("left:", living)
                return False
            time.sleep(0.5)
        return True


def is_alive(process: psutil.Process) -> bool:
    """Say whether a process runs."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def finished(run: Path) -> tuple[RunRecord, pd.DataFrame, pd.DataFrame]:
    """Read a finished run, and report its step metrics."""
    record = read_json(run / "run.json", RunRecord)
    metrics, rollouts = read_table(run / "metrics.parquet"), read_table(run / "rollouts.parquet")
    REPORT.append(f"{record.cell}: {record.provenance.wall_seconds:.0f} s")
    REPORT.append(metrics[SHOWN].to_string(index=False))
    REPORT.append(rollouts.to_string(index=False))
    return record, metrics, rollouts
