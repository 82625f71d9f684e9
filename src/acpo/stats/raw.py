"""The raw layer: verdict stores joined to one tidy frame, and the counts that all statistics start from."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from acpo.cells import Cell, cell_seeds
from acpo.cli import benchmark_problems
from acpo.config import Study
from acpo.evaluation import read_record, read_run
from acpo.store import StoreError

COLUMNS = [
    *("cell", "suite", "task", "method", "regime", "seed", "checkpoint", "benchmark", "question", "sample"),
    *("correct", "finish_reason", "response_tokens", "extracted", "reason", "grader_version"),
]
NEEDED = ("run.json", "samples.parquet", "verdicts.parquet")


def read_cell(study: Study, cell: Cell, results: Path) -> pd.DataFrame:
    """Read every graded sample of a cell's finished runs.

    Args:
        study: The study.
        cell: The cell.
        results: The results folder, with `runs/` and `data/`.

    Returns:
        One row a sample with `COLUMNS`, empty where no run is finished. `regime` is empty text for the base model.

    Raises:
        StoreError: a store is damaged, has a question without exactly k samples, or several grader versions.
    """
    runs = {seed: results / "runs" / str(cell) / f"seed{seed}" for seed in cell_seeds(study, cell)}
    finished = {seed: run for seed, run in runs.items() if all((run / name).exists() for name in NEEDED)}
    if not finished:
        return pd.DataFrame(columns=COLUMNS)
    problems = benchmark_problems(study, cell, results / "data")
    frames = []
    for seed, run in finished.items():
        record = read_record(run, cell, seed)
        frames.append(read_run(study, cell, run, problems, record.checkpoints).assign(seed=seed))
    frame = pd.concat(frames, ignore_index=True)
    tasks = {name: item.task for name, item in study.suites[cell.suite].benchmarks.items()}
    names = {"cell": str(cell), "suite": cell.suite, "method": cell.method, "regime": cell.regime or ""}
    _check_graders(frame, cell)
    return frame.assign(task=frame["benchmark"].map(tasks), **names)[COLUMNS]


def _check_graders(frame: pd.DataFrame, cell: Cell) -> None:
    for benchmark, versions in frame.groupby("benchmark")["grader_version"]:
        if versions.nunique() != 1:
            found = sorted(versions.unique())
            raise StoreError(f"{cell}: {benchmark} was graded by several versions {found}: grade again")


@dataclass(frozen=True)
class Tally:
    """The verdicts of a cell on one benchmark at one kind of checkpoint.

    Attributes:
        cell: The cell.
        benchmark: The benchmark.
        checkpoint: `last` or `best`.
        seeds: Training seeds, in the order of the first axis.
        questions: Question ids, in the order of the second axis.
        correct: Verdicts, bool [seeds, questions, k].
    """

    cell: Cell
    benchmark: str
    checkpoint: str
    seeds: tuple[int, ...]
    questions: tuple[str, ...]
    correct: np.ndarray

    @property
    def k(self) -> int:
        """Samples a question."""
        return self.correct.shape[2]

    @cached_property
    def right(self) -> np.ndarray:
        """How many of a question's samples are right, int [seeds, questions]."""
        return self.correct.sum(2)

    @property
    def question_means(self) -> np.ndarray:
        """Accuracy of each question, [seeds, questions]."""
        return self.right / self.k

    @property
    def repeat_means(self) -> np.ndarray:
        """Accuracy of the first, second, ... sample of every question: the paper's repeats, [seeds, k]."""
        return self.correct.mean(1)

    @property
    def mean(self) -> float:
        """avg@k over training seeds: right over all samples, summed as whole numbers."""
        return int(self.right.sum()) / self.correct.size


def tally(frame: pd.DataFrame, cell: Cell, benchmark: str, checkpoint: str) -> Tally:
    """Count a cell's verdicts on one benchmark.

    Args:
        frame: The raw layer, any cells.
        cell: Which cell.
        benchmark: Which benchmark.
        checkpoint: Which kind of checkpoint.

    Raises:
        StoreError: a training seed lacks a question or a sample that another has, or there is one question only.
    """
    chosen = (
        (frame["cell"] == str(cell)) & (frame["benchmark"] == benchmark) & (frame["checkpoint"] == checkpoint)
    )  # fmt: skip
    rows = frame[chosen]
    if rows.empty:
        raise StoreError(
            f"{cell}: no verdicts of {benchmark} at the checkpoint {checkpoint!r}. Evaluate the cell again"
        )
    index = [sorted(rows[name].unique()) for name in ("seed", "question", "sample")]
    shape = tuple(len(values) for values in index)
    keys = rows.set_index(["seed", "question", "sample"])["correct"]
    if len(keys) != np.prod(shape) or not keys.index.is_unique:
        raise StoreError(
            f"{cell}: {benchmark}, checkpoint {checkpoint}: {len(keys)} verdicts where {shape[0]} training seeds x "
            f"{shape[1]} questions x {shape[2]} samples should be. Grade again"
        )
    if shape[1] < 2:
        raise StoreError(f"{cell}: {benchmark} has one question: statistics over questions need two. Leave it out")
    correct = keys.sort_index().to_numpy(dtype=bool).reshape(shape)
    return Tally(cell, benchmark, checkpoint, tuple(map(int, index[0])), tuple(index[1]), correct)


def tallies(frame: pd.DataFrame, cell: Cell) -> list[Tally]:
    """Count a cell on every benchmark and kind of checkpoint in its part of the raw layer."""
    found = frame[["benchmark", "checkpoint"]].drop_duplicates()
    return [tally(frame, cell, benchmark, checkpoint) for benchmark, checkpoint in found.itertuples(index=False)]


def missing_runs(study: Study, cells: Sequence[Cell], found: Sequence[Tally]) -> list[str]:
    """Name what the study asks for and the results folder lacks: cells, or training seeds of cells."""
    seeds: dict[Cell, set[int]] = {}
    for item in found:
        seeds.setdefault(item.cell, set()).update(item.seeds)
    lacking = []
    for cell in cells:
        if cell not in seeds:
            lacking.append(f"{cell}: no finished run")
        else:
            lacking += [f"{cell}: no training seed {s}" for s in cell_seeds(study, cell) if s not in seeds[cell]]
    return lacking
