"""Read a mathematical answer (TeX, plain text or Python style) into a tree, in bounded time."""

import re
from fractions import Fraction

from acpo.grading.atoms import AtomReader
from acpo.grading.normalize import fold
from acpo.grading.tokens import UNIT_WORDS, MalformedError, Token, UnsupportedError, tokenize, words
from acpo.grading.tree import Node, number

_RELATIONS = {
    "=": "=", "==": "=", "<": "<", ">": ">", "<=": "<=", ">=": ">=", "!=": "!=", "le": "<=", "ge": ">=", "ne": "!=",
    "in": "in", "equiv": "=", "approx": "=", "Rightarrow": "=>", "to": "->", "rightarrow": "->", "mapsto": "->",
    "parallel": "parallel", "perp": "perp", "sim": "sim", "cong": "cong", "mid": "mid", "subset": "subset",
}  # fmt: skip
_THOUSANDS = re.compile(r"(\D*?)(-?)(\d{1,3}(?:,\d{3})+)(\.\d+)?(\D*)")
_HEDGES = words(
    "or and not if mod modulo where when with about approx approximately around roughly maybe nearly almost over under "
    "than least most more less infinitely no none each million billion thousand hundred "
    "because since which"
)
_UNIT_LETTERS = frozenset("smhgKNJWVA")
_SCALES = {
    "hundred": 10**2,
    "thousand": 10**3,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
    "dozen": 12,
}


class Parser(AtomReader):
    """Recursive descent over tokens, with a cap on depth. Methods are named after what they read."""

    def answer(self) -> Node:
        """Statements separated by commas, semicolons or `and`/`or`.

        Raises:
            MalformedError: something is left that belongs to no statement.
        """
        items = [self.statement()]
        while self.take(",", ";"):
            if self.peek() is None:
                break
            items.append(self.statement())
        if self.peek() is not None:
            raise MalformedError(f"unexpected {self.tokens[self.at].text!r}")
        return items[0] if len(items) == 1 else Node("list", tuple(items))

    def statement(self) -> Node:
        """A chain of relations between set expressions, or one set expression."""
        self.deeper()
        sides, operators = [self.sets()], []
        while (token := self.peek()) is not None and token.kind in ("mark", "command") and token.text in _RELATIONS:
            self.at += 1
            operators.append(_RELATIONS[token.text])
            sides.append(self.sets())
        self.depth -= 1
        return Node("relation", (" ".join(operators), *sides)) if operators else sides[0]

    def sets(self) -> Node:
        """Unions, intersections and differences of sets; a ratio `a:b`."""
        left = self.sum()
        while (token := self.peek()) is not None:
            if token.kind == "command" and token.text in ("cup", "cap", "setminus", "backslash"):
                self.at += 1
                kind = {"cup": "union", "cap": "cap"}.get(token.text, "minus")
                right = self.sum()
                parts = left.parts if kind == left.kind == "union" else (left,)
                left = Node(kind, (*parts, right))
            elif token.kind == "mark" and token.text == ":":
                self.at += 1
                parts = left.parts if left.kind == "ratio" else (left,)
                left = Node("ratio", (*parts, self.sum()))
            else:
                break
        return left

    def sum(self) -> Node:
        """Terms joined by plus, minus and plus-minus."""
        self.deeper()
        terms = [self.signed_term()]
        while (token := self.peek()) is not None and _is_sign(token):
            terms.append(self.signed_term())
        self.depth -= 1
        return terms[0] if len(terms) == 1 else Node("add", tuple(terms))

    def signed_term(self) -> Node:
        """One term with the signs before it.

        Raises:
            MalformedError: more than two signs in a row.
        """
        signs: list[str] = []
        while (token := self.peek()) is not None and _is_sign(token):
            signs.append(token.text)
            self.at += 1
            if len(signs) > 2:
                raise MalformedError("too many signs in a row")
        term = self.term()
        for sign in reversed(signs):
            if sign == "-":
                term = Node("neg", (term,))
            elif sign in ("pm", "mp"):
                term = Node("pm", (sign, term))
        return term

    def term(self) -> Node:
        """Factors joined by explicit or implicit multiplication and division, from left to right."""
        left = self.factor()
        while (token := self.peek()) is not None:
            if token.kind == "mark" and token.text in ("*", "/"):
                self.at += 1
                left = Node("mul" if token.text == "*" else "div", (left, self.signed_factor()))
            elif token.kind == "command" and token.text in ("cdot", "times", "div"):
                self.at += 1
                left = Node("div" if token.text == "div" else "mul", (left, self.signed_factor()))
            elif self.starts_factor(token):
                left = self.adjacent(left, token)
            else:
                break
        return left

    def adjacent(self, left: Node, token: Token) -> Node:
        """Read a factor written next to another: a mixed number, or a product.

        Raises:
            MalformedError: two numbers side by side that are no mixed number.
        """
        whole = self.tokens[self.at - 1]
        plain = whole.kind == "number" and whole.text.isdigit() and left.kind == "number"
        if token.kind == "number" and whole.kind == "number":
            numerator, bar, denominator = (self.peek(ahead) for ahead in range(3))
            if not (plain and token.spaced and bar is not None and bar.text == "/" and denominator is not None):
                raise MalformedError("two numbers next to each other")
            assert numerator is not None
            self.at += 3
            return _mixed(left, numerator.text, denominator.text)
        right = self.factor()
        if plain and right.kind == "div" and token.text == "frac" and all(n.kind == "number" for n in right.nodes):
            return _mixed(left, *(str(node.parts[1]) for node in right.nodes))
        return Node("mul", (left, right))

    def signed_factor(self) -> Node:
        """A factor with at most one sign, as in `2 * -3`."""
        if self.take("-"):
            return Node("neg", (self.factor(),))
        self.take("+")
        return self.factor()


def _is_sign(token: Token) -> bool:
    return (token.kind == "mark" and token.text in "+-") or (token.kind == "command" and token.text in ("pm", "mp"))


def _mixed(whole: Node, numerator: str, denominator: str) -> Node:
    if not (numerator.isdigit() and denominator.isdigit() and 0 < int(numerator) < int(denominator)):
        raise MalformedError("not a mixed number: its fraction is not proper")
    value = Fraction(str(whole.parts[0])) + Fraction(int(numerator), int(denominator))
    return number(value, f"{whole.parts[1]} {numerator}/{denominator}")


def _unit_at_end(tokens: list[Token]) -> tuple[list[Token], str]:
    r"""Take a trailing unit off a statement's tokens: `5 \text{ cm}^2`, `32.50 dollars`, `40 km/h`."""
    end, names = len(tokens), []
    while end > 1:
        power = 0
        if tokens[end - 1].kind == "number" and end > 3 and tokens[end - 2].text == "^":
            power = 2
        elif end > 5 and [t.text for t in tokens[end - 4 : end : 3]] == ["^", "}"] and tokens[end - 3].text == "{":
            power = 4
        unit = tokens[end - 1 - power]
        divided = end - 3 - power >= 0 and tokens[end - 3 - power].kind in ("text", "word")
        if unit.kind == "name" and not divided:
            break
        if not _is_unit(unit, tokens[end - 2 - power] if end - 2 - power >= 0 else None):
            break
        names.append(
            unit.text.strip(".").lower() + "".join(t.text for t in tokens[end - power : end] if t.text.isdigit())
        )
        end -= 1 + power
        if end > 1 and tokens[end - 1].text == "/":
            end -= 1
            names.append("/")
    return tokens[:end], " ".join(reversed(names))


def _is_unit(token: Token, before: Token | None) -> bool:
    if before is None or before.text in ("+", "-", "*", "=", "^", "_", "(", ","):
        return False
    parts = token.text.lower().replace(".", "").split()
    if token.kind == "text":
        return not _HEDGES.intersection(parts) and all(re.fullmatch(r"[a-z()/^0-9%-]+", word) for word in parts)
    if token.kind == "name" and before.text == "/":
        return token.text in _UNIT_LETTERS
    known = token.text.lower() in UNIT_WORDS or token.text in ("min", "sec")
    if token.kind == "word" and token.spaced and before.kind == "number":
        known = known or token.text.lower() not in _HEDGES | set(_SCALES)
    return token.kind in ("word", "function") and known


def _scaled(tokens: list[Token]) -> tuple[list[Token], int]:
    """Take a trailing scale word off (`1.2 million`) and return its factor."""
    if len(tokens) > 1 and tokens[-1].kind in ("word", "text"):
        name = tokens[-1].text.lower()
        factor = _SCALES.get(name) or _SCALES.get(name.removesuffix("s"))
        if factor:
            return tokens[:-1], factor
    return tokens, 1


def _split(tokens: list[Token]) -> list[list[Token]]:
    """Split tokens at the commas outside all brackets."""
    depth, pieces = 0, [[]]  # type: tuple[int, list[list[Token]]]
    for token in tokens:
        depth += token.text in ("(", "[", "{") and token.kind in ("mark", "command")
        depth -= token.text in (")", "]", "}") and token.kind in ("mark", "command")
        if depth == 0 and token.kind == "mark" and token.text in ",;":
            pieces.append([])
        else:
            pieces[-1].append(token)
    return [piece for piece in pieces if piece]


def _statement(tokens: list[Token]) -> Node:
    """Read one statement with its currency sign and unit."""
    currency = [token for token in tokens if token.text == "dollar" and token.kind == "command"]
    tokens = [token for token in tokens if token not in currency]
    if tokens and all(token.kind in ("text", "word") for token in tokens):
        return Node("word", (" ".join(token.text for token in tokens).casefold().strip("(). "),))
    tokens, unit = _unit_at_end(tokens)
    tokens, scale = _scaled(tokens)
    if not tokens:
        raise MalformedError("no answer beside a unit")
    node = Parser(tokens).answer()
    if scale != 1:
        node = Node("mul", (node, number(scale)))
    unit = unit or ("dollars" if currency else "")
    return Node("unit", (unit, node)) if unit else node


def read(folded: str, thousands: bool = True) -> Node:
    """Read a folded answer (see `normalize.fold`).

    Args:
        folded: The text.
        thousands: Whether `36,000` is one number; otherwise its comma separates two.

    Raises:
        MalformedError: not well-formed mathematics.
        UnsupportedError: mathematics that this parser does not read.
    """
    grouped = _THOUSANDS.fullmatch(folded)
    if thousands and grouped and not set(grouped[1]) & set("([{") and not grouped[1].rstrip().endswith("\\"):
        folded = folded.replace(grouped[3], grouped[3].replace(",", ""))
    pieces = _split(tokenize(folded))
    if not pieces:
        raise MalformedError("nothing to read")
    items = [_statement(piece) for piece in pieces]
    return items[0] if len(items) == 1 else Node("list", tuple(items))


def parse(text: str) -> Node:
    """Fold and read an answer (see `read`)."""
    return read(fold(text))


__all__ = ["MalformedError", "Parser", "UnsupportedError", "parse", "read"]
