"""Find the final answer in a response: the last complete box, answer tags, or the last explicit statement."""

import re
from dataclasses import dataclass

BOX = re.compile(r"\\(?:boxed|fbox)\s*\{")
_CUT_BOX = re.compile(r"\\(?:boxed|fbox)\s*\Z")
_MOST_UNCLOSED = 8
_BOX_WORDS = ("\\boxed", "\\fbox")
_BRACE = re.compile(r"\\[\\{}]|[{}]")
_BETWEEN_BOXES = re.compile(r"(?:[\s$.~]|\\[,;:!() ]|\\q?quad|\\text\{[\s,;]*(?:and|or)?\s*\}|\band\b|\bor\b|[,;&])*")
_LIST_WORD = re.compile(r"[,;&]|\band\b|\bor\b")
_STATEMENT = re.compile(r"\banswers?\b\W{0,6}?(?:(?:is|are)\b\s*:?|[:=：])", re.IGNORECASE)
_CLAUSE = re.compile(r"[,;]?\s+(?:because|since|as|which|where|so|when|but|would)\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)")
_MATHS_END = re.compile(r"\n|\$|\\\\[\])]")
_THINK = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
LONGEST_STATEMENT = 2000
LONGEST_RESPONSE = 1_000_000
MOST_LISTED = 1000


@dataclass(frozen=True)
class Found:
    """An answer found in a response; `text` is None when there is none, and `how` says why."""

    text: str | None
    how: str


def _close(text: str, start: int, limit: int | None = None) -> int:
    """Return where the brace group that opened before `start` closes (the index of its brace), or -1."""
    depth = 1
    for match in _BRACE.finditer(text, start, len(text) if limit is None else limit):
        mark = match.group()
        if mark == "{":
            depth += 1
        elif mark == "}":
            depth -= 1
            if depth == 0:
                return match.start()
    return -1


def _top_level_boxes(text: str) -> list[tuple[int, int, int]] | None:
    """List (start, content start, content end) of the outermost boxes; None: the last is unclosed.

    An unclosed box with a later box in the same piece of mathematics holds that box: the outer one was cut off.
    Elsewhere it is an earlier slip, and the later box stands for itself.
    """
    boxes, position, unclosed = [], 0, 0
    last = max(text.rfind(word) for word in _BOX_WORDS)
    while match := BOX.search(text, position):
        end = _close(text, match.end())
        if end < 0:
            unclosed += 1
            if unclosed > _MOST_UNCLOSED or not _MATHS_END.search(text, match.end(), max(last, match.end())):
                return None
            position = match.end()
            continue
        boxes.append((match.start(), match.end(), end))
        position = end
    return boxes


def _last_box(text: str) -> tuple[int, int, int] | None:
    """Return the last box where that needs no pass over the whole text, else None."""
    start = max(text.rfind(word) for word in _BOX_WORDS)
    match = BOX.match(text, start)
    if match is None:
        return None
    end = _close(text, match.end())
    before = max(text.rfind(word, 0, start) for word in _BOX_WORDS)
    if end < 0:
        return None
    if before >= 0:
        previous = BOX.match(text, before)
        if previous is None or _close(text, previous.end(), start) < 0:
            return None
    return start, match.end(), end


def unwrap(content: str) -> str:
    """Take the boxes off a content that is nothing but a box."""
    content = content.strip()
    while (match := BOX.match(content)) and _close(content, match.end()) == len(content) - 1:
        content = content[match.end() : -1].strip()
    return content


def _join_listed(text: str, boxes: list[tuple[int, int, int]]) -> str:
    r"""Join the boxes that form one list with the last (`\boxed{3}, \boxed{5} and \boxed{7}`).

    Only an explicit list separator joins; two boxes with words or nothing between them are two answers, and the
    last decides.
    """
    listed = [boxes[-1]]
    for earlier in reversed(boxes[:-1]):
        between = text[earlier[2] + 1 : listed[-1][0]]
        if (
            len(listed) == MOST_LISTED
            or len(between) > 40
            or not _BETWEEN_BOXES.fullmatch(between)
            or not _LIST_WORD.search(between)
        ):
            break
        listed.append(earlier)
    contents = [unwrap(text[first:end]) for _, first, end in reversed(listed)]
    distinct = list(dict.fromkeys(contents))
    return ", ".join(distinct)


def has_box(text: str) -> bool:
    """Say whether a text mentions a box at all, closed or not."""
    return any(word in text for word in _BOX_WORDS)


def boxed(text: str) -> Found:
    """Extract the last box of a text.

    The last box decides; adjacent boxes joined by list separators are one list. An unclosed last box is no answer:
    the generation was cut inside it, and no earlier box is taken instead. Of a response longer than LONGEST_RESPONSE
    only the end is read.
    """
    text = text[-LONGEST_RESPONSE:]
    last = _last_box(text)
    if last is not None and text.find("\\", 0, last[0]) < 0:
        return _found(unwrap(text[last[1] : last[2]]))
    boxes = _top_level_boxes(text) if last is None or _listed_before(text, last[0]) else [last]
    if boxes is None or _CUT_BOX.search(text[-40:]):
        return Found(None, "the last box is not closed")
    if not boxes:
        return Found(None, "no complete box")
    return _found(_join_listed(text, boxes))


def _listed_before(text: str, start: int) -> bool:
    return "}" in text[max(0, start - 42) : start]


def _found(content: str) -> Found:
    return Found(content, "box") if content else Found(None, "empty box")


def _first_line(text: str) -> str:
    """Take the first line of a statement that holds an answer, skipping blank and label-only lines."""
    for line in text[:LONGEST_STATEMENT].splitlines():
        bare = line.strip(" \t*_#>")
        if bare and not set(bare) <= set("\\[]()$"):
            return bare
    return ""


def stated(text: str) -> Found:
    """Extract the last explicit statement: `Answer: X`, `The answer is X`, `**Final Answer: X**`."""
    matches = list(_STATEMENT.finditer(text[-20 * LONGEST_STATEMENT :]))
    if not matches:
        return Found(None, "no box and no stated answer")
    line = _first_line(text[-20 * LONGEST_STATEMENT :][matches[-1].end() :])
    sentence = _SENTENCE_END.search(line)
    if sentence:
        line = line[: sentence.start()]
    clause = _CLAUSE.search(line)
    if clause:
        line = line[: clause.start()]
    line = re.sub(r"\*\*|\\[\[\]()]|</?\w+>|\$", " ", line).strip(" \t:*_`\"'")
    return Found(line, "statement") if line else Found(None, "the statement is empty")


def tagged(text: str) -> Found:
    """Extract the last complete `<answer>...</answer>` outside `<think>`, or the last box there.

    Whichever ends later decides. An unclosed last tag is no answer, as an unclosed box is none.
    """
    text = text[-LONGEST_RESPONSE:]
    outside = _THINK.sub(" ", text) if "<think>" in text else text
    if "</think>" in outside:
        outside = outside[outside.rindex("</think>") + len("</think>") :]
    opening = outside.rfind("<answer>")
    box = max(outside.rfind(word) for word in _BOX_WORDS)
    if opening < 0 and box < 0:
        return Found(None, "no answer tag and no box")
    closing = outside.find("</answer>", opening) if opening >= 0 else -1
    if opening > box or (opening >= 0 and closing > box):
        if closing < 0:
            return Found(None, "the last answer tag is not closed")
        content = outside[opening + len("<answer>") : closing].strip()
        if has_box(content):
            return boxed(content)
        return Found(content, "tag") if content else Found(None, "empty answer tag")
    return boxed(outside)
