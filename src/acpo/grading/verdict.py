"""What a grader says of one response."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """What a grader says of one response: right or wrong, the answer it found (None: no answer), and why."""

    correct: bool
    extracted: str | None
    reason: str
