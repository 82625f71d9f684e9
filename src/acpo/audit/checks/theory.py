"""Derivations: what the theory rule recomputed."""

from acpo.audit.checks.finding import Finding, holds
from acpo.audit.evidence import COMMANDS, Evidence, MissingEvidenceError
from acpo.audit.verdict import Verdict


def derivation(evidence: Evidence, statement: str) -> Finding:
    """Report a statement of `results/theory/statements.json`: what agrees is reproduced, what does not, contradicted.

    Args:
        evidence: The study's results.
        statement: Its id.
    """
    content = evidence.document("theory", name="statements")
    found = {each["id"]: each for each in content["statements"]}
    if statement not in found:
        raise MissingEvidenceError(f"the statement {statement} in results/theory/statements.json", COMMANDS["theory"])
    one = found[statement]
    return holds(one["agrees"], one["recomputed"], f"{one['how']}.", otherwise=Verdict.CONTRADICTED)
