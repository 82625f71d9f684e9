"""Read what stands between brackets: expressions, tuples, intervals, sets, absolute values, matrices."""

from acpo.grading.cursor import Cursor
from acpo.grading.normalize import ROW
from acpo.grading.tokens import MalformedError, Token, UnsupportedError
from acpo.grading.tree import Node

_CLOSING = {"(": ")", "[": "]", "{": "}", "langle": "rangle"}
_MATRICES = frozenset({"pmatrix", "bmatrix", "matrix", "array", "Bmatrix", "smallmatrix"})


class BracketReader(Cursor):
    """Readers of bracketed parts."""

    def bracket(self, token: Token) -> Node:
        """Brackets: a parenthesised expression, a tuple, an interval, a set, an absolute value."""
        self.deeper()
        if token.text == "|":
            node = self.bars()
        elif token.text == "{" and token.kind == "mark":
            items = self.items()
            self.expect("}")
            node = items[0] if len(items) == 1 else Node("set", tuple(items))
        elif token.text == "{":
            empty = self.take("}")
            items = [] if empty else self.items()
            if not empty:
                self.expect("}")
            node = Node("set", tuple(items))
        else:
            opening = "(" if token.text == "langle" else token.text
            items = self.items()
            closing = self.expect(")", "]", "rangle").replace("rangle", ")")
            node = (
                items[0]
                if len(items) == 1 and _CLOSING[opening] == closing
                else Node("group", (opening, closing, *items))
            )
        self.depth -= 1
        return node

    def items(self) -> list[Node]:
        """Statements separated by commas inside brackets."""
        outer, self.in_bars = self.in_bars, False
        items = [self.statement()]
        while self.take(",", ";"):
            items.append(self.statement())
        self.in_bars = outer
        return items

    def bars(self) -> Node:
        """`|x|`."""
        outer, self.in_bars = self.in_bars, True
        inside = self.sum()
        self.expect("|")
        self.in_bars = outer
        return Node("call", ("abs", inside))

    def matrix(self) -> Node:
        """A matrix environment; its kind of brackets does not matter, except that bars make a determinant.

        Raises:
            UnsupportedError: the environment is no matrix that is read here.
            MalformedError: an array whose column specification is not closed.
        """
        kind = self.environment()
        if kind not in _MATRICES:
            raise UnsupportedError(f"the environment {kind} is not read here")
        if kind == "array" and self.take("{"):
            while not self.take("}"):
                if self.peek() is None:
                    raise MalformedError("an array that is not closed")
                self.at += 1
        rows: list[list[Node]] = [[]]
        while not self.take("end"):
            if self.take(ROW):
                rows.append([])
            elif not self.take("&"):
                rows[-1].append(self.sum())
        self.environment()
        return Node("matrix", tuple(Node("row", tuple(row)) for row in rows if row))

    def environment(self) -> str:
        r"""The name in braces after `\begin` or `\end`."""
        self.expect("{")
        letters = []
        while (token := self.peek()) is not None and token.kind != "mark":
            self.at += 1
            letters.append(token.text)
        self.expect("}")
        return "".join(letters)
