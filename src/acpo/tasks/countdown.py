"""Countdown with three or four numbers: reach a target with + - * /, using each number once."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from acpo.data.records import parquet_rows
from acpo.errors import ConfigError, nearest
from acpo.grading import countdown as grader
from acpo.grading.released import grade_countdown
from acpo.tasks.base import Problem, Task, Verdict

TRAIN_ROWS = 327_680
TEST_ROWS = 1_024
SPLITS = {"train": (0, TRAIN_ROWS), "test": (TRAIN_ROWS, TRAIN_ROWS + TEST_ROWS)}


class Countdown(Task):
    """The 3-to-4 number puzzles of the data set `Countdown-Tasks-3to4`, in its own order."""

    ability = "countdown"
    grader_version = grader.VERSION
    instruction = (
        "Write the final answer between <answer> and </answer>: one arithmetic expression and nothing else, "
        "for example <answer>(2 + 7) * 4 / 3</answer>."
    )
    prompt_style = "chat"
    training_splits = frozenset({"train"})

    def sources(self, split: str) -> tuple[str, ...]:  # noqa: ARG002
        """Both splits come from one file."""
        return ("countdown",)

    def problems(self, split: str, root_seed: int, files: Mapping[str, Path]) -> Iterator[Problem]:  # noqa: ARG002
        """Yield a split's puzzles in the file's order: the first 327,680 train, the next 1,024 test.

        Raises:
            ConfigError: no such split; names those there are.
            DataError: the file is damaged or too short.
        """
        if split not in SPLITS:
            raise ConfigError(f"countdown has no split {split!r}; {nearest(split, SPLITS)}")
        start, stop = SPLITS[split]
        for place, row in enumerate(parquet_rows(files["countdown"], ("target", "nums"), start, stop), start=start):
            numbers, target = [int(number) for number in row["nums"]], int(row["target"])
            yield Problem(f"countdown/{place}", question(numbers, target), grader.write_gold(numbers, target))

    def grade(self, response: str, gold: str) -> Verdict:
        """Grade one response (see `acpo.grading.countdown`)."""
        return grader.grade(response, gold)

    def grade_released(self, response: str, gold: str) -> Verdict:
        """Grade as the released scorer does, without evaluating text."""
        return grade_countdown(response, gold)


def question(numbers: list[int], target: int) -> str:
    """Write a puzzle as a question."""
    listed = ", ".join(map(str, numbers))
    return (
        f"Numbers: {listed}. Target: {target}. Combine the numbers with +, -, * and / (parentheses are allowed) "
        "so that the "
        "result is exactly the target. Use every number exactly once and no other number."
    )


TASK = Countdown()
