"""Statements of the paper beside what they give when recomputed: `results/theory/statements.json`.

Every number is computed when the list is made; nothing is typed in but the statements themselves.
"""

from typing import Literal

from acpo.results import Provenance, Record
from acpo.theory.statement import Statement
from acpo.theory.statements_gradient import gradient_statements
from acpo.theory.statements_ratio import ratio_statements


class Statements(Record):
    """The whole list, in the order of the paper."""

    schema_version: Literal[1] = 1
    statements: list[Statement]
    provenance: Provenance


def all_statements(root_seed: int) -> list[Statement]:
    """Recompute every statement.

    Args:
        root_seed: Where the simulations draw from.
    """
    return [*ratio_statements(root_seed), *gradient_statements(root_seed)]


COLUMNS = ("Statement", "Where", "Published", "Recomputed", "How", "Agrees")


def text_rows(statements: list[Statement]) -> list[tuple[str, ...]]:
    """Return the statements as rows of text under `COLUMNS`."""
    return [
        (each.statement, each.place, each.published, each.recomputed, each.how, "yes" if each.agrees else "no")
        for each in statements
    ]
