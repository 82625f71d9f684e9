"""How a row about published numbers is made."""

from acpo.audit.published import Number
from acpo.audit.scores import SLACK
from acpo.audit.verdict import Row, Verdict

COMMAND = "snakemake --cores 1 audit"


def claim(
    name: str, place: str, text: str, *, published: str, recomputed: str, verdict: Verdict | bool, why: str
) -> Row:
    """Make a row. A verdict of True is `reproduced`, one of False `not reproduced`."""
    if not isinstance(verdict, Verdict):
        verdict = Verdict.REPRODUCED if verdict else Verdict.NOT_REPRODUCED
    return Row(
        id=name, place=place, claim=text, published=published, recomputed=recomputed, verdict=verdict, why=why,
        command=COMMAND,
    )  # fmt: skip


def rounds_to(value: float, said: Number) -> bool:
    """Say whether a value is the published one to its printed digits; halves may round either way."""
    return bool(abs(value - said.value) <= said.rounding + SLACK)
