"""Decide whether a predicted answer is the gold answer: expressions, lists, sets, intervals, relations, units."""

from dataclasses import dataclass
from fractions import Fraction

from acpo.grading.equality import NoValueError, TooLargeError, equal_expressions, proportional
from acpo.grading.expand import Interval, as_interval, as_list, unit_of
from acpo.grading.tree import Node, number
from acpo.grading.values import Evaluator

MOST_ITEMS = 200
_INEQUALITIES = frozenset({"<", "<=", ">", ">="})


@dataclass(frozen=True)
class Tolerance:
    """How far a predicted number may lie from a gold one that is no integer: a property of the benchmark."""

    absolute: Fraction | None = None
    relative: Fraction | None = None

    def allows(self, predicted: Node, gold: Node) -> bool:
        """Say whether a prediction is near enough to a gold number that was written as a decimal."""
        literal, sign = (gold.nodes[0], -1) if gold.kind == "neg" else (gold, 1)
        if literal.kind != "number" or str(literal.parts[1]).isdigit() or not literal.parts[1]:
            return False
        wanted = sign * Fraction(str(literal.parts[0]))
        try:
            value = Evaluator({}, 30)(predicted)
        except NoValueError:
            return False
        if not isinstance(value, Fraction):
            if value.imag != 0:
                return False
            value = Fraction(str(value.real))
        allowed = self.absolute if self.absolute is not None else abs(wanted) * (self.relative or 0)
        return abs(value - wanted) <= allowed


EXACT = Tolerance()


def same(predicted: Node, gold: Node, tolerance: Tolerance = EXACT) -> bool:
    """Decide whether two answers are the same.

    Args:
        predicted: The answer to grade.
        gold: The right answer.
        tolerance: For numbers, where the benchmark has one.

    Raises:
        TooLargeError: a value is beyond the caps.
    """
    if predicted == gold:
        return True
    if {predicted.kind, gold.kind} == {"list", "union"}:
        return _same_items(list(predicted.nodes), list(gold.nodes), tolerance)
    first, second = as_list(predicted), as_list(gold)
    if len(first) > 1 or len(second) > 1:
        return _same_items(first, second, tolerance)
    return _same_statement(predicted, gold, tolerance)


def _same_items(first: list[Node], second: list[Node], tolerance: Tolerance) -> bool:
    """Match two collections without regard to order; every item must find its own partner."""
    if len(first) != len(second) or len(first) > MOST_ITEMS:
        return False
    rest = list(second)
    for item in first:
        for place, other in enumerate(rest):
            if _same_statement(item, other, tolerance):
                del rest[place]
                break
        else:
            return False
    return True


def _same_statement(predicted: Node, gold: Node, tolerance: Tolerance) -> bool:
    units = unit_of(predicted), unit_of(gold)
    if units[0] and units[1] and units[0] != units[1]:
        return False
    predicted, gold = _bare(predicted), _bare(gold)
    if predicted == gold:
        return True
    if "relation" in (predicted.kind, gold.kind):
        return _same_relation(predicted, gold, tolerance)
    percents = [node.kind == "percent" for node in (predicted, gold)]
    if percents[0] != percents[1]:
        return _same_percent(predicted, gold, tolerance)
    if predicted.kind == "percent":
        predicted, gold = predicted.nodes[0], gold.nodes[0]
    return _same_value(predicted, gold, tolerance)


def _bare(node: Node) -> Node:
    while node.kind in ("unit", "degree"):
        node = node.nodes[0]
    return node


def _same_percent(predicted: Node, gold: Node, tolerance: Tolerance) -> bool:
    """A percent sign on one side: the literal or the scaled value matches, no other factor of 100."""
    if predicted.kind == "percent":
        inside = predicted.nodes[0]
        scaled = _same_value(Node("div", (inside, number(100))), gold, tolerance)
    else:
        inside = gold.nodes[0]
        scaled = _same_value(Node("mul", (predicted, number(100))), inside, tolerance)
        return scaled or _same_value(predicted, inside, tolerance)
    return scaled or _same_value(inside, gold, tolerance)


_STRUCTURES = frozenset({"group", "set", "union", "minus", "cap", "matrix", "row", "ratio", "word", "based", "list"})


def _same_value(predicted: Node, gold: Node, tolerance: Tolerance) -> bool:
    kinds = {predicted.kind, gold.kind}
    if kinds == {"word", "symbol"}:
        return str(predicted.parts[0]).casefold() == str(gold.parts[0]).casefold()
    if kinds & _STRUCTURES:
        return len(kinds) == 1 and _same_structure(predicted, gold, tolerance)
    if "pm" in kinds:
        return False
    try:
        if equal_expressions(predicted, gold):
            return True
    except NoValueError:
        return False
    return tolerance != EXACT and tolerance.allows(predicted, gold)


def _same_structure(predicted: Node, gold: Node, tolerance: Tolerance) -> bool:
    kind = predicted.kind
    if kind == "word" or kind == "based":
        return predicted.parts == gold.parts
    if kind == "group" and predicted.parts[:2] != gold.parts[:2]:
        return False
    if kind == "set":
        return _same_set(list(predicted.nodes), list(gold.nodes), tolerance)
    if kind in ("union", "cap"):
        return _same_items(list(predicted.nodes), list(gold.nodes), tolerance)
    if len(predicted.nodes) != len(gold.nodes):
        return False
    return all(same(*pair, tolerance) for pair in zip(predicted.nodes, gold.nodes, strict=True))


def _same_set(first: list[Node], second: list[Node], tolerance: Tolerance) -> bool:
    """Sets: the same members, however often written."""
    if max(len(first), len(second)) > MOST_ITEMS:
        return False
    return all(any(_same_statement(a, b, tolerance) for b in second) for a in first) and all(
        any(_same_statement(a, b, tolerance) for a in first) for b in second
    )


def _named(node: Node) -> bool:
    """Say whether a side of an equation is a name: `x`, `x_1`, `f(x)`, `(x, y)`."""
    if node.kind == "group":
        return all(_named(each) for each in node.nodes)
    return node.kind in ("symbol", "apply", "word")


def _assigned(node: Node) -> tuple[Node, Node] | None:
    """Split `x = 5`, `5 = x` or `f(x) = x + 1` into name and value; None for any other statement."""
    if node.kind != "relation" or node.parts[0] not in ("=", "in"):
        return None
    left, right = node.nodes
    if _named(left):
        return left, right
    return (right, left) if _named(right) and node.parts[0] == "=" else None


def _same_relation(predicted: Node, gold: Node, tolerance: Tolerance) -> bool:
    first, second = _assigned(predicted), _assigned(gold)
    if first is not None and second is not None:
        left, right = _renamed(first, second), second
        if left[0] == right[0] and same(left[1], right[1], tolerance):
            return True
    elif gold.kind != "relation" and (last := _last_of_chain(predicted)) is not None:
        return same(last, gold, tolerance)
    elif first is not None and gold.kind != "relation":
        return same(first[1], gold, tolerance)
    elif second is not None and predicted.kind != "relation":
        return same(predicted, second[1], tolerance)
    intervals = as_interval(predicted), as_interval(gold)
    if intervals[0] is not None and intervals[1] is not None:
        return _same_interval(intervals[0], intervals[1], tolerance)
    if predicted.kind != gold.kind:
        return False
    return _same_equation(predicted, gold) or _same_sides(predicted, gold, tolerance)


def _same_sides(predicted: Node, gold: Node, tolerance: Tolerance) -> bool:
    r"""Compare relations side by side: `AB \parallel CD`, `n \to \infty`."""
    pairs = zip(predicted.nodes, gold.nodes, strict=False)
    alike = predicted.parts[0] == gold.parts[0] and len(predicted.nodes) == len(gold.nodes)
    return alike and all(same(*pair, tolerance) for pair in pairs)


def _last_of_chain(node: Node) -> Node | None:
    """Return the last side of `x = 3/4 = 0.75` or `2 + 3 = 5`, where the equations are true; else None."""
    if set(str(node.parts[0]).split()) != {"="}:
        return None
    sides = list(node.nodes)
    if len(sides) > 2 and _named(sides[0]):
        sides = sides[1:]
    if len(sides) < 2 or any(_named(side) for side in sides):
        return None
    return sides[-1] if all(_same_value(side, sides[-1], EXACT) for side in sides[:-1]) else None


def _renamed(first: tuple[Node, Node], second: tuple[Node, Node]) -> tuple[Node, Node]:
    """Rename the argument of `f(t) = 2t` to that of the gold `f(x) = 2x`."""
    if first[0].kind != "apply" or second[0].kind != "apply" or len(first[0].nodes) != 2 or len(second[0].nodes) != 2:
        return first
    old, new = first[0].nodes[1], second[0].nodes[1]
    if old.kind != "symbol" or new.kind != "symbol":
        return first
    return _replace(first[0], old, new), _replace(first[1], old, new)


def _replace(node: Node, old: Node, new: Node) -> Node:
    if node == old:
        return new
    return Node(node.kind, tuple(_replace(part, old, new) if isinstance(part, Node) else part for part in node.parts))


def _same_interval(first: Interval, second: Interval, tolerance: Tolerance) -> bool:
    if first.variable and second.variable and first.variable != second.variable:
        return False
    if (first.open_low, first.open_high) != (second.open_low, second.open_high):
        return False
    return _same_end(first.low, second.low, tolerance) and _same_end(first.high, second.high, tolerance)


def _same_end(first: Node | None, second: Node | None, tolerance: Tolerance) -> bool:
    if first is None or second is None:
        return first is second
    return _same_statement(first, second, tolerance)


def _same_equation(predicted: Node, gold: Node) -> bool:
    """Equations and single inequalities that differ by a constant factor are the same."""
    first, second = _difference(predicted), _difference(gold)
    if first is None or second is None or first[0] != second[0]:
        return False
    try:
        return proportional(first[1], second[1], positive=first[0] != "=")
    except NoValueError:
        return False


def _difference(node: Node) -> tuple[str, Node] | None:
    """Write a relation of two sides as `difference = 0`, `> 0` or `>= 0`."""
    if len(node.nodes) != 2:
        return None
    operator, (left, right) = str(node.parts[0]), node.nodes
    if operator == "=":
        return "=", Node("add", (left, Node("neg", (right,))))
    if operator not in _INEQUALITIES:
        return None
    greater, smaller = (left, right) if operator[0] == ">" else (right, left)
    return operator.replace("<", ">"), Node("add", (greater, Node("neg", (smaller,))))


__all__ = ["EXACT", "Tolerance", "TooLargeError", "same"]
