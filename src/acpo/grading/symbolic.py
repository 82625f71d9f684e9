"""The slow path of the math grader: what a worker process decides about one prediction and one gold."""

import logging
import re
from collections.abc import Sequence
from fractions import Fraction

from acpo.grading.compare import EXACT, Tolerance, TooLargeError, same
from acpo.grading.normalize import LONGEST_ANSWER, canonical, fold
from acpo.grading.parser import MalformedError, UnsupportedError, read
from acpo.grading.tree import Node
from acpo.grading.values import Evaluator, NoValueError

Decision = tuple[bool, str]
LONGEST_FOR_LIBRARY = 600
# Where math-verify is asked. It misreads other things, such as dots in a list, and then finds them equal.
_FOR_LIBRARY = ("\\int", "\\sum", "\\prod", "\\lim", "\\iint", "\\partial")
_SUSPECT = re.compile(r"\^[^\^]{0,12}\^|\*\*.*\*\*|![^=]{0,3}!|\\log_.*\\log_|\d{40}")


def readings(folded: str) -> list[Node]:
    """Read a folded answer; `100,200` reads as one number and as a list of two.

    Raises:
        MalformedError, UnsupportedError: see `parser.read`.
    """
    trees = [read(folded)]
    if re.search(r"\d,\d{3}(?!\d)", folded) and not re.search(r"(?<!\d)0\d", folded.replace(",", " ")):
        other = read(folded, thousands=False)
        if other != trees[0]:
            trees.append(other)
    return trees


def _read_gold(golds: Sequence[str], several: bool) -> list[Node]:
    """Read the gold answers, one tree for all of them."""
    items = [read(fold(gold), thousands=not several) for gold in golds]
    return [items[0] if len(items) == 1 else Node("list", tuple(items))]


def decide(
    predicted: str,
    golds: Sequence[str],
    absolute: str | None = None,
    relative: str | None = None,
    integers: Sequence[int] | None = None,
    unit: str | None = None,
    several: bool = False,
) -> Decision:
    """Decide one answer by reading both sides, and by math-verify only where this package does not read one.

    Args:
        predicted: The extracted answer.
        golds: The gold answers: one, or all the items of a list.
        absolute: Absolute tolerance of the benchmark, as a decimal.
        relative: Relative tolerance of the benchmark, as a decimal.
        integers: Lowest and highest integer that the benchmark allows.
        unit: Unit that the gold leaves out.
        several: Whether the gold is known to be a list of answers.

    Returns:
        Whether it is right, and why.
    """
    if len(predicted) > LONGEST_ANSWER:
        return False, "the answer is too long"
    tolerance = Tolerance(
        None if absolute is None else Fraction(absolute), None if relative is None else Fraction(relative)
    )
    folded = fold(predicted)
    folded_golds = [fold(gold) for gold in golds]
    if canonical(folded) and canonical(folded) == ",".join(map(canonical, folded_golds)):
        return True, "exact"
    if _same_word(predicted, folded, golds, folded_golds):
        return True, "same word"
    try:
        gold_trees = _read_gold(golds, several)
        trees = readings(folded)
        if unit and unit.strip("$ ") == "%":
            tolerance, gold_trees = tolerance, [Node("percent", (tree,)) for tree in gold_trees]
    except MalformedError as error:
        return _item_strings(folded, folded_golds, str(error))
    except UnsupportedError as error:
        return _library(predicted, golds, str(error))
    except RecursionError:
        return False, "nested too deeply"
    return _compare(trees, gold_trees, tolerance, integers)


def _same_word(predicted: str, folded: str, golds: Sequence[str], folded_golds: Sequence[str]) -> bool:
    r"""Compare words without regard to case, where one side marks its answer as text (`\text{Yes}`, `yes`)."""
    if len(golds) != 1 or not ("\\text" in predicted or "\\text" in golds[0]):
        return False
    words = [canonical(text).casefold() for text in (folded, folded_golds[0])]
    return words[0] == words[1] and words[0].isalpha() and len(words[0]) > 1


def _compare(trees: list[Node], golds: list[Node], tolerance: Tolerance, integers: Sequence[int] | None) -> Decision:
    try:
        for tree in trees:
            if any(same(tree, gold, tolerance) for gold in golds):
                if integers is not None and not _is_integer(tree, integers):
                    return False, f"not an integer from {integers[0]} to {integers[1]}"
                return True, "equal" if tolerance == EXACT else "equal within the benchmark's tolerance"
    except TooLargeError as error:
        return False, f"too large to evaluate: {error}"
    except RecursionError:
        return False, "nested too deeply"
    return False, "different"


def _is_integer(tree: Node, integers: Sequence[int]) -> bool:
    if tree.kind == "relation":
        tree = tree.nodes[-1] if tree.nodes[0].kind == "symbol" else tree.nodes[0]
    try:
        value = Evaluator({}, 30)(tree)
    except NoValueError:
        return False
    return isinstance(value, Fraction) and value.denominator == 1 and integers[0] <= value <= integers[1]


def _item_strings(folded: str, golds: Sequence[str], problem: str) -> Decision:
    """Compare what cannot be read as strings: a list item by item, without regard to order."""
    if len(golds) > 1:
        items = sorted(canonical(item) for item in folded.split(",") if item.strip())
        if items == sorted(map(canonical, golds)):
            return True, "exact"
    return False, f"cannot be read: {problem}"


def _library(predicted: str, golds: Sequence[str], problem: str) -> Decision:
    """Ask math-verify about mathematics that is not read here; only sane answers are let through to it."""
    text = ", ".join(golds)
    asked = any(word in predicted or word in text for word in _FOR_LIBRARY)
    if (
        not asked
        or max(len(predicted), len(text)) > LONGEST_FOR_LIBRARY
        or _SUSPECT.search(predicted)
        or "__" in predicted
    ):
        return False, f"not comparable: {problem}"
    return library(f"${predicted}$", f"${text}$"), f"math-verify ({problem})"


def library(predicted: str, gold: str) -> bool:
    """Return math-verify's verdict on two texts with delimiters (the released scorer's semantics)."""
    from math_verify import parse, verify

    logging.disable(logging.WARNING)
    parsed = [parse(each, parsing_timeout=0, raise_on_error=False) for each in (gold, predicted)]
    if not all(parsed):
        return False
    return bool(verify(parsed[0], parsed[1], timeout_seconds=0, raise_on_error=False))
