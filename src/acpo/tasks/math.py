"""Mathematical problems: ORZ-57K for training, and the benchmarks of the paper with their golds and tolerances."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from acpo.data.records import Record, arrow_rows, json_array, json_lines
from acpo.data.verify import DataError
from acpo.errors import ConfigError, nearest
from acpo.grading import math as grader
from acpo.grading.extract import boxed
from acpo.tasks.base import Problem, Task, Verdict

AIME_INTEGERS = (0, 999)
MINERVA_TOLERANCE = "1e-4"
_DECIMAL = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|(?:\d+\.?\d*|\.\d+)[eE][-+]?\d+)")
_MISSING_VALUE = re.compile(r"T\s*=\s*T\s*N\s*Y\s*W\s*R")

Reader = Callable[[Path], Iterable[tuple[str, str, str]]]


def _whole(value: float | str) -> str:
    """Write a gold such as 142.0 as the whole number it is."""
    number = float(value)
    return str(int(number)) if number.is_integer() else str(value)


def _orz(partial: bool) -> Reader:
    def read(path: Path) -> Iterator[tuple[str, str, str]]:
        for place, record in enumerate(json_array(path, partial)):
            try:
                question, answer = record[0]["value"], record[1]["ground_truth"]["value"]
            except (KeyError, IndexError, TypeError) as error:
                raise DataError(
                    f"{path}: record {place}: not a question with an answer. Fetch the file again"
                ) from error
            yield str(place), question, grader.write_gold([str(answer)])

    return read


def _lines(convert: Callable[[Record, int], tuple[str, str, str]]) -> Reader:
    def read(path: Path) -> Iterator[tuple[str, str, str]]:
        for place, record in enumerate(json_lines(path)):
            try:
                yield convert(record, place)
            except (KeyError, IndexError, TypeError) as error:
                raise DataError(
                    f"{path}: record {place}: field {error} is missing or empty. Fetch the file again"
                ) from error

    return read


def _math500(record: Record, place: int) -> tuple[str, str, str]:  # noqa: ARG001
    return record["unique_id"], record["problem"], grader.write_gold([record["answer"]])


def _aime(record: Record, place: int) -> tuple[str, str, str]:  # noqa: ARG001
    return (
        str(record["id"]),
        record["problem"],
        grader.write_gold([str(record["answer"])], integers=AIME_INTEGERS),
    )


def _amc23(record: Record, place: int) -> tuple[str, str, str]:  # noqa: ARG001
    return str(record["id"]), record["problem"], grader.write_gold([_whole(record["answer"])])


def _minerva(record: Record, place: int) -> tuple[str, str, str]:
    answer = boxed(record["solution"]).text
    if answer is None:
        raise KeyError("solution")
    relative = MINERVA_TOLERANCE if _DECIMAL.fullmatch(answer) else None
    return str(record.get("idx", place)), record["problem"], grader.write_gold([answer], relative=relative)


def _olympiad(record: Record, place: int) -> tuple[str, str, str]:  # noqa: ARG001
    question = "\n\n".join(filter(None, (record["context"], record["question"])))
    gold = grader.write_gold(
        [record["final_answer"][0]],
        absolute=record["error"],
        unit=record["unit"],
        several=record["is_multiple_answer"],
    )
    return str(record["id"]), question, gold


def _aime_released(path: Path) -> Iterator[tuple[str, str, str]]:
    for place, record in enumerate(json_array(path)):
        gold = grader.write_gold([str(record["final_answer"])], integers=AIME_INTEGERS)
        yield str(place), record["prompt"][0]["value"], gold


def _amc(path: Path) -> Iterator[tuple[str, str, str]]:
    for place, record in enumerate(arrow_rows(path)):
        yield str(place), record["problem"], grader.write_gold([_whole(record["answer"])])


SPLITS: dict[str, Reader] = {
    "orz57k": _orz(partial=False),
    "orz57k_prefix": _orz(partial=True),
    "math500": _lines(_math500),
    "aime24": _lines(_aime),
    "aime24_released": _aime_released,
    "aime25": _lines(_aime),
    "amc": _amc,
    "amc23": _lines(_amc23),
    "minerva": _lines(_minerva),
    "olympiad": _lines(_olympiad),
}


class Math(Task):
    """Mathematics with a verifiable final answer in a box."""

    ability = "math"
    grader_version = grader.VERSION
    instruction = "Write the final answer inside \\boxed{}, once, at the very end."
    prompt_style = "base"
    training_splits = frozenset({"orz57k", "orz57k_prefix"})

    def sources(self, split: str) -> tuple[str, ...]:
        """Name the pinned file of a split, which has the split's own name; see `Task.sources`."""
        return (_known(split),)

    def problems(self, split: str, root_seed: int, files: Mapping[str, Path]) -> Iterator[Problem]:  # noqa: ARG002
        """Yield a split's problems in the file's order; see `Task.problems`."""
        for name, question, gold in SPLITS[_known(split)](files[split]):
            notes = ("refers to the missing value TNYWR",) if _MISSING_VALUE.search(question) else ()
            yield Problem(f"{split}/{name}", question.strip(), gold, notes)

    def grade(self, response: str, gold: str) -> Verdict:
        """Grade one response (see `acpo.grading.math`)."""
        return grader.grade(response, gold)

    def grade_many(self, pairs: Iterable[tuple[str, str]]) -> Iterator[Verdict]:
        """Grade many, the slow ones on the workers of the pool."""
        return grader.grade_many(pairs)

    def grade_released(self, response: str, gold: str) -> Verdict:
        """Grade as the released service does."""
        return grader.grade_released(response, gold)


def _known(split: str) -> str:
    if split not in SPLITS:
        raise ConfigError(f"math has no split {split!r}; {nearest(split, SPLITS)}")
    return split


TASK = Math()
