"""Grade Countdown answers: an expression over the given numbers, each used once, that has exactly the target as value.

The expression is read by a tokenizer and a parser of its own over + - * / and parentheses on whole numbers, and
evaluated with exact fractions: nothing is rounded, and nothing is executed.
"""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from acpo.grading.extract import tagged
from acpo.grading.verdict import Verdict

VERSION = "countdown-1"
LONGEST_EXPRESSION = 500
DEEPEST = 50
_SYMBOLS = str.maketrans(
    {"×": "*", "⋅": "*", "·": "*", "∙": "*", "∗": "*", "•": "*", "÷": "/", "∕": "/", "⁄": "/", "−": "-", "–": "-"}
)
_COMMANDS = {"times": "*", "cdot": "*", "ast": "*", "div": "/"}
_SPACING = re.compile(r"\\[,;:! ()\[\]]|\\(?:left|right|displaystyle|quad)(?![A-Za-z])|\$|\s+|~")
_TOKEN = re.compile(r"(?P<number>[0-9]+)|\\(?P<command>[A-Za-z]+)|(?P<mark>[-+*/(){}])")
_NFKC_CHANGES = frozenset("０１２３４５６７８９＋－＊／（）＝")

Expression = tuple  # ("number", int) or (operator, left, right) or ("-", operand)


class RefusedError(ValueError):
    """The answer is not an expression of the game; the message says why."""


def _fold(text: str) -> str:
    """Fold full-width characters and operator look-alikes; refuse digits of other scripts and superscripts."""
    folded = "".join(unicodedata.normalize("NFKC", c) if c in _NFKC_CHANGES else c for c in text)
    folded = folded.translate(_SYMBOLS)
    for character in folded:
        if not character.isascii() and not character.isspace():
            raise RefusedError(f"the character {character!r} is not allowed")
    return folded


def _tokenize(text: str) -> list[str]:
    """Split into numbers, operators and parentheses; TeX operators are renamed and spacing is dropped."""
    tokens: list[str] = []
    for piece in re.split(_SPACING, text):
        position = 0
        while position < len(piece):
            match = _TOKEN.match(piece, position)
            if match is None:
                raise RefusedError(f"the character {piece[position]!r} is not allowed")
            position = match.end()
            tokens.append(_token(match))
    return tokens


def _token(match: re.Match[str]) -> str:
    if match["command"]:
        name = match["command"]
        if name in ("frac", "dfrac", "tfrac"):
            return "frac"
        if name not in _COMMANDS:
            raise RefusedError(f"\\{name} is not allowed")
        return _COMMANDS[name]
    if match["number"] and match["number"] != str(int(match["number"][:20])) and len(match["number"]) > 1:
        raise RefusedError("a number with leading zeros or too many digits")
    return match["number"] or match["mark"]


class _Parser:
    """Recursive descent with the usual precedence; one unary minus, and only at the very start."""

    def __init__(self, tokens: list[str]):
        self.tokens, self.at, self.depth = tokens, 0, 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def next(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1] if self.at <= len(self.tokens) else ""

    def whole(self) -> Expression:
        negative = self.peek() == "-"
        if negative:
            self.next()
        node = self.sum(negative)
        if self.peek():
            raise RefusedError(f"unexpected {self.peek()!r}")
        return node

    def sum(self, negative: bool = False) -> Expression:
        self.depth += 1
        if self.depth > DEEPEST:
            raise RefusedError(f"nested deeper than {DEEPEST} levels")
        node = self.product()
        if negative:
            node = ("negative", node)
        while self.peek() in ("+", "-"):
            node = (self.next(), node, self.product())
        self.depth -= 1
        return node

    def product(self) -> Expression:
        node = self.operand()
        while self.peek() in ("*", "/"):
            node = (self.next(), node, self.operand())
        return node

    def operand(self) -> Expression:
        token = self.next()
        if token.isdigit():
            return ("number", int(token))
        if token == "frac":
            return ("/", self.group("{", "}"), self.group("{", "}"))
        if token in ("(", "{"):
            self.at -= 1
            return self.group(token, ")" if token == "(" else "}")
        raise RefusedError(f"expected a number or a parenthesis, found {token or 'the end'!r}")

    def group(self, opening: str, closing: str) -> Expression:
        if self.next() != opening:
            raise RefusedError(f"expected {opening!r}")
        node = self.sum()
        if self.next() != closing:
            raise RefusedError("parentheses that do not match")
        return node


def parse(text: str) -> Expression:
    """Read an expression.

    Raises:
        RefusedError: too long or deep, or anything but + - * / and parentheses on whole numbers.
    """
    if len(text) > LONGEST_EXPRESSION:
        raise RefusedError(f"longer than {LONGEST_EXPRESSION} characters")
    return _Parser(_tokenize(_fold(text))).whole()


def numbers_in(expression: Expression) -> list[int]:
    """List the numbers of an expression."""
    if expression[0] == "number":
        return [expression[1]]
    return [number for part in expression[1:] for number in numbers_in(part)]


def evaluate(expression: Expression) -> Fraction:
    """Evaluate exactly.

    Raises:
        RefusedError: a division by zero.
    """
    operator, *parts = expression
    if operator == "number":
        return Fraction(parts[0])
    values = [evaluate(part) for part in parts]
    if operator == "negative":
        return -values[0]
    left, right = values
    if operator == "/" and right == 0:
        raise RefusedError("division by zero")
    return {"+": left.__add__, "-": left.__sub__, "*": left.__mul__, "/": left.__truediv__}[operator](right)


def write_gold(numbers: Sequence[int], target: int) -> str:
    """Write a gold as the JSON text that the grader reads."""
    return json.dumps({"numbers": list(numbers), "target": target})


def read_gold(gold: str) -> tuple[list[int], int]:
    """Read a gold.

    Raises:
        ValueError: not the JSON of `write_gold`.
    """
    content = json.loads(gold)
    return [int(number) for number in content["numbers"]], int(content["target"])


def _split_equation(text: str, target: int) -> str:
    """Take a trailing `= target` off; any other right side is refused."""
    left, equals, right = text.replace("＝", "=").partition("=")
    if not equals:
        return text
    if "=" in right or parse(right) not in (("number", target), ("negative", ("number", -target))):
        raise RefusedError("the right side of the equation is not the target")
    return left


def grade(response: str, gold: str) -> Verdict:
    """Grade the last `<answer>` or box outside `<think>`: first the numbers as a multiset, then the value."""
    numbers, target = read_gold(gold)
    found = tagged(response)
    if found.text is None:
        return Verdict(False, None, found.how)
    shown = found.text[:200]
    try:
        if len(found.text) > LONGEST_EXPRESSION:
            raise RefusedError(f"longer than {LONGEST_EXPRESSION} characters")
        expression = parse(_split_equation(found.text, target))
        if Counter(numbers_in(expression)) != Counter(numbers):
            return Verdict(False, shown, "wrong numbers")
        value = evaluate(expression)
    except RefusedError as error:
        return Verdict(False, shown, f"refused: {error}")
    return Verdict(True, shown, "solved") if value == target else Verdict(False, shown, "wrong value")
