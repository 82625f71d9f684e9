"""The syntax tree of a mathematical answer."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Union

Part = Union["Node", str, Fraction, int]


@dataclass(frozen=True)
class Node:
    """One node: its kind, and its parts.

    Values: `number` (Fraction, its text), `symbol` (name), `word` (folded text), `based` (digits, base).
    Expressions: `add` `mul` `div` `pow` `neg` `call` (name, arguments), `apply` (function symbol, arguments),
    `factorial`,
    `percent`, `degree`, `pm` (sign, term).
    Structures: `list` (items without brackets), `group` (opening, closing, items), `set`, `union`, `minus`, `cap`,
    `matrix` (rows of items), `ratio`, `relation` (operators joined by a space, sides), `unit` (unit, node).
    """

    kind: str
    parts: tuple[Part, ...]

    @property
    def nodes(self) -> tuple["Node", ...]:
        """The parts that are nodes."""
        return tuple(part for part in self.parts if isinstance(part, Node))


def number(value: int | Fraction, text: str = "") -> Node:
    """Make a number; `text` is how it was written."""
    return Node("number", (Fraction(value), text))


def walk(node: Node) -> list[Node]:
    """List a node and everything below it."""
    found, waiting = [], [node]
    while waiting:
        current = waiting.pop()
        found.append(current)
        waiting.extend(current.nodes)
    return found


def symbols(node: Node) -> frozenset[str]:
    """Name the free symbols below a node; the constants pi, e, i and infinity are none."""
    names = (str(each.parts[0]) for each in walk(node) if each.kind == "symbol")
    return frozenset(name for name in names if name not in CONSTANTS)


CONSTANTS = frozenset({"pi", "e", "i", "oo"})
