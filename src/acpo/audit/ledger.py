"""The claims ledger: every figure, table, equation, lemma and claim of the paper, judged on the study at hand."""

import inspect
from functools import cache
from typing import Any, Literal

from pydantic import Field, model_validator

from acpo.audit.checks import CHECKS
from acpo.audit.checks.finding import Finding
from acpo.audit.evidence import Evidence, MissingEvidenceError
from acpo.audit.published import load_yaml
from acpo.audit.verdict import Audit, Row, Verdict
from acpo.errors import nearest
from acpo.results import Record


class Entry(Record):
    """One claim. It has a check, or a reason why there is none."""

    id: str
    place: str
    kind: Literal["figure", "table", "equation", "lemma", "claim"]
    statement: str
    published: str
    check: str | None = None
    arguments: dict[str, Any] = Field(default_factory=dict)
    reason: str | None = None
    command: str

    @model_validator(mode="after")
    def _judged_or_excused(self) -> "Entry":
        if (self.check is None) == (self.reason is None):
            raise ValueError(f"{self.id}: give a check, or a reason why it is not testable here")
        if self.check is None:
            return self
        if self.check not in CHECKS:
            raise ValueError(f"{self.id}: unknown check {self.check!r}; {nearest(self.check, CHECKS)}")
        try:
            inspect.signature(CHECKS[self.check]).bind(None, **self.arguments)
        except TypeError as error:
            raise ValueError(f"{self.id}: {self.check}: {error}") from error
        return self


class Ledger(Record):
    """`ledger.yaml`."""

    commands: dict[str, str]
    entries: list[Entry] = Field(min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> "Ledger":
        seen: set[str] = set()
        for entry in self.entries:
            if entry.id in seen:
                raise ValueError(f"two entries have the id {entry.id!r}")
            if entry.command not in self.commands:
                raise ValueError(
                    f"{entry.id}: unknown command {entry.command!r}; {nearest(entry.command, self.commands)}"
                )
            seen.add(entry.id)
        return self


@cache
def ledger() -> Ledger:
    """Return the claims.

    Raises:
        ConfigError: `ledger.yaml` does not fit; names entry and key.
    """
    made: Ledger = load_yaml("ledger.yaml", Ledger)
    return made


def judge(evidence: Evidence) -> Audit:
    """Judge every claim on a study's results.

    Raises:
        StoreError: a result exists but cannot be read.
    """
    claims = ledger()
    rows = [_row(entry, claims.commands[entry.command], evidence) for entry in claims.entries]
    return Audit(title="Claims of the paper, on the study at hand", rows=rows)


def _row(entry: Entry, command: str, evidence: Evidence) -> Row:
    finding = _finding(entry, evidence)
    return Row(
        id=entry.id,
        place=entry.place,
        claim=entry.statement,
        published=entry.published,
        recomputed=finding.recomputed,
        verdict=finding.verdict,
        why=finding.why,
        command=command,
    )


def _finding(entry: Entry, evidence: Evidence) -> Finding:
    if entry.check is None:
        return Finding(Verdict.NOT_TESTABLE, "", entry.reason or "")
    try:
        return CHECKS[entry.check](evidence, **entry.arguments)
    except MissingEvidenceError as missing:
        return Finding(Verdict.NOT_TESTABLE, "", f"Not testable here: {missing}.")
