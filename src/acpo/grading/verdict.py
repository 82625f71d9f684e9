"""What a grader says of one response."""

from dataclasses import dataclass

TIMEOUT, MEMORY, CRASHED, GRADER_ERROR = "timeout", "memory", "crashed", "grader error"
UNDECIDED = (TIMEOUT, MEMORY, CRASHED, GRADER_ERROR)
"""How reasons begin that say nothing of the answer: the grader stopped before it decided. They count as wrong."""


@dataclass(frozen=True)
class Verdict:
    """What a grader says of one response: right or wrong, the answer it found (None: no answer), and why."""

    correct: bool
    extracted: str | None
    reason: str
