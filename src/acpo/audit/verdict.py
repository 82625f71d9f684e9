"""What an audit says of a claim."""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from acpo.results import Record


class Verdict(StrEnum):
    """The four answers.

    `NOT_REPRODUCED`: what was computed differs, or is too uncertain to agree; `CONTRADICTED`: it excludes the claim.
    """

    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    CONTRADICTED = "contradicted"
    NOT_TESTABLE = "not testable here"


class Row(Record):
    """One line of an audit: `claim | published | recomputed | verdict | why`.

    Args:
        id: A short name, unique in its audit.
        place: Where the paper says it.
        claim: What it says, in neutral words.
        published: The numbers or words that it gives.
        recomputed: What was found here; empty where nothing could be computed.
        verdict: See `Verdict`.
        why: What the verdict rests on.
        command: What makes the inputs and computes it again.
    """

    id: str
    place: str
    claim: str
    published: str
    recomputed: str
    verdict: Verdict
    why: str
    command: str = Field(min_length=1)


class Audit(Record):
    """`results/audit/published.json` and `ledger.json`."""

    schema_version: Literal[1] = 1
    title: str
    rows: list[Row]

    def counts(self) -> dict[Verdict, int]:
        """Count rows by verdict, in the order of `Verdict`; also those that do not occur."""
        return {verdict: sum(row.verdict is verdict for row in self.rows) for verdict in Verdict}
