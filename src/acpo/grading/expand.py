"""Other readings of an answer: the list of its values, the interval that a relation describes, its unit."""

from dataclasses import dataclass, replace

from acpo.grading.tree import Node, walk

_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_UNITS = {
    "dollar": "dollars", "cent": "cents", "degree": "degrees", "deg": "degrees", "minute": "min", "minutes": "min",
    "mins": "min",
    "inch": "in", "inches": "in", "foot": "ft", "feet": "ft", "meter": "m", "meters": "m", "metre": "m",
    "metres": "m",
    "mile": "mi", "miles": "mi", "hour": "h", "hours": "h", "hr": "h", "hrs": "h", "second": "s", "seconds": "s",
    "sec": "s",
    "unit": "units", "centimeters": "cm", "kilometers": "km", "gram": "g", "grams": "g", "pounds": "lb",
    "pound": "lb",
    "square": "", "sq": "", "per": "/",
}  # fmt: skip


@dataclass(frozen=True)
class Interval:
    """An interval: its ends (None: infinite), which of them are open, and the variable that it is about, if named."""

    low: Node | None
    high: Node | None
    open_low: bool
    open_high: bool
    variable: str | None = None


def unit_of(node: Node) -> str:
    """Name an answer's unit in one spelling, without its power; empty where it has none."""
    if node.kind == "degree":
        return "degrees"
    if node.kind != "unit":
        return ""
    words = str(node.parts[0]).replace("/", " / ").replace("^", "").split()
    spelled = (_UNITS.get(word.rstrip("0123456789.{}"), word.rstrip("0123456789.{}")) for word in words)
    return " ".join(word for word in spelled if word)


def as_list(node: Node) -> list[Node]:
    """List the values of an answer: the items of a list or a set, and both signs of every plus-minus."""
    if node.kind == "unit":
        return [Node("unit", (node.parts[0], each)) for each in as_list(node.nodes[0])]
    if node.kind in ("list", "set"):
        found = [value for item in node.nodes for value in as_list(item)]
        if node.kind == "set" and len(found) == 1:
            return found
        return list(dict.fromkeys(found)) if node.kind == "set" else found
    if node.kind == "relation" and node.parts[0] == "=" and len(node.nodes) == 2:
        left, right = node.nodes
        if left.kind in ("symbol", "apply") and (right.kind == "set" or _has_sign(right)):
            return [Node("relation", ("=", left, value)) for value in as_list(right)]
    if _has_sign(node) and node.kind != "group":
        return [_choose(node, positive=True), _choose(node, positive=False)]
    return [node]


def _has_sign(node: Node) -> bool:
    return any(each.kind == "pm" for each in walk(node))


def _choose(node: Node, positive: bool) -> Node:
    """Take the upper (or lower) sign of every plus-minus."""
    parts = tuple(_choose(part, positive) if isinstance(part, Node) else part for part in node.parts)
    if node.kind != "pm":
        return Node(node.kind, parts)
    term = parts[1]
    assert isinstance(term, Node)
    return term if (parts[0] == "pm") == positive else Node("neg", (term,))


def _end(node: Node) -> Node | None:
    """An interval's end; None where it is infinite."""
    bare = node.nodes[0] if node.kind == "neg" else node
    return None if bare == Node("symbol", ("oo",)) else node


def as_interval(node: Node) -> Interval | None:
    r"""Read `(a, b]`, `a < x <= b`, `x < 3` or `x \in (a, b]` as an interval; None for anything else."""
    if node.kind == "group" and len(node.nodes) == 2:
        low, high = map(_end, node.nodes)
        return Interval(low, high, node.parts[0] == "(" or low is None, node.parts[1] == ")" or high is None)
    if node.kind != "relation":
        return None
    operators, sides = str(node.parts[0]).split(), node.nodes
    if operators == ["in"]:
        inside = as_interval(sides[1]) if sides[0].kind == "symbol" else None
        return inside and replace(inside, variable=str(sides[0].parts[0]))
    if any(operator not in _FLIPPED for operator in operators):
        return None
    if len(sides) == 2:
        return _half_line(operators[0], *sides)
    return _chain(operators, sides) if len(sides) == 3 else None


def _half_line(operator: str, left: Node, right: Node) -> Interval | None:
    if left.kind != "symbol":
        left, right, operator = right, left, _FLIPPED[operator]
    if left.kind != "symbol":
        return None
    name, strict, end = str(left.parts[0]), len(operator) == 1, _end(right)
    if operator[0] == "<":
        return Interval(None, end, True, strict or end is None, name)
    return Interval(end, None, strict or end is None, True, name)


def _chain(operators: list[str], sides: tuple[Node, ...]) -> Interval | None:
    if operators[0][0] == ">":
        operators, sides = [_FLIPPED[each] for each in reversed(operators)], sides[::-1]
    if any(each[0] != "<" for each in operators) or sides[1].kind != "symbol":
        return None
    low, high = _end(sides[0]), _end(sides[2])
    opened = [len(operator) == 1 for operator in operators]
    return Interval(low, high, opened[0] or low is None, opened[1] or high is None, str(sides[1].parts[0]))
