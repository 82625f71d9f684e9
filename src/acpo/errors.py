"""What a user is told when something that was written is wrong."""

import difflib
from collections.abc import Iterable

LISTED = 30
"""How many known names a message lists."""


class ConfigError(Exception):
    """The configuration is wrong; the message names the key, what was expected and what to do."""


def nearest(word: str, known: Iterable[str]) -> str:
    """Phrase the nearest known word, or list some of them: the tail of every 'unknown ...' message."""
    known = sorted(known)
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    if close:
        return f"did you mean {close[0]!r}?"
    more = f" and {len(known) - LISTED} more" if len(known) > LISTED else ""
    return f"known: {', '.join(known[:LISTED]) or 'none'}{more}"
