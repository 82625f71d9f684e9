"""Questions and how many of their samples each checkpoint got right, from the verdict stores."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from acpo.cells import Cell, grid_cells
from acpo.cli import benchmark_problems
from acpo.report.sources import Results
from acpo.stats.analysis import Evidence
from acpo.stats.raw import read_cell, tallies
from acpo.tasks.base import Problem

Place = tuple[str, str]
"""A suite and one of its benchmarks."""


@dataclass
class Graded:
    """The graded samples of a study, without the responses.

    Attributes:
        evidence: The verdicts of every cell, benchmark and kind of checkpoint.
        questions: The questions of every place, in the order of its data set.
        tokens: How many tokens all responses to a question have, by place and question.
    """

    evidence: Evidence = field(default_factory=Evidence)
    questions: dict[Place, list[Problem]] = field(default_factory=dict)
    tokens: dict[Place, pd.Series] = field(default_factory=dict)

    def cells(self) -> list[Cell]:
        """List the cells that have graded samples."""
        return list(dict.fromkeys(cell for cell, _, _ in self.evidence.tallies))


def data_gaps(results: Results, suite: str) -> list[str]:
    """List a suite's data sets that the results folder lacks."""
    sets = dict.fromkeys(f"{item.task}/{item.split}" for item in results.study.suites[suite].benchmarks.values())
    return [name for name in sets if not (results.root / "data" / f"{name}.parquet").exists()]


def read_graded(results: Results) -> Graded:
    """Read the verdicts of every finished run of the grid; runs and data sets that are missing are left out.

    Raises:
        StoreError: a store is damaged or incomplete.
    """
    graded = Graded()
    for cell in grid_cells(results.study):
        if data_gaps(results, cell.suite):
            continue
        frame = read_cell(results.study, cell, results.root)
        for item in tallies(frame, cell):
            graded.evidence.tallies[cell, item.benchmark, item.checkpoint] = item
        if frame.empty:
            continue
        _remember_questions(results, cell, graded)
        for benchmark, rows in frame.groupby("benchmark"):
            place, tokens = (cell.suite, str(benchmark)), rows.groupby("question")["response_tokens"].sum()
            graded.tokens[place] = tokens.add(graded.tokens.get(place, 0), fill_value=0)
    return graded


def _remember_questions(results: Results, cell: Cell, graded: Graded) -> None:
    if all(suite != cell.suite for suite, _ in graded.questions):
        for name, problems in benchmark_problems(results.study, cell, results.root / "data").items():
            graded.questions[cell.suite, name] = problems


def question_lists(graded: Graded) -> dict[str, list[list[str]]]:
    """Return id, prompt and gold answer of every question, by place."""
    return {
        "/".join(place): [[problem.id, problem.prompt, problem.gold] for problem in problems]
        for place, problems in graded.questions.items()
    }


def right_counts(graded: Graded) -> list[dict[str, Any]]:
    """Return how many of each question's k samples are right: one entry a cell, benchmark and kind of checkpoint.

    `right` has by training seed one count a question, in the order of `question_lists`.
    """
    return list(_right_counts(graded))


def _right_counts(graded: Graded) -> Iterator[dict[str, Any]]:
    for (cell, benchmark, checkpoint), item in graded.evidence.tallies.items():
        place = {question: index for index, question in enumerate(item.questions)}
        order = [place[problem.id] for problem in graded.questions[cell.suite, benchmark]]
        yield {
            "cell": str(cell),
            "benchmark": benchmark,
            "checkpoint": checkpoint,
            "k": item.k,
            "right": {str(seed): counts[order].tolist() for seed, counts in zip(item.seeds, item.right, strict=True)},
        }
