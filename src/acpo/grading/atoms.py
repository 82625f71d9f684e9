"""Read the smallest parts of a mathematical answer: numbers, symbols, functions, powers, fractions."""

import re
from fractions import Fraction

from acpo.grading.brackets import BracketReader
from acpo.grading.tokens import MalformedError, Token, UnsupportedError
from acpo.grading.tree import Node, number

LARGEST_EXPONENT = 5000
LONGEST_NUMBER = 1000
_ACCENTS = frozenset(
    {
        "dot", "ddot", "hat", "bar", "vec", "tilde", "overline", "widehat", "widetilde", "underline", "overrightarrow",
    }
)  # fmt: skip
_APPLIED = frozenset("fghFGHPQpquvy")
_ALIASES = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "lg": "ln", "log": "ln"}


class AtomReader(BracketReader):
    """Readers of factors; `Parser` adds terms, sums and statements."""

    def starts_factor(self, token: Token) -> bool:
        """Say whether a token can begin a factor."""
        if token.kind == "mark":
            return token.text in ("(", "[", "{") or (token.text == "|" and not self.in_bars)
        if token.kind == "command":
            known = (
                "frac",
                "sqrt",
                "binom",
                "begin",
                "lfloor",
                "lceil",
                "langle",
                "angle",
                "triangle",
                "{",
                *_ACCENTS,
            )
            return token.text in known
        return token.kind in ("number", "name", "function", "word")

    in_bars = False

    def factor(self) -> Node:
        """A base with its postfixes: factorial, power, percent, degrees."""
        self.deeper()
        node = self.base()
        while (token := self.peek()) is not None and token.kind == "mark":
            if token.text == "!":
                self.at += 1
                node = Node("factorial", (node,))
            elif token.text in ("^", "**"):
                self.at += 1
                node = self.power(node)
            elif token.text == "%":
                self.at += 1
                node = Node("percent", (node,))
            else:
                break
        self.depth -= 1
        return node

    def power(self, base: Node) -> Node:
        """The exponent after `^`; degrees and primes are written as exponents, too."""
        if self.take("circ"):
            return Node("degree", (base,))
        if (
            self.peek()
            and self.peek(1)
            and self.tokens[self.at].text == "{"
            and self.tokens[self.at + 1].text in ("circ", "prime", "'")
        ):
            degree = self.tokens[self.at + 1].text == "circ"
            self.at += 1
            marks = 0
            while self.take("circ", "prime", "'"):
                marks += 1
            self.expect("}")
            return Node("degree", (base,)) if degree else _primed(base, marks)
        return Node("pow", (base, self.exponent()))

    def exponent(self) -> Node:
        """A braced, bracketed or single exponent; towers group from the right."""
        if self.take("-"):
            return Node("neg", (self.factor(),))
        self.take("+")
        if (token := self.peek()) is not None and token.text == "{" and token.kind == "mark":
            inside = self.group()
            return self.power(inside) if self.take("^", "**") else inside
        return self.factor()

    def group(self) -> Node:
        """A brace group that holds one expression, or a single token where TeX takes one."""
        if self.take("{"):
            inside = self.sum()
            self.expect("}")
            return inside
        token = self.peek()
        if token is not None and token.kind == "number" and len(token.text) > 1 and token.text.isdigit():
            self.tokens[self.at] = Token("number", token.text[1:])
            return number(int(token.text[0]), token.text[0])
        return self.base()

    def base(self) -> Node:
        """A number, a name, a function, a bracketed expression or a command.

        Raises:
            MalformedError: the answer ends here, or has text where mathematics is expected.
        """
        token = self.peek()
        if token is None:
            raise MalformedError("the answer ends too early")
        self.at += 1
        if token.kind == "number":
            return self.numeral(token.text)
        if token.kind == "name":
            return Node("set", ()) if token.text in ("emptyset", "varnothing") else self.symbol(token.text)
        if token.kind == "word":
            return self.symbol(token.text) if len(token.text) > 1 else Node("word", (token.text.casefold(),))
        if token.kind == "function":
            return self.function(token.text)
        if token.kind == "text":
            raise MalformedError(f"text among mathematics: {token.text[:40]!r}")
        return self.bracket(token) if token.text in ("(", "[", "{", "|", "langle") else self.command(token)

    def numeral(self, text: str) -> Node:
        """A number, or a numeral with its base as index.

        Raises:
            MalformedError: an index that is no base, too many digits, or too large an exponent.
        """
        if self.take("_"):
            base = self.group()
            if base.kind != "number" or not text.isdigit():
                raise MalformedError("an index on a number that is not a base")
            return Node("based", (text.lstrip("0") or "0", str(base.parts[0])))
        if "." in text and self.take("overline", "bar", "dot"):
            return self.repeating(text)
        if len(text) > LONGEST_NUMBER:
            raise MalformedError(f"a number of more than {LONGEST_NUMBER} digits")
        mantissa, _, exponent = text.lower().partition("e")
        if exponent and abs(int(exponent)) > LARGEST_EXPONENT:
            raise MalformedError("a number with too large an exponent")
        return number(Fraction(mantissa.rstrip(".")) * Fraction(10) ** int(exponent or 0), text)

    def repeating(self, text: str) -> Node:
        r"""A repeating decimal: `0.1\overline{6}`.

        Raises:
            MalformedError: no digits under the bar, or too many in all.
        """
        token = self.peek(1)
        self.expect("{")
        if token is None or not token.text.isdigit() or len(text + token.text) > LONGEST_NUMBER:
            raise MalformedError("a bar over what are no digits")
        self.at += 1
        self.expect("}")
        places = len(text.partition(".")[2])
        period = Fraction(int(token.text), 10**places * (10 ** len(token.text) - 1))
        return number(Fraction(text.rstrip(".")) + period, f"{text}({token.text})")

    def index(self) -> str:
        """The text of an index: `_1`, `_{max}`.

        Raises:
            MalformedError: a brace that is not closed.
        """
        if not self.take("_"):
            return ""
        if not self.take("{"):
            self.at += 1
            return "_" + self.tokens[self.at - 1].text if self.at <= len(self.tokens) else ""
        depth = 1
        texts: list[str] = []
        while (token := self.peek()) is not None:
            self.at += 1
            depth += (token.text == "{") - (token.text == "}")
            if depth == 0:
                return "_" + "".join(texts)
            texts.append(token.text)
        raise MalformedError("an index that is not closed")

    def symbol(self, name: str) -> Node:
        """A symbol with index and primes, or a named function applied to arguments."""
        name += self.index()
        marks = 0
        while self.take("'"):
            marks += 1
        node = _primed(Node("symbol", (name,)), marks)
        token = self.peek()
        if token is not None and token.kind == "mark" and token.text == "(" and name not in ("e", "i", "pi"):
            return self.applied(node)
        return node

    def applied(self, function: Node) -> Node:
        """`x(t)`, `I(0)`, `f(2x)` are applications; `n(n+1)` is a product."""
        start = self.at
        self.at += 1
        arguments = [self.sum()]
        while self.take(","):
            arguments.append(self.sum())
        if not self.take(")"):
            self.at = start
            return function
        single = len(arguments) == 1 and arguments[0].kind in ("symbol", "number")
        if single or len(arguments) > 1 or str(function.parts[0])[0] in _APPLIED:
            return Node("apply", (function, *arguments))
        self.at = start
        return function

    def function(self, name: str) -> Node:
        """A named function with its base, power and argument."""
        if name == "sqrt":
            return self.root()
        name = _ALIASES.get(name, name)
        base = None
        if name == "ln" and self.take("_"):
            base = self.group()
        elif name in ("max", "min"):
            self.index()
        exponent = self.exponent() if self.take("^", "**") else None
        argument = self.argument()
        if exponent == Node("neg", (number(1, "1"),)) and name in (
            "sin",
            "cos",
            "tan",
            "cot",
            "sinh",
            "cosh",
            "tanh",
        ):
            return Node("call", (f"arc{name}", *argument))
        node = Node("call", (name, *argument))
        if base is not None:
            node = Node("div", (node, Node("call", ("ln", base))))
        return node if exponent is None else Node("pow", (node, exponent))

    def argument(self) -> tuple[Node, ...]:
        """The argument of a function: bracketed, braced, or the factors that follow it."""
        if self.take("("):
            arguments = [self.sum()]
            while self.take(","):
                arguments.append(self.sum())
            self.expect(")")
            return tuple(arguments)
        token = self.peek()
        if token is not None and token.kind == "function":
            return (self.factor(),)
        node = self.factor()
        while (token := self.peek()) is not None and token.kind in ("number", "name") and token.text not in ("(",):
            node = Node("mul", (node, self.factor()))
        return (node,)

    def root(self) -> Node:
        r"""`\sqrt{x}`, `\sqrt[3]{x}`, and `\sqrt(x)` or `sqrt(x)` as it is meant."""
        degree = None
        if self.take("["):
            degree = self.sum()
            self.expect("]")
        inside = self.base() if (token := self.peek()) is not None and token.text == "(" else self.group()
        if degree is not None:
            return Node("call", ("root", inside, degree))
        return Node("pow", (inside, Node("div", (number(1), number(2)))))

    def command(self, token: Token) -> Node:
        """A TeX command that stands for a value.

        Raises:
            UnsupportedError: a command that is not read here.
            MalformedError: a mark that no value begins with.
        """
        name = token.text
        if name == "frac":
            return Node("div", (self.group(), self.group()))
        if name == "binom":
            return Node("call", ("binom", self.group(), self.group()))
        if name in ("lfloor", "lceil"):
            inside = self.sum()
            self.expect("rfloor" if name == "lfloor" else "rceil")
            return Node("call", ("floor" if name == "lfloor" else "ceil", inside))
        if name in _ACCENTS:
            return self.symbol(f"{name}({_text(self.group())})")
        if name in ("angle", "triangle"):
            return self.symbol(name + "".join(self.points()))
        if name == "begin":
            return self.matrix()
        if token.kind == "command":
            raise UnsupportedError(f"\\{name} is not read here")
        raise MalformedError(f"unexpected {name!r}")

    def points(self) -> list[str]:
        """The letters that name an angle or a triangle."""
        names = []
        while (token := self.peek()) is not None and token.kind in ("name", "word"):
            self.at += 1
            names.append(token.text + self.index())
        return names


def _primed(base: Node, marks: int) -> Node:
    return Node("symbol", (f"{_text(base)}{marks * chr(39)}",)) if marks else base


def _text(node: Node) -> str:
    return re.sub(r"\s+", "", str(node.parts[0])) if node.kind == "symbol" else repr(node)
