"""Formatted data sets: `results/data/<task>/<split>.parquet`, in verl's schema."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from acpo.data.prompts import Message, messages
from acpo.data.verify import DataError
from acpo.results import DATA_SCHEMA
from acpo.store import read_table, write_table
from acpo.tasks.base import Problem

Row = dict[str, Any]


def problem_row(task: str, ability: str, split: str, problem: Problem, turns: list[Message], index: int) -> Row:
    """Return one problem as a row of `acpo.results.DATA_SCHEMA`.

    Args:
        task: Name of the task, kept as `data_source`.
        ability: What the task asks for.
        split: Name of the split.
        problem: The problem.
        turns: Its prompt as messages.
        index: Its place in the data set.
    """
    return {
        "data_source": task,
        "prompt": turns,
        "ability": ability,
        "reward_model": {"style": "rule", "ground_truth": problem.gold},
        "extra_info": {"id": problem.id, "split": split, "index": index},
    }


def write_rows(path: Path, rows: list[Row]) -> None:
    """Write a data set.

    Raises:
        DataError: no row, or two with one id.
    """
    if not rows:
        raise DataError(f"{path}: there are no problems to write")
    if len({row["extra_info"]["id"] for row in rows}) != len(rows):
        raise DataError(f"{path}: two problems share an id")
    write_table(path, pd.DataFrame(rows), DATA_SCHEMA)


def write_problems(path: Path, task: str, ability: str, split: str, problems: Iterable[Problem]) -> None:
    """Write problems with their own text as the whole prompt (arguments as in `problem_row`).

    Raises:
        DataError: as in `write_rows`.
    """
    plain = [(problem, messages(problem.prompt, "", "plain")) for problem in problems]
    write_rows(path, [problem_row(task, ability, split, *pair, index) for index, pair in enumerate(plain)])


def read_problems(path: Path) -> list[Problem]:
    """Read a data set; a problem's `prompt` is the content of its last message.

    Raises:
        StoreError: missing, damaged or of another schema.
    """
    frame = read_table(path, DATA_SCHEMA)
    columns = (frame["extra_info"], frame["prompt"], frame["reward_model"])
    return [
        Problem(info["id"], prompt[-1]["content"], reward["ground_truth"], messages=tuple(prompt))
        for info, prompt, reward in zip(*columns, strict=True)
    ]
