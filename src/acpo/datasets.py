"""Formatted data sets: `results/data/<task>/<split>.parquet`, in verl's schema."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from acpo.results import DATA_SCHEMA
from acpo.store import StoreError, read_table, write_table
from acpo.tasks.base import Problem


def write_problems(path: Path, task: str, ability: str, split: str, problems: Iterable[Problem]) -> int:
    """Write problems as a data set.

    Args:
        path: The parquet file.
        task: Name of the task, kept as `data_source`.
        ability: What the task asks for.
        split: Name of the split.
        problems: The problems, in the order to keep.

    Returns:
        How many.

    Raises:
        StoreError: no problem, or two with one id.
    """
    rows: list[dict[str, Any]] = [
        {
            "data_source": task,
            "prompt": [{"role": "user", "content": problem.prompt}],
            "ability": ability,
            "reward_model": {"style": "rule", "ground_truth": problem.gold},
            "extra_info": {"id": problem.id, "split": split, "index": index},
        }
        for index, problem in enumerate(problems)
    ]
    if not rows:
        raise StoreError(f"{path}: the split {split!r} of {task!r} has no problems")
    if len({row["extra_info"]["id"] for row in rows}) != len(rows):
        raise StoreError(f"{path}: two problems of {task!r} share an id")
    write_table(path, pd.DataFrame(rows), DATA_SCHEMA)
    return len(rows)


def read_problems(path: Path) -> list[Problem]:
    """Read a data set.

    Raises:
        StoreError: missing, damaged or of another schema.
    """
    frame = read_table(path, DATA_SCHEMA)
    columns = (frame["extra_info"], frame["prompt"], frame["reward_model"])
    return [
        Problem(info["id"], prompt[-1]["content"], reward["ground_truth"])
        for info, prompt, reward in zip(*columns, strict=True)
    ]
