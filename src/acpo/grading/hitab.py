"""Grade table answers (HiTab): numbers to the precision that is stated, words after folding, lists without order."""

import json
import re
import unicodedata
from collections.abc import Sequence
from fractions import Fraction

from acpo.grading.extract import LONGEST_RESPONSE, boxed, has_box, tagged
from acpo.grading.verdict import Verdict

VERSION = "hitab-1"
LONGEST_ANSWER = 2000
MOST_ITEMS = 100
FEWEST_DECIMALS = 2
_NUMBER = re.compile(r"([-+]?)(\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE]([-+]?\d{1,3}))?", re.ASCII)
_SUPERSCRIPT = re.compile("[²³¹⁰⁴-⁹]")
_WORDS_LIKE_SIGNS = re.compile(r"\s+(?:percent|per cent|dollars?)$")
_GROUPED = re.compile(r"(?<![\d.])\d{1,3}(?:([, ])\d{3}(?:\1\d{3})*)(?![\d])")
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_SIGNS = str.maketrans({"−": "-", "–": "-", "—": "-", "‑": "-", "’": "'", "‘": "'", "“": '"', "”": '"', "\x00": ""})
_TEX = re.compile(r"\\(?:text|mathrm|textbf|mathbf)\s*\{([^{}]*)\}")
_ARTICLE = re.compile(r"^(?:the|a|an)\s+(?=\S)")

Gold = str | int | float


def fold(text: str) -> str:
    """Fold an answer or a gold: NFKC, case, spaces, TeX wrappers and escapes, quotes, trailing punctuation."""
    text = _SUPERSCRIPT.sub(lambda match: "^" + unicodedata.normalize("NFKC", match.group()), text)
    text = unicodedata.normalize("NFKC", text.translate(_SIGNS)).translate(_SIGNS)
    text = _TEX.sub(r"\1", text).replace("\\$", "$").replace("\\%", "%").replace("\\&", "&").replace("\\,", " ")
    text = text.replace("{,}", ",").replace("\\", " ")
    text = " ".join(text.split()).casefold().strip(" \"'`*")
    return re.sub(r"[.;,]+$", "", text).strip()


def number(text: str) -> tuple[Fraction, int] | None:
    """Read a folded number: (value, decimals written); None where it is not one number and nothing else.

    Accepted around the digits: sign, currency, thousands separators (comma or space), percent, a scale word.
    """
    text = _WORDS_LIKE_SIGNS.sub("", text)
    text = text.replace("$", "").replace("€", "").replace("£", "").replace("%", "").strip()
    head, _, last = text.rpartition(" ")
    scale = _SCALES.get(last, 1) if head else 1
    text = head if scale != 1 else text
    text = _GROUPED.sub(lambda match: re.sub("[, ]", "", match.group()), text.replace("- ", "-"))
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    sign, digits, exponent = match.groups()
    value = Fraction(digits.rstrip(".") or "0") * Fraction(10) ** int(exponent or 0) * scale
    decimals = len(digits.partition(".")[2])
    return (-value if sign == "-" else value), decimals


def _plain(gold: Gold) -> str:
    if isinstance(gold, bool) or not isinstance(gold, int | float):
        return fold(str(gold))
    return str(gold) if isinstance(gold, int) or not float(gold).is_integer() else str(int(gold))


def same_number(predicted: tuple[Fraction, int], gold: tuple[Fraction, int]) -> bool:
    """Compare numbers: equal, or equal when the finer one is rounded to the coarser, at two decimals or more.

    Where the gold itself has fewer decimals, the prediction rounded to the gold's precision must be the gold.
    """
    (value, decimals), (wanted, wanted_decimals) = predicted, gold
    if value == wanted:
        return True
    if wanted_decimals and decimals > wanted_decimals:
        return _rounds_to(value, wanted, wanted_decimals)
    return FEWEST_DECIMALS <= decimals < wanted_decimals and _rounds_to(wanted, value, decimals)


def _rounds_to(fine: Fraction, coarse: Fraction, decimals: int) -> bool:
    return abs(fine - coarse) * 2 * 10**decimals <= 1


def same_item(predicted: str, gold: Gold) -> bool:
    """Compare one folded item with one gold value: as numbers where both are, else as words."""
    wanted = _plain(gold)
    if not wanted:
        return False
    if predicted == wanted:
        return True
    numbers = number(predicted), number(wanted)
    if numbers[0] is not None and numbers[1] is not None:
        return same_number(numbers[0], numbers[1])
    return _ARTICLE.sub("", predicted) == _ARTICLE.sub("", wanted)


def _splits(text: str, count: int) -> list[list[str]]:
    """Ways to read a folded answer as `count` items; thousands separators are no list separators where that fits."""
    if count == 1:
        return [[text]]
    bare = text.strip("[](){}")
    ways = [
        re.split(pattern, bare)
        for pattern in (
            r"\s*;\s*",
            r"\s*,\s+(?:and\s+)?|\s+and\s+",
            r"\s*,\s*(?:and\s+)?|\s+and\s+",
            r"\s*\n\s*",
            r",\s+",
            r"\s*\|\s*",
        )
    ]
    cleaned = [[item.strip(" \"'.") for item in way if item.strip()] for way in ways]
    return [way for way in cleaned if len(way) == count]


def _matches(items: list[str], golds: Sequence[Gold]) -> bool:
    rest = list(golds)
    for item in items:
        for place, gold in enumerate(rest):
            if same_item(item, gold):
                del rest[place]
                break
        else:
            return False
    return not rest


def write_gold(answers: Sequence[Gold]) -> str:
    """Write a gold: the JSON list that the data set has."""
    return json.dumps(list(answers), ensure_ascii=False)


def read_gold(gold: str) -> list[Gold]:
    """Read a gold: a JSON list, or one bare value."""
    try:
        content = json.loads(gold)
    except json.JSONDecodeError:
        return [gold]
    return content if isinstance(content, list) else [content]


def grade(response: str, gold: str) -> Verdict:
    """Grade the last `<answer>` or box outside `<think>`."""
    found = tagged(response)
    if found.text is None:
        return Verdict(False, None, found.how)
    shown, golds = found.text[:200], read_gold(gold)
    if len(found.text) > LONGEST_ANSWER or len(golds) > MOST_ITEMS:
        return Verdict(False, shown, "the answer is too long")
    if not golds or any(not _plain(each) for each in golds):
        return Verdict(False, shown, "the gold answer is empty: no response can be right")
    text = fold("; ".join(found.text.splitlines()) if "\n" in found.text.strip() else found.text)
    if any(_matches(items, golds) for items in _splits(text, len(golds))):
        return Verdict(True, shown, "match")
    return Verdict(False, shown, "different")


def grade_released(response: str, gold: str) -> Verdict:
    """Grade by exact match: the text in one case must be the gold's, items joined by a comma and a space.

    The authors publish no HiTab scorer; this is the strict exact match of the table-QA code that their data format
    comes from.
    """
    found = tagged(response[-LONGEST_RESPONSE:]) if not has_box(response) else boxed(response)
    wanted = ", ".join(str(each) for each in read_gold(gold)).casefold().strip()
    text = (found.text or "").casefold().strip()
    return Verdict(bool(text) and text == wanted, found.text and found.text[:200], "released: exact match")
