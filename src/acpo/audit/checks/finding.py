"""What a check answers."""

from dataclasses import dataclass

from acpo.audit.verdict import Verdict


@dataclass(frozen=True)
class Finding:
    """A verdict on the study at hand, with the numbers that it rests on, in words."""

    verdict: Verdict
    recomputed: str
    why: str


def holds(condition: object, recomputed: str, why: str, otherwise: Verdict = Verdict.NOT_REPRODUCED) -> Finding:
    """Make a finding: reproduced where the condition is true."""
    return Finding(Verdict.REPRODUCED if condition else otherwise, recomputed, why)
