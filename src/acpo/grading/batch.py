"""Grade a file of responses: parquet or JSON lines in, verdicts in the same format out, with progress."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd

from acpo.data.records import json_lines
from acpo.data.verify import DataError
from acpo.grading.verdict import UNDECIDED
from acpo.progress import Progress
from acpo.store import StoreError, read_table, write_table, write_text
from acpo.tasks.base import Task, Verdict

CHUNK = 256


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Read rows from a parquet or JSON-lines file.

    Raises:
        StoreError: missing, damaged or of another format; names the file and the line.
    """
    if path.suffix == ".parquet":
        return [{str(key): value for key, value in row.items()} for row in read_table(path).to_dict("records")]
    if path.suffix not in (".jsonl", ".json"):
        raise StoreError(f"{path}: expected a .parquet or a .jsonl file")
    try:
        return list(json_lines(path))
    except FileNotFoundError as error:
        raise StoreError(f"{path}: no such file") from error
    except DataError as error:
        raise StoreError(str(error)) from error


def as_gold(value: Any) -> str:
    """Write a gold value as the text that graders read: text stays, anything else becomes JSON."""
    return value if isinstance(value, str) else json.dumps(value.tolist() if hasattr(value, "tolist") else value)


def pairs(rows: Iterable[dict[str, Any]], response: str, gold: str, origin: Path) -> Iterator[tuple[str, str]]:
    """Take (response, gold) from rows.

    Raises:
        StoreError: a row without one of the columns; names file, row and column.
    """
    for place, row in enumerate(rows):
        for column in (response, gold):
            if column not in row:
                raise StoreError(
                    f"{origin}: row {place}: no column {column!r}; found {', '.join(map(str, row))}. Name it "
                    "with --response-column or --gold-column"
                )
        text = row[response]
        yield text if isinstance(text, str) else "", as_gold(row[gold])


def grade_all(task: Task, work: Iterable[tuple[str, str]], total: int, released: bool = False) -> Iterator[Verdict]:
    """Grade pairs in order with progress, which counts the limits that were hit (verdicts that are undecided)."""
    counts: Counter[str] = Counter()
    items = iter(work)
    with Progress("grade", total, unit="verdicts") as progress:
        while chunk := list(islice(items, CHUNK)):
            verdicts = (task.grade_released(*pair) for pair in chunk) if released else task.grade_many(chunk)
            for verdict in verdicts:
                counts["right"] += verdict.correct
                counts["limit"] += verdict.reason.startswith(UNDECIDED)
                progress.advance(1, **{key: float(value) for key, value in counts.items()})
                yield verdict


def grade_file(
    task: Task,
    source: Path,
    output: Path,
    response: str = "response",
    gold: str = "gold",
    released: bool = False,
) -> Counter[str]:
    """Grade every row of a file and write the rows with their verdicts.

    Args:
        task: Whose grader.
        source: Parquet or JSON lines with a response and a gold in each row.
        output: Where to write; the same two formats.
        response: Column of the response.
        gold: Column of the gold.
        released: Whether to use the released scorer's semantics.

    Returns:
        How often each reason was given; `right` and `rows` beside them.

    Raises:
        StoreError: the file cannot be read or written, or lacks a column.
    """
    rows = read_rows(source)
    verdicts = list(grade_all(task, pairs(rows, response, gold, source), len(rows), released))
    version = f"{task.grader_version}{'-released' if released else ''}"
    graded = [
        {**row, "correct": v.correct, "extracted": v.extracted, "reason": v.reason, "grader_version": version}
        for row, v in zip(rows, verdicts, strict=True)
    ]
    if output.suffix == ".parquet":
        write_table(output, pd.DataFrame(graded))
    else:
        write_text(output, "".join(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in graded))
    return Counter({"rows": len(rows), "right": sum(v.correct for v in verdicts)}) + Counter(v.reason for v in verdicts)
