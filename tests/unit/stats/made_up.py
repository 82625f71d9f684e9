"""A made-up study whose runs are written as the pipeline writes them, with verdicts of known chances."""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from acpo.cells import Cell, cell_seeds, grid_cells
from acpo.config import Study, parse_study
from acpo.data.problems import write_problems
from acpo.evaluation import score_cell
from acpo.results import SAMPLE_SCHEMA, VERDICT_SCHEMA, CellResult, CheckpointInfo, Provenance, RunRecord
from acpo.stats.raw import Tally
from acpo.store import write_json, write_table
from acpo.tasks.base import Problem
from acpo.timing import MethodTime, RegimeTime, Timing

ROOT = Path(__file__).parents[3]
PROVENANCE = Provenance(
    configuration={"learning_rate": 1}, configuration_hash="c0ffee", code_hash="beef", data_hashes={"a": "1"},
    git_commit="0", git_dirty=False, packages={"numpy": "2"}, python="3.11", platform="Linux", device="cpu",
    wall_seconds=1.0, peak_memory_mb=1.0,
)  # fmt: skip
QUESTIONS, K = 12, 4


def values(methods: tuple[str, ...] = ("dapo", "cispo", "acpo"), seeds: tuple[int, ...] = (0, 1)) -> dict[str, Any]:
    """Return config.yaml with a smaller grid, and fewer resamples."""
    content = copy.deepcopy(yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8")))
    content["seeds"] = list(seeds)
    content["grid"]["methods"] = list(methods)
    content["suites"]["mini"]["benchmarks"]["countdown_mini"]["samples"] = K
    content["statistics"]["resamples"] = 1000
    return content


def study(**changes: Any) -> Study:
    return parse_study(values(**changes))


def problems() -> list[Problem]:
    return [Problem(id=f"q{number:02d}", prompt=f"question {number}", gold="g") for number in range(QUESTIONS)]


def made_study(root: Path, made: Study, levels: Mapping[str, float] = {}, leave_out: tuple[str, ...] = ()) -> Path:
    """Write data, runs and cells of a study's grid; `levels` moves a method's chances, `leave_out` names lost runs."""
    results = root / "results"
    write_problems(results / "data/countdown_mini/test.parquet", "countdown_mini", "math", "test", problems())
    for cell in grid_cells(made):
        lost = [seed for seed in cell_seeds(made, cell) if f"{cell}/seed{seed}" in leave_out]
        for seed in cell_seeds(made, cell):
            if seed not in lost:
                write_run(results, cell, seed, levels.get(cell.method, 0.0))
        if not lost:
            write_cell(results, made, cell)
    # A finished study has this file beside its cells.
    times = {"dapo": MethodTime(seconds=[1.0, 2.0])}
    regime = RegimeTime(suite="mini", regime="nonp", tokens=1, updates=1, methods=times)
    write_json(results / "timing.json", Timing(regimes=[regime], provenance=PROVENANCE))
    return results


def write_run(results: Path, cell: Cell, seed: int, level: float) -> None:
    run = results / "runs" / str(cell) / f"seed{seed}"
    kinds = ("last",) if cell.is_base else ("last", "best")
    checkpoints = {
        kind: CheckpointInfo(path=kind, rollout=1, weights_sha256=f"{cell}{seed}{kind}", validation=None)
        for kind in kinds
    }
    rng = np.random.default_rng([seed, *map(ord, str(cell))])
    chances = np.clip(np.linspace(0.05, 0.8, QUESTIONS) + level, 0, 1)
    rows = [
        {
            "benchmark": "countdown_mini", "checkpoint": kind, "question": problem.id, "sample": sample,
            "response": "r", "response_tokens": 5, "finish_reason": "length" if rng.random() < 0.1 else "stop",
            "correct": bool(rng.random() < chances[place]), "extracted": None if rng.random() < 0.1 else "answer",
            "reason": "made up", "grader_version": "made up 1",
        }
        for kind in kinds
        for place, problem in enumerate(problems())
        for sample in range(K)
    ]  # fmt: skip
    frame = pd.DataFrame(rows)
    write_table(run / "samples.parquet", frame[SAMPLE_SCHEMA.names], SAMPLE_SCHEMA)
    write_table(run / "verdicts.parquet", frame[VERDICT_SCHEMA.names], VERDICT_SCHEMA)
    record = RunRecord(
        cell=str(cell), seed=seed, rollouts=1, updates=2, response_tokens=1, checkpoints=checkpoints,
        measured_parameters={}, provenance=PROVENANCE,
    )  # fmt: skip
    write_json(run / "run.json", record)


def write_cell(results: Path, made: Study, cell: Cell, **changes: Any) -> None:
    runs = {seed: results / "runs" / str(cell) / f"seed{seed}" for seed in cell_seeds(made, cell)}
    content: dict[str, Any] = {
        "cell": str(cell), "suite": cell.suite, "method": cell.method, "regime": cell.regime,
        "benchmarks": score_cell(made, cell, runs, {"countdown_mini": problems()}),
        "updates_per_rollout": None, "run_wall_seconds": dict.fromkeys(runs, 1.0), "provenance": PROVENANCE,
    }  # fmt: skip
    write_json(results / f"{cell}.json", CellResult(**(content | changes)))


def made_tally(correct: np.ndarray, method: str = "acpo", seeds: tuple[int, ...] | None = None) -> Tally:
    """Wrap verdicts [seeds, questions, k] as a cell's."""
    cell = Cell("mini", method, None if method == "base" else "nonp")
    count, questions, _ = correct.shape
    names = tuple(f"q{number:04d}" for number in range(questions))
    return Tally(cell, "countdown_mini", "last", seeds or tuple(range(count)), names, correct.astype(bool))
