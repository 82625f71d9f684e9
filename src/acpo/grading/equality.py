"""Decide whether two expressions are equal, by exact values or by digits that stay apart however many are taken."""

import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from acpo.grading.tree import Node, symbols, walk
from acpo.grading.values import Evaluator, NoValueError, TooLargeError, Value, symbol_value

SCREEN_DIGITS = 40
CONFIRM_DIGITS = 300
POINTS = 5
WHOLE_POINTS = 30
TRIES = 60
_WHOLE = frozenset({"floor", "ceil", "binom", "gcd", "lcm"})


def points(*nodes: Node) -> Iterator[dict[str, Fraction]]:
    """Yield assignments of the free symbols at which expressions are compared.

    Symbols stand for positive reals; for whole numbers where a factorial, floor, ceiling, binomial or a power of -1
    occurs; and for negative ones, too, where an absolute value occurs.
    """
    names = sorted(frozenset().union(*(symbols(node) for node in nodes)))
    below = [each for node in nodes for each in walk(node)]
    signed = any(each.kind == "call" and each.parts[0] == "abs" for each in below)
    whole = _whole(*nodes)
    for attempt in range(TRIES if names else 1):
        values = {}
        for place, name in enumerate(names):
            value = symbol_value(f"{name} {attempt}")
            if whole:
                value = Fraction(2 + (attempt * (2 * place + 1) + int(value * 9) * place) % 61)
            elif signed and (attempt + place) % 2:
                value = -value
            values[name] = value
        yield values


def _whole(*nodes: Node) -> bool:
    """Say whether symbols stand for whole numbers in any of these trees."""
    below = [each for node in nodes for each in walk(node)]
    calls = {str(each.parts[0]) for each in below if each.kind == "call"}
    return bool(calls & _WHOLE) or any(each.kind == "factorial" or _alternates(each) for each in below)


def _alternates(node: Node) -> bool:
    if node.kind != "pow":
        return False
    base = node.nodes[0]
    return base.kind == "neg" and base.nodes[0].kind == "number" and bool(symbols(node.nodes[1]))


class Difference:
    """Compares values of two trees at one point, first with few digits, then with many."""

    def __init__(self, point: dict[str, Fraction]):
        """Prepare both precisions."""
        self.screen, self.confirm = Evaluator(point, SCREEN_DIGITS), Evaluator(point, CONFIRM_DIGITS)

    def equal(self, left: Node, right: Node) -> bool:
        """Say whether two trees have the same value here.

        A true difference stays the same when more digits are taken; a rounding error shrinks with them. No tolerance
        is involved, so that tiny values are told apart.

        Raises:
            TooLargeError, NoValueError: see `Evaluator`.
        """
        first, second = self.screen(left), self.screen(right)
        if isinstance(first, Fraction) and isinstance(second, Fraction):
            return first == second
        ten = self.screen.mp.mpf(10)
        size = max(abs(self.screen.real(first)), abs(self.screen.real(second))) or self.screen.mp.mpf(1)
        apart = max(self._apart(self.screen, first, second), size * ten**-SCREEN_DIGITS)
        sharper = self._apart(self.confirm, self.confirm(left), self.confirm(right))
        return bool(sharper <= apart * ten ** (-(CONFIRM_DIGITS - SCREEN_DIGITS) // 2))

    @staticmethod
    def _apart(evaluator: Evaluator, first: Value, second: Value) -> Any:
        return abs(evaluator.real(first) - evaluator.real(second))


def equal_expressions(left: Node, right: Node) -> bool:
    """Decide whether two expressions are equal wherever both have a value.

    Raises:
        TooLargeError: beyond the caps.
        NoValueError: a part that has no value anywhere.
    """
    if left == right:
        return True
    agreed = 0
    failure: NoValueError | None = None
    needed = (WHOLE_POINTS if _whole(left, right) else POINTS) if symbols(left) | symbols(right) else 1
    for point in points(left, right):
        try:
            if not Difference(point).equal(left, right):
                return False
        except NoValueError as error:
            failure = error
            continue
        agreed += 1
        if agreed == needed:
            return True
    if failure is not None and not agreed:
        raise failure
    return agreed >= 2


def proportional(left: Node, right: Node, positive: bool) -> bool:
    """Decide whether two expressions differ by a constant factor other than 0 (equations `left = 0`, `right = 0`).

    Args:
        left: Difference of the sides of one relation.
        right: Difference of the sides of the other.
        positive: Whether the factor must be positive (inequalities).
    """
    if symbols(left) != symbols(right) or not symbols(left):
        return False
    base: tuple[Node, Node] | None = None
    for point in itertools.islice(points(left, right), POINTS):
        here = _at(left, point), _at(right, point)
        try:
            values = [Evaluator({}, SCREEN_DIGITS)(node) for node in here]
            if any(value == 0 for value in values):
                continue
            if positive and not _same_sign(*values):
                return False
            if base is None:
                base = here
            elif not Difference({}).equal(Node("mul", (here[0], base[1])), Node("mul", (here[1], base[0]))):
                return False
        except NoValueError:
            continue
    return base is not None


def _same_sign(first: Value, second: Value) -> bool:
    try:
        return bool((first > 0) == (second > 0))
    except TypeError:
        return False


def _at(node: Node, point: dict[str, Fraction]) -> Node:
    """Put values in the place of symbols."""
    if node.kind == "symbol" and node.parts[0] in point:
        return Node("number", (point[str(node.parts[0])], ""))
    return Node(node.kind, tuple(_at(part, point) if isinstance(part, Node) else part for part in node.parts))


__all__ = ["NoValueError", "TooLargeError", "equal_expressions", "proportional"]
