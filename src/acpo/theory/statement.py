"""One statement of the paper and what was recomputed."""

from acpo.results import Record


class Statement(Record):
    """A statement with its published and its recomputed side, in neutral words.

    `agrees` follows from `numbers` by the comparison in the function that makes the statement.
    """

    id: str
    statement: str
    place: str
    published: str
    recomputed: str
    how: str
    agrees: bool
    numbers: dict[str, float]
