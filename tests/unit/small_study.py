"""A study of config.yaml's shape with small numbers, and how its files are laid out and run."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from acpo.cells import Cell, CellNames
from acpo.config import Study, load_study
from acpo.data.problems import read_problems, write_problems
from acpo.engines import TrainingJob
from acpo.engines.tiny.engine import ENGINE
from acpo.tasks import load_task

ROOT = Path(__file__).parents[2]
PUZZLES = {"train": ("train", 16), "dev": ("train", 16), "test": ("test", 12)}
"""Which puzzles stand in for each split: so few that the small model knows them, and is rewarded, in seconds."""


def small_values(**sizes: int) -> dict[str, Any]:
    """Return config.yaml with small numbers: 4 rollouts of 2 updates (nonp), 2 of 4 updates (offp); model `sizes`."""
    # Through JSON, so that no two sections share an object.
    values = json.loads(json.dumps(yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8"))))
    values["seeds"] = [0]
    model = values["models"]["mini_decoder"]
    model |= {"hidden_size": 32, "feed_forward_size": 48} | sizes
    model["supervised"] |= {"steps": 350, "batch_size": 32, "warmup_steps": 20, "learning_rate": 0.01}
    suite = values["suites"]["mini"]
    suite["training"] |= {"prompts": 32, "group_size": 4, "validation_every": 2, "checkpoint_every": 1}
    suite["engine"] |= {"generation_batch_size": 64}
    suite["regimes"] = {
        "nonp": {"label": "N-OnP.", "train_batch_size": 8, "mini_batch_size": 4},
        "offp": {"label": "OffP.", "train_batch_size": 16, "mini_batch_size": 4},
    }
    suite["validation"]["samples"] = 2
    suite["benchmarks"]["countdown_mini"]["samples"] = 4
    suite["token_store"] = {"rollouts": [1, 2]}
    return values


@dataclass(frozen=True)
class SmallStudy:
    """A directory with `config.yaml`, `data/` and `runs/`."""

    root: Path

    @property
    def config(self) -> Path:
        return self.root / "config.yaml"

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def base(self) -> Path:
        return self.root / "runs/mini_base/seed0/last"

    def run(self, cell: str, name: str = "seed0") -> Path:
        return self.root / "runs" / cell / name

    def split(self, name: str) -> Path:
        return self.data / "countdown_mini" / f"{name}.parquet"

    def change(self, **sections: Any) -> None:
        """Merge values into the `mini` suite's sections of the configuration."""
        values = json.loads(json.dumps(yaml.safe_load(self.config.read_text())))
        for name, content in sections.items():
            values["suites"]["mini"][name] |= content
        self.config.write_text(yaml.safe_dump(values))

    def study(self) -> Study:
        return load_study(self.config)

    def cell(self, name: str) -> Cell:
        return CellNames(self.study()).parse(name)

    def job(self, cell: str, directory: Path | None = None, seed: int = 0, **changes: Any) -> TrainingJob:
        """Return a training job that writes to `directory`."""
        content: dict[str, Any] = {
            "study": self.study(), "cell": self.cell(cell), "seed": seed,
            "problems": read_problems(self.split("train")),
            "validation": read_problems(self.split("dev")), "training_file": self.split("train"),
            "validation_file": self.split("dev"), "data_hashes": {}, "base_directory": self.base,
            "measured": {}, "run_directory": directory or self.run(cell),
        }  # fmt: skip
        return TrainingJob(**(content | changes))

    def train_arguments(self, cell: str, directory: Path) -> list[str]:
        """Return the arguments of scripts/train_policy.py for a run in `directory`."""
        return [
            "--config", str(self.config), "--cell", cell, "--train-data", str(self.split("train")),
            "--validation-data", str(self.split("dev")), "--base", str(self.base), "--run-directory", str(directory),
        ]  # fmt: skip


def make_small_study(root: Path, **sizes: int) -> SmallStudy:
    """Write the configuration and the data sets, and train the base model, with other `sizes` if given."""
    small = SmallStudy(root)
    small.config.write_text(yaml.safe_dump(small_values(**sizes)))
    task = load_task("countdown_mini")
    for split, (source, count) in PUZZLES.items():
        problems = list(task.problems(source, 0, {}))[:count]
        write_problems(small.split(split), "countdown_mini", task.ability, split, problems)
    ENGINE.make_base(small.job("mini_base", base_directory=None))
    return small


def script(name: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a script as a user does."""
    return subprocess.run(
        [sys.executable, ROOT / "scripts" / f"{name}.py", *arguments],
        capture_output=True, text=True, check=False, cwd=ROOT, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
