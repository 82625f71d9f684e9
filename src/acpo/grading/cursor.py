"""A cursor over the tokens of an answer, shared by the readers of its parts."""

from collections.abc import Callable

from acpo.grading.tokens import MalformedError, Token
from acpo.grading.tree import Node

DEEPEST = 60


class Cursor:
    """Takes tokens one by one and counts nesting; `brackets`, `atoms` and `parser` add the readers."""

    answer: Callable[[], Node]
    statement: Callable[[], Node]
    sum: Callable[[], Node]
    term: Callable[[], Node]
    in_bars = False

    def __init__(self, tokens: list[Token]):
        """Start at the first token."""
        self.tokens, self.at, self.depth = tokens, 0, 0

    def deeper(self) -> None:
        """Count one level of nesting.

        Raises:
            MalformedError: more levels than `DEEPEST`.
        """
        self.depth += 1
        if self.depth > DEEPEST:
            raise MalformedError(f"nested deeper than {DEEPEST} levels")

    def peek(self, ahead: int = 0) -> Token | None:
        """Return a token without taking it; None at the end."""
        place = self.at + ahead
        return self.tokens[place] if place < len(self.tokens) else None

    def take(self, *texts: str) -> bool:
        """Take the next token if it is one of these marks or commands."""
        token = self.peek()
        if token is not None and token.kind in ("mark", "command") and token.text in texts:
            self.at += 1
            return True
        return False

    def expect(self, *texts: str) -> str:
        """Take one of these marks or commands, and return it.

        Raises:
            MalformedError: another token is next, or none.
        """
        token = self.peek()
        if not self.take(*texts):
            raise MalformedError(f"expected {' or '.join(texts)}, found {token.text if token else 'the end'!r}")
        return self.tokens[self.at - 1].text
