"""The released Countdown scorer's semantics, without its evaluation of model text.

The last box must hold only digits, + - * / . ( ) and spaces; its digit runs must be the given numbers; its value, as
Python computes it with floats, must be within a tolerance of the target. So `7//2*1`, `1.5*2` from 1, 5, 2 and near
misses count as right, as they do there. The text is parsed as a Python expression and its tree is computed by the
few operations below; a power tower, on which the original never returns, is the verdict `timeout`.
"""

import ast
import re
import warnings
from collections import Counter

from acpo.grading.countdown import LONGEST_EXPRESSION, read_gold
from acpo.grading.extract import boxed
from acpo.grading.verdict import TIMEOUT, Verdict

# The smallest power of ten that agrees with every recorded verdict of the released scorer.
TOLERANCE = 1e-4
LARGEST_EXPONENT = 100
_ALLOWED = re.compile(r"[\d+\-*/.() ]+", re.ASCII)


class _RefusedError(ValueError):
    """The released scorer gives no reward here."""


def grade_countdown(response: str, gold: str) -> Verdict:
    """Grade as the released scorer does."""
    numbers, target = read_gold(gold)
    text = boxed(response).text
    if text is None or len(text) > LONGEST_EXPRESSION or not _ALLOWED.fullmatch(text):
        return Verdict(False, text and text[:200], "released: no expression")
    if Counter(map(int, re.findall(r"\d+", text))) != Counter(numbers):
        return Verdict(False, text, "released: wrong numbers")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = _value(ast.parse(text.strip(), mode="eval").body)
    except TimeoutError:
        return Verdict(False, text, TIMEOUT)
    except (
        SyntaxError,
        _RefusedError,
        ZeroDivisionError,
        OverflowError,
        RecursionError,
        MemoryError,
        ValueError,
    ):
        return Verdict(False, text, "released: no value")
    right = not isinstance(value, complex) and abs(value - target) < TOLERANCE
    return Verdict(right, text, "released: solved" if right else "released: wrong value")


def _value(node: ast.expr) -> int | float | complex:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        value = _value(node.operand)
        return -value if isinstance(node.op, ast.USub) else value
    if not isinstance(node, ast.BinOp):
        raise _RefusedError("not arithmetic")
    return _operate(node.op, _value(node.left), _value(node.right))


def _operate(
    operator: ast.operator, left: int | float | complex, right: int | float | complex
) -> int | float | complex:
    if isinstance(operator, ast.Pow):
        if abs(right) > LARGEST_EXPONENT or abs(left) > 10**6:
            raise TimeoutError
        return left**right
    if isinstance(operator, ast.Add):
        return left + right
    if isinstance(operator, ast.Sub):
        return left - right
    if isinstance(operator, ast.Mult):
        return left * right
    if isinstance(operator, ast.Div):
        return left / right
    if isinstance(operator, ast.FloorDiv) and not isinstance(left, complex) and not isinstance(right, complex):
        return left // right
    raise _RefusedError("not arithmetic")
