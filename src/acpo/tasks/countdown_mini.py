"""Countdown in miniature: reach a target from three numbers by a visible search of at most three trials.

A prompt is ``2 5 9 to 19 >``. A response is up to three trials of twelve words, such as
``9 - 2 = 7 , 7 * 5 = 35 no 2 * 5 = 10 , 10 + 9 = 19 yes``: `no` goes on to another trial, `yes` claims the trial
before it. All 2,915 puzzles of three numbers from 1 to 10 with a reachable target from 1 to 100 are split by hash.
"""

import hashlib
import itertools
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import numpy as np

from acpo.errors import ConfigError, nearest
from acpo.tasks.base import EmbeddedTask, Problem, Verdict

LARGEST_NUMBER = 10
LARGEST_VALUE = 100
SPLITS = {"test": slice(0, 512), "dev": slice(512, 768), "train": slice(768, None)}
TRIAL_WORDS = 12
TRIALS = 3
SOLVING_TRIAL = 0.3
WRONG_CLAIM = 0.2

Line = tuple[str, int]


def apply(left: int, operator: str, right: int) -> int | None:
    """Return `left operator right` where it is a whole number from 0 to 100, else None (also of no operator)."""
    if operator == "+":
        value = left + right
    elif operator == "-":
        value = left - right
    elif operator == "*":
        value = left * right
    elif operator == "/" and right and left % right == 0:
        value = left // right
    else:
        return None
    return value if 0 <= value <= LARGEST_VALUE else None


@cache
def legal_lines(numbers: tuple[int, ...]) -> tuple[Line, ...]:
    """List every legal trial of three numbers as (text without its verdict word, result), sorted."""
    lines = set()
    for first, second, third in itertools.permutations(numbers):
        for operator, next_operator in itertools.product("+-*/", repeat=2):
            middle = apply(first, operator, second)
            if middle is None:
                continue
            for left, right in ((middle, third), (third, middle)):
                result = apply(left, next_operator, right)
                if result is not None:
                    start = f"{first} {operator} {second} = {middle}"
                    lines.add((f"{start} , {left} {next_operator} {right} = {result}", result))
    return tuple(sorted(lines))


@cache
def all_puzzles() -> tuple[tuple[tuple[int, ...], int], ...]:
    """List every puzzle as (numbers in ascending order, target)."""
    triples = itertools.combinations_with_replacement(range(1, LARGEST_NUMBER + 1), 3)
    return tuple(
        (numbers, target)
        for numbers in triples
        for target in sorted({result for _, result in legal_lines(numbers) if result > 0})
    )


class CountdownMini(EmbeddedTask):
    """The embedded engine's default task."""

    ability = "countdown"
    grader_version = "countdown_mini-2"
    vocabulary = (*map(str, range(LARGEST_VALUE + 1)), *"+-*/=,", "to", ">", "no", "yes")
    end_words = frozenset({"yes"})

    def problems(self, split: str, root_seed: int, files: Mapping[str, Path]) -> Iterator[Problem]:  # noqa: ARG002
        """Yield a split's puzzles in the order of their hashes (order of enumeration would be a bias).

        Raises:
            ConfigError: no such split.
        """
        if split not in SPLITS:
            raise ConfigError(f"countdown_mini has no split {split!r}; {nearest(split, SPLITS)}")
        puzzles = [f"{' '.join(map(str, numbers))} to {target}" for numbers, target in all_puzzles()]
        puzzles.sort(key=lambda puzzle: hashlib.sha256(f"{root_seed} {puzzle}".encode()).digest())
        for puzzle in puzzles[SPLITS[split]]:
            yield Problem(id=puzzle, prompt=f"{puzzle} >", gold=puzzle)

    def demonstration(self, problem: Problem, generator: np.random.Generator) -> str:
        """Write an imperfect search: random legal trials, some solving, some claimed wrongly."""
        numbers, target = _read_gold(problem.gold)
        lines = legal_lines(numbers)
        solving = [line for line in lines if line[1] == target]
        words: list[str] = []
        for _ in range(TRIALS):
            pool = solving if generator.random() < SOLVING_TRIAL else lines
            text, result = pool[int(generator.integers(len(pool)))]
            claim = result == target or generator.random() < WRONG_CLAIM
            words += [text, "yes" if claim else "no"]
            if claim:
                break
        return " ".join(words)

    def grade(self, response: str, gold: str) -> Verdict:
        """Verify the claimed trial exactly: each number once, both equations true, the target reached."""
        words = response.split()[: TRIALS * TRIAL_WORDS + 1]
        if not words or words[-1] != "yes":
            return Verdict(False, None, "no claim")
        trial = words[-TRIAL_WORDS:]
        if (len(words) - TRIAL_WORDS) % TRIAL_WORDS or trial[3] != "=" or trial[5] != "," or trial[9] != "=":
            return Verdict(False, None, "not a trial")
        answer = " ".join(trial[:-1])
        return Verdict(*_check_trial(trial, *_read_gold(gold), answer))


def _check_trial(trial: list[str], numbers: tuple[int, ...], target: int, answer: str) -> tuple[bool, str, str]:
    values = [trial[i] for i in (0, 2, 4, 6, 8, 10)]
    if not all(word.isascii() and word.isdecimal() and len(word) <= 3 for word in values):
        return False, answer, "not a number"
    first, second, middle, left, right, result = map(int, values)
    if apply(first, trial[1], second) != middle or apply(left, trial[7], right) != result:
        return False, answer, "wrong arithmetic"
    rests = [third for used, third in ((left, right), (right, left)) if used == middle]
    if not any(sorted((first, second, third)) == sorted(numbers) for third in rests):
        return False, answer, "wrong numbers"
    if result != target:
        return False, answer, "wrong result"
    return True, answer, "solved"


def _read_gold(gold: str) -> tuple[tuple[int, ...], int]:
    numbers, target = gold.split(" to ")
    return tuple(map(int, numbers.split())), int(target)


TASK = CountdownMini()
