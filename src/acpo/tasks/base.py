"""What a task is: problems with a prompt and a gold answer, and a grader for responses."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np

from acpo.data.prompts import Message, Style
from acpo.grading.verdict import Verdict

__all__ = ["EmbeddedTask", "Problem", "Task", "Verdict"]


@dataclass(frozen=True)
class Problem:
    """One question.

    Attributes:
        id: Its name, unique in its split.
        prompt: The question's own text; what surrounds it for a model is `acpo.data.prompts`.
        gold: Text that the task's own grader understands.
        notes: Facts worth counting in the manifest, such as a shortened table.
        shorten: Makes a version whose prompt passes a test of its length, or None where that would change the question.
        messages: The turns that a model is given; none before the problem is formatted.
    """

    id: str
    prompt: str
    gold: str
    notes: tuple[str, ...] = ()
    shorten: Callable[[Callable[[str], bool]], "Problem | None"] | None = field(default=None, compare=False, repr=False)
    messages: tuple[Message, ...] = field(default=(), compare=False, repr=False)


class Task(ABC):
    """One task, in one file of `acpo/tasks/` that ends in ``TASK = ...``.

    Attributes:
        ability: verl's word for what is trained.
        grader_version: Changes whenever a verdict may change.
        instruction: How the final answer is to be written; part of every prompt that is not `plain`.
        prompt_style: What the models of the paper's suites are given (see `acpo.data.prompts`).
        training_splits: Splits that are trained on: repeated questions are dropped there, and only counted elsewhere.
    """

    ability: ClassVar[str]
    grader_version: ClassVar[str]
    instruction: ClassVar[str] = ""
    prompt_style: ClassVar[Style] = "plain"
    training_splits: ClassVar[frozenset[str]] = frozenset()

    def sources(self, split: str) -> tuple[str, ...]:  # noqa: ARG002
        """Name the pinned files that a split is made from; none where the task generates its problems.

        Raises:
            ConfigError: no such split, where the files differ by split; names those there are.
        """
        return ()

    @abstractmethod
    def problems(self, split: str, root_seed: int, files: Mapping[str, Path]) -> Iterator[Problem]:
        """Yield the problems of a split, in the order in which they are kept.

        Args:
            split: Which set of problems.
            root_seed: Root of any random choice.
            files: Where each of `sources(split)` lies.

        Raises:
            ConfigError: no such split; names those there are.
        """

    @abstractmethod
    def grade(self, response: str, gold: str) -> Verdict:
        """Grade one response: pure, bounded in time, never executing its text."""

    def grade_many(self, pairs: Iterable[tuple[str, str]]) -> Iterator[Verdict]:
        """Grade (response, gold) pairs in order; a task with a slow grader spreads them over processes."""
        return (self.grade(response, gold) for response, gold in pairs)

    def grade_released(self, response: str, gold: str) -> Verdict:
        """Grade with the semantics of the released scorer, where a table claims to reproduce its number."""
        return self.grade(response, gold)


class EmbeddedTask(Task):
    """A task that the embedded engine can learn from nothing: it has a vocabulary and demonstrations.

    Prompts and responses are words of the vocabulary, separated by single spaces.
    """

    vocabulary: ClassVar[tuple[str, ...]]
    end_words: ClassVar[frozenset[str]]

    @abstractmethod
    def demonstration(self, problem: Problem, generator: np.random.Generator) -> str:
        """Write one imperfect response to learn the format from; without an end word it is as long as the limit."""
