"""The mini task: its puzzles, its exact grader, its imperfect demonstrations."""

import ast
import hashlib
import itertools
import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acpo.errors import ConfigError
from acpo.tasks import load_task, task_names
from acpo.tasks.base import EmbeddedTask, Problem
from acpo.tasks.countdown_mini import TASK, all_puzzles, apply, legal_lines

SPLITS = ("train", "dev", "test")
GOLD = "2 5 9 to 19"
Written = list[tuple[Problem, list[list[str]]]]
SOLVED = "2 * 5 = 10 , 10 + 9 = 19 yes"
MISS = "9 - 2 = 7 , 7 * 5 = 35 no"


def problems(split: str, root_seed: int = 0) -> list[Problem]:
    return list(TASK.problems(split, root_seed, {}))


def values_by_brute_force(numbers: tuple[int, ...]) -> set[int]:
    """Every result of two operations on three numbers, each used once, whole and 0..100 all along."""
    results = set()
    for a, b, c in itertools.permutations(numbers):
        for first, second in itertools.product("+-*/", repeat=2):
            middle = exact(a, first, b)
            if middle is not None:
                results |= {exact(middle, second, c), exact(c, second, middle)}
    return {value for value in results if value}


def exact(a: int, operator: str, b: int) -> int | None:
    if operator == "/" and b == 0:
        return None
    sums = {"+": Fraction(a) + b, "-": Fraction(a) - b, "*": Fraction(a) * b}
    value = Fraction(a, b) if operator == "/" else sums[operator]
    return int(value) if value.denominator == 1 and 0 <= value <= 100 else None


class TestPuzzles:
    def test_there_are_2915(self) -> None:
        assert len(all_puzzles()) == len(set(all_puzzles())) == 2915

    def test_are_those_of_an_independent_count(self) -> None:
        triples = itertools.combinations_with_replacement(range(1, 11), 3)
        expected = {(numbers, target) for numbers in triples for target in values_by_brute_force(numbers)}
        assert set(all_puzzles()) == expected

    def test_splits_are_disjoint_and_complete(self) -> None:
        ids = {split: {problem.id for problem in problems(split)} for split in SPLITS}
        assert {split: len(found) for split, found in ids.items()} == {"train": 2147, "dev": 256, "test": 512}
        assert len(set().union(*ids.values())) == 2915

    def test_order_is_by_hash(self) -> None:
        hashes = [
            hashlib.sha256(f"0 {p.id}".encode()).digest() for split in ("test", "dev", "train") for p in problems(split)
        ]
        assert hashes == sorted(hashes)

    def test_another_root_seed_splits_otherwise(self) -> None:
        zero, one = ({problem.id for problem in problems("test", seed)} for seed in (0, 1))
        assert 50 < len(zero & one) < 140  # 512 * 512 / 2915 = 90 by chance

    def test_the_first_held_out_puzzles_are_no_special_kind(self) -> None:
        def mean(chosen: list[Problem]) -> float:
            return float(np.mean([int(p.id.split(" to ")[1]) for p in chosen]))

        whole = [target for _, target in all_puzzles()]
        assert abs(mean(problems("test")[:256]) - np.mean(whole)) < 4 * np.std(whole) / 16

    def test_prompts_are_seven_tokens_with_the_start(self) -> None:
        for split in SPLITS:
            for problem in problems(split):
                words = problem.prompt.split(" ")
                assert len(words) == 6
                assert set(words) <= set(TASK.vocabulary)
                assert problem.prompt == f"{problem.gold} >"

    def test_an_unknown_split_names_the_nearest(self) -> None:
        with pytest.raises(ConfigError, match="has no split 'tests'; did you mean 'test'"):
            problems("tests")


class TestArithmetic:
    @pytest.mark.parametrize(
        ("left", "operator", "right", "value"),
        [
            (6, "-", 4, 2), (4, "-", 6, None), (4, "-", 4, 0), (10, "*", 10, 100), (10, "*", 11, None),
            (100, "+", 1, None), (8, "/", 4, 2), (9, "/", 4, None), (9, "/", 0, None),
            (0, "/", 9, 0), (0, "*", 9, 0), (7, "/", 7, 1),
        ],
    )  # fmt: skip
    def test_whole_numbers_to_100(self, left: int, operator: str, right: int, value: int | None) -> None:
        assert apply(left, operator, right) == value

    @pytest.mark.parametrize("word", ["", "no", "to", "//", "%", "**", "÷", "x", "=", ",", "8"])
    def test_only_the_four_operators_are_operators(self, word: str) -> None:
        assert apply(8, word, 4) is None

    @given(st.integers(0, 100), st.sampled_from("+-*/"), st.integers(0, 100))
    def test_is_exact(self, left: int, operator: str, right: int) -> None:
        assert apply(left, operator, right) == exact(left, operator, right)


class TestGrade:
    @pytest.mark.parametrize(
        ("response", "correct", "reason"),
        [
            (SOLVED, True, "solved"),
            ("5 * 2 = 10 , 9 + 10 = 19 yes", True, "solved"),
            (f"{MISS} {SOLVED}", True, "solved"),
            (f"{MISS} {MISS} {SOLVED}", True, "solved"),
            (MISS, False, "no claim"),
            ("", False, "no claim"),
            ("yes", False, "not a trial"),
            (SOLVED.removesuffix(" yes"), False, "no claim"),
            (SOLVED.replace("yes", "no"), False, "no claim"),
            (f"{SOLVED} {MISS}", False, "no claim"),
            (f"{SOLVED} yes", False, "not a trial"),
            (f"{MISS} {MISS} {MISS} {SOLVED}", False, "no claim"),  # past the limit of three trials
            (MISS.replace("no", "yes"), False, "wrong result"),
            ("2 * 5 = 11 , 11 + 9 = 20 yes", False, "wrong arithmetic"),
            ("2 * 5 = 10 , 10 + 9 = 18 yes", False, "wrong arithmetic"),
            ("2 * 5 = 10 , 10 + 10 = 20 yes", False, "wrong numbers"),
            ("9 + 10 = 19 , 19 * 1 = 19 yes", False, "wrong numbers"),  # 10 is not given
            ("9 + 9 = 18 , 18 + 2 = 20 yes", False, "wrong numbers"),  # 9 twice, 5 never
            ("2 * 5 = 10 , 5 + 9 = 14 yes", False, "wrong numbers"),  # the second step forgets the first
            ("2 * 9 = 18 , 9 + 10 = 19 yes", False, "wrong numbers"),
            ("2 * 5 = 10 : 10 + 9 = 19 yes", False, "not a trial"),
            ("2 * 5 - 10 , 10 + 9 = 19 yes", False, "not a trial"),
            ("2 * 5 = 10 , 10 + 9 19 = yes", False, "not a trial"),
            ("10 + 9 = 19 yes", False, "not a trial"),
            ("a * 5 = 10 , 10 + 9 = 19 yes", False, "not a number"),
            ("-2 * 5 = 10 , 10 + 9 = 19 yes", False, "not a number"),
            ("2.0 * 5 = 10 , 10 + 9 = 19 yes", False, "not a number"),
        ],
    )  # fmt: skip
    def test_by_hand(self, response: str, correct: bool, reason: str) -> None:
        verdict = TASK.grade(response, GOLD)
        assert (verdict.correct, verdict.reason) == (correct, reason)

    def test_what_was_claimed_is_extracted(self) -> None:
        assert TASK.grade(f"{MISS} {SOLVED}", GOLD).extracted == "2 * 5 = 10 , 10 + 9 = 19"
        assert TASK.grade(MISS, GOLD).extracted is None
        assert TASK.grade(f"{MISS[:-2]}yes", GOLD).extracted == "9 - 2 = 7 , 7 * 5 = 35"

    def test_a_number_given_twice_is_used_twice(self) -> None:
        assert TASK.grade("4 + 4 = 8 , 8 - 3 = 5 yes", "3 4 4 to 5").correct
        assert not TASK.grade("4 + 3 = 7 , 7 - 3 = 4 yes", "3 4 4 to 4").correct
        assert TASK.grade("4 / 4 = 1 , 1 + 1 = 2 yes", "1 4 4 to 2").correct

    @pytest.mark.parametrize("word", ["to", "no", ">", "=", ",", "%", "//", "8"])
    def test_no_other_word_divides(self, word: str) -> None:
        """A policy finds such a hole: every word once meant division."""
        assert TASK.grade("8 / 4 = 2 , 2 + 9 = 11 yes", "4 8 9 to 11").correct
        assert not TASK.grade(f"8 {word} 4 = 2 , 2 + 9 = 11 yes", "4 8 9 to 11").correct

    @pytest.mark.parametrize(
        "response",
        [
            "٢ * ٥ = 10 , 10 + ٩ = 19 yes",
            "２ * ５ = １０ , １０ + ９ = １９ yes",
            "2 * 5 = ①0 , 10 + 9 = 19 yes",
            "2\0 * 5 = 10 , 10 + 9 = 19 yes",
            "\0" * 1000,
            "yes " * 12,
            "= " * 11 + "yes",
            "9" * 5000 + " * 5 = 10 , 10 + 9 = 19 yes",
            "1_0 * 5 = 10 , 10 + 9 = 19 yes",
            "2 ** 5 = 10 , 10 + 9 = 19 yes",
            "__import__('os') * 5 = 10 , 10 + 9 = 19 yes",
            "\ud800 * 5 = 10 , 10 + 9 = 19 yes",
        ],
    )
    def test_hostile_text_is_wrong(self, response: str) -> None:
        assert not TASK.grade(response, GOLD).correct

    def test_a_huge_response_is_wrong_at_once(self) -> None:
        start = time.perf_counter()
        assert not TASK.grade("9 " * 1_000_000 + SOLVED, GOLD).correct
        assert not TASK.grade("9" * 5_000_000 + f" {SOLVED}", GOLD).correct
        assert time.perf_counter() - start < 2

    @given(st.text(max_size=80))
    def test_no_text_is_right_or_raises(self, text: str) -> None:
        assert not TASK.grade(text, GOLD).correct

    @given(st.lists(st.sampled_from([*TASK.vocabulary[:20], *"+-*/=,", "yes", "no"]), min_size=12, max_size=12))
    def test_agrees_with_an_interpreter(self, words: list[str]) -> None:
        """Right only where Python's own arithmetic says so."""
        verdict = TASK.grade(" ".join([*words[:11], "yes"]), GOLD)
        if verdict.correct:
            first, second = " ".join(words[:11]).replace("=", "==").split(" , ")
            assert eval(first) is True
            assert eval(second) is True
            ast.parse(first)

    def test_every_solving_line_of_every_puzzle_is_right_and_no_other(self) -> None:
        for numbers, target in all_puzzles():
            gold = f"{' '.join(map(str, numbers))} to {target}"
            solving = 0
            for line, result in legal_lines(numbers):
                if result == target or hash(line) % 50 == 0:
                    assert TASK.grade(f"{line} yes", gold).correct == (result == target)
                    solving += result == target
            assert solving > 0


@pytest.fixture(scope="module")
def written() -> Written:
    """2,000 demonstrations, each cut into trials."""
    generator, chosen = np.random.default_rng(0), problems("train")
    demonstrations = []
    for i in range(2000):
        problem = chosen[i % len(chosen)]
        words = TASK.demonstration(problem, generator).split(" ")
        assert len(words) % 12 == 0
        demonstrations.append((problem, [words[j : j + 12] for j in range(0, len(words), 12)]))
    return demonstrations


class TestDemonstrations:
    def test_every_trial_is_legal(self, written: Written) -> None:
        for problem, trials in written:
            numbers = tuple(map(int, problem.gold.split(" to ")[0].split()))
            lines = {line for line, _ in legal_lines(numbers)}
            assert 1 <= len(trials) <= 3
            assert all(" ".join(trial[:-1]) in lines for trial in trials)

    def test_a_claim_ends_it_and_a_miss_goes_on(self, written: Written) -> None:
        for problem, trials in written:
            target = problem.gold.split(" to ")[1]
            assert all(trial[-1] == "no" for trial in trials[:-1])
            assert trials[-1][-1] == "yes" or len(trials) == 3
            assert all(trial[-1] == "yes" for trial in trials if trial[-2] == target)

    def test_statistics(self, written: Written) -> None:
        """A solving line with 0.3 or by luck; of the misses one in five is claimed."""
        misses = [trial[-1] for problem, trials in written for trial in trials if trial[-2] != problem.gold.split()[-1]]
        error = (0.2 * 0.8 / len(misses)) ** 0.5
        assert abs(np.mean([word == "yes" for word in misses]) - 0.2) < 4 * error

        luck = []
        for problem, _ in written:
            numbers, target = problem.gold.split(" to ")
            lines = legal_lines(tuple(map(int, numbers.split())))
            luck.append(np.mean([result == int(target) for _, result in lines]))
        expected = 0.3 + 0.7 * float(np.mean(luck))
        first = np.mean([trials[0][-2] == problem.gold.split()[-1] for problem, trials in written])
        assert abs(first - expected) < 4 * (expected * (1 - expected) / len(written)) ** 0.5

    def test_same_stream_same_words(self) -> None:
        problem = problems("train")[0]
        one, two = (TASK.demonstration(problem, np.random.default_rng(5)) for _ in range(2))
        assert one == two


class TestByName:
    def test_is_found(self) -> None:
        assert "countdown_mini" in task_names()
        assert load_task("countdown_mini") is TASK
        assert isinstance(TASK, EmbeddedTask)

    def test_vocabulary_has_no_word_twice(self) -> None:
        assert len(set(TASK.vocabulary)) == len(TASK.vocabulary) == 111

    @pytest.mark.parametrize("name", ["countdown_mni", "base"])
    def test_a_task_that_is_not_there_is_named(self, name: str) -> None:
        with pytest.raises(ConfigError, match=rf"the task '{name}' is not part of this version .*countdown_mini"):
            load_task(name)
