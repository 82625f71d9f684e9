"""Real Snakemake runs of a small study in a directory of their own."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]

SMALL = {
    "seeds": [0],
    "grid": {"methods": ["dapo", "acpo"]},
    "probes": {"prompts": 16, "updates": [1, 2]},
    # The base model must solve a puzzle now and then: without a reward nothing moves, and nothing would be tested.
    "models": {"mini_decoder": {"supervised": {"steps": 300, "warmup_steps": 20}}},
    "suites": {
        "mini": {
            "training": {"prompts": 32, "group_size": 8, "validation_every": 1, "checkpoint_every": 1},
            "regimes": {
                "nonp": {"label": "N-OnP.", "train_batch_size": 8, "mini_batch_size": 4},
                "offp": {"label": "OffP.", "train_batch_size": 16, "mini_batch_size": 1},
            },
            "benchmarks": {
                "countdown_mini": {"label": "Countdown (mini)", "task": "countdown_mini", "split": "test", "samples": 2}
            },
            "validation": {"split": "dev", "samples": 1},
            "token_store": {"rollouts": [1]},
        }
    },
}

Snakemake = Callable[..., subprocess.CompletedProcess[str]]


def command(directory: Path, *arguments: str) -> list[str]:
    """Return the command line that runs the real Snakefile in `directory`."""
    return [
        sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--directory", str(directory),
        *arguments,
    ]  # fmt: skip


def environment() -> dict[str, str]:
    """Return this process's environment, with one thread a process."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", "/tmp/acpo-cache")}


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """Write the small study's overrides; returns its file."""
    path = tmp_path / "small.yaml"
    path.write_text(yaml.safe_dump(SMALL))
    return path


@pytest.fixture
def snakemake(tmp_path: Path, study: Path) -> Snakemake:
    """Run Snakemake on the small study in the test's own directory."""

    def run(*arguments: str, small: bool = True) -> subprocess.CompletedProcess[str]:
        overrides = ["--configfile", str(study)] if small else []
        return subprocess.run(
            command(tmp_path, *arguments, *overrides), capture_output=True, text=True, env=environment(), timeout=900
        )

    return run
