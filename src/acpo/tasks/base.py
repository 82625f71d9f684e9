"""What a task is: problems with a prompt and a gold answer, and a grader for responses."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np


@dataclass(frozen=True)
class Problem:
    """One question. `gold` is text that the task's own grader understands."""

    id: str
    prompt: str
    gold: str


@dataclass(frozen=True)
class Verdict:
    """What a grader says of one response: right or wrong, the answer it found (None: no answer), and why."""

    correct: bool
    extracted: str | None
    reason: str


class Task(ABC):
    """One task, in one file of `acpo/tasks/` that ends in ``TASK = ...``."""

    ability: ClassVar[str]
    grader_version: ClassVar[str]

    def sources(self, split: str) -> tuple[str, ...]:  # noqa: ARG002
        """Name the pinned files that a split is made from; none where the task generates its problems."""
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


class EmbeddedTask(Task):
    """A task that the embedded engine can learn from nothing: it has a vocabulary and demonstrations.

    Prompts and responses are words of the vocabulary, separated by single spaces.
    """

    vocabulary: ClassVar[tuple[str, ...]]
    end_words: ClassVar[frozenset[str]]

    @abstractmethod
    def demonstration(self, problem: Problem, generator: np.random.Generator) -> str:
        """Write one imperfect response to learn the format from; without an end word it is as long as the limit."""
