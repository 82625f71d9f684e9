"""Grade mathematical answers: ordinary ones in microseconds here, the rest in a killable pool.

Order: extraction, exact string, integer, fraction (this file); reading and comparing both sides, math-verify for
what this package does not read (`symbolic`, in the pool). Nothing is ever evaluated as code.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from acpo.grading.extract import Found, boxed, has_box, stated
from acpo.grading.normalize import LONGEST_ANSWER, canonical, fold
from acpo.grading.pool import Pool, shared
from acpo.grading.verdict import Verdict

VERSION = "math-1"
SCIENTIFIC_TOLERANCE = "1e-4"
BATCH = 512
_INTEGER = re.compile(r"[-+]?\d{1,40}(?:\.0{1,20})?")
_RATIONAL = re.compile(
    r"([-+]?)(?:(\d{0,40}\.\d{1,40})|(?:\\[dt]?frac\{(\d{1,40})\}\{(\d{1,40})\}|(\d{1,40})/(\d{1,40})))"
)
_SCIENTIFIC = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)[eE][-+]?\d+")
_FIELDS = frozenset({"answers", "absolute", "relative", "integers", "unit", "several"})


@dataclass(frozen=True)
class Gold:
    """The right answers of one question and what its benchmark says about comparing them.

    Attributes:
        answers: One answer, or all of them where a question has several.
        absolute: Absolute tolerance, as a decimal.
        relative: Relative tolerance, as a decimal.
        integers: Lowest and highest integer allowed.
        unit: Unit that the answers leave out.
        several: Whether the question has several answers.
    """

    answers: tuple[str, ...]
    absolute: str | None = None
    relative: str | None = None
    integers: tuple[int, int] | None = None
    unit: str | None = None
    several: bool = False
    rational: Fraction | None = None
    canonical: str = ""

    def job(self, predicted: str) -> dict[str, Any]:
        """Describe the slow path of one prediction to a worker."""
        return {
            "predicted": predicted,
            "golds": list(self.answers),
            "absolute": self.absolute,
            "relative": self.relative,
            "integers": self.integers,
            "unit": self.unit,
            "several": self.several,
        }


def write_gold(answers: list[str], **properties: Any) -> str:
    """Write a gold as the JSON text that the grader reads; properties are those of `Gold`, None left out.

    Raises:
        ValueError: a property that `Gold` does not have.
    """
    unknown = set(properties) - _FIELDS
    if unknown:
        raise ValueError(f"a math gold has no {', '.join(sorted(unknown))}; known: {', '.join(sorted(_FIELDS))}")
    kept = {key: value for key, value in properties.items() if value}
    return json.dumps({"answers": answers, **kept}, ensure_ascii=False)


@lru_cache(maxsize=65536)
def read_gold(gold: str) -> Gold:
    """Read a gold: the JSON text of `write_gold`, or a bare answer.

    A bare answer in scientific notation (`4.5e33`) has the relative tolerance 1e-4; any other is exact.
    """
    fields: dict[str, Any] = {"answers": [gold]}
    if gold.lstrip().startswith('{"answers"'):
        fields = json.loads(gold)
    elif _SCIENTIFIC.fullmatch(gold.strip()):
        fields["relative"] = SCIENTIFIC_TOLERANCE
    answers = tuple(str(answer) for answer in fields.pop("answers") if str(answer).strip())
    if fields.get("integers"):
        fields["integers"] = tuple(fields["integers"])
    single = answers[0] if len(answers) == 1 else ""
    folded = fold(single)
    return Gold(answers, **fields, rational=rational(single.strip()), canonical=canonical(folded))


def rational(text: str) -> Fraction | None:
    """Read a plain integer, decimal or fraction exactly; None for anything else."""
    if _INTEGER.fullmatch(text):
        return Fraction(int(text.partition(".")[0]))
    match = _RATIONAL.fullmatch(text)
    if match is None:
        return None
    sign, decimal, top, bottom, upper, lower = match.groups()
    if decimal:
        value = Fraction(decimal if decimal[0] != "." else "0" + decimal)
    else:
        denominator = int(bottom or lower)
        if denominator == 0:
            return None
        value = Fraction(int(top or upper), denominator)
    return -value if sign == "-" else value


def extract(response: str) -> Found:
    """Find the answer in a response: its last box, or without any box its last explicit statement."""
    return boxed(response) if has_box(response) else stated(response)


def _quick(text: str, gold: Gold) -> Verdict | None:
    """Decide what needs no reading of mathematics; None: the slow path must."""
    value = rational(text)
    if value is not None and gold.rational is not None:
        return _compare_numbers(text, value, gold)
    if len(text) > LONGEST_ANSWER:
        return Verdict(False, text[:100], "the answer is too long")
    if gold.canonical and gold.integers is None and canonical(fold(text)) == gold.canonical:
        return Verdict(True, text, "exact")
    return None


def _compare_numbers(text: str, value: Fraction, gold: Gold) -> Verdict | None:
    assert gold.rational is not None
    low, high = gold.integers or (value, value)
    if not low <= value <= high:
        return Verdict(False, text, f"not an integer from {low} to {high}")
    if value == gold.rational:
        return Verdict(True, text, "equal")
    if gold.absolute or gold.relative or gold.unit:
        return None
    return Verdict(False, text, "different")


def _begin(response: str, gold_text: str) -> Verdict | tuple[str, Gold]:
    gold = read_gold(gold_text)
    if not gold.answers:
        return Verdict(False, None, "the gold answer is empty: no response can be right")
    found = extract(response)
    if found.text is None:
        return Verdict(False, None, found.how)
    return _quick(found.text, gold) or (found.text, gold)


def grade(response: str, gold: str, pool: Pool | None = None) -> Verdict:
    """Grade one response.

    Args:
        response: The model's text.
        gold: A gold as `read_gold` reads it.
        pool: Where the slow path runs; the shared pool of this process by default.
    """
    return next(grade_many([(response, gold)], pool))


def grade_many(pairs: Iterable[tuple[str, str]], pool: Pool | None = None) -> Iterator[Verdict]:
    """Grade (response, gold) pairs in order, the slow ones on all workers of the pool."""
    batch: list[Verdict | tuple[str, Gold]] = []
    for pair in pairs:
        batch.append(_begin(*pair))
        if len(batch) == BATCH:
            yield from _end(batch, pool)
            batch = []
    yield from _end(batch, pool)


def _end(batch: list[Verdict | tuple[str, Gold]], pool: Pool | None) -> Iterator[Verdict]:
    waiting = [each for each in batch if isinstance(each, tuple)]
    outcomes = iter(list((pool or shared()).map([gold.job(text) for text, gold in waiting])) if waiting else [])
    for each in batch:
        if isinstance(each, tuple):
            correct, reason = next(outcomes)
            yield Verdict(correct, each[0], reason)
        else:
            yield each


def grade_released(response: str, gold: str, pool: Pool | None = None) -> Verdict:
    """Grade as the released scorer does: math-verify on the whole text, the gold between dollars, no repair.

    What the local service of the authors would have answered when it is up. Several golds are joined by commas.
    """
    answer = ", ".join(read_gold(gold).answers)
    correct, reason = (pool or shared()).run(
        {"kind": "library", "predicted": response[-LONGEST_ANSWER:], "gold": f"${answer}$"}
    )
    return Verdict(correct, extract(response).text, f"released: {reason}")
