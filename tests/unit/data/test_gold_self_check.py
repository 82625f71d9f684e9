"""Every gold of every benchmark, boxed, is right against itself; with one digit changed it is wrong."""

import json
import re

import pytest

from acpo.data.fetch import find_in_mirror
from acpo.data.registry import source
from acpo.grading import hitab as hitab_grader
from acpo.grading import math as math_grader
from acpo.tasks import load_task

COUNTS = {
    "math500": 500, "aime24": 30, "aime24_released": 30, "aime25": 30, "amc": 83, "amc23": 40, "minerva": 272,
    "olympiad": 675, "orz57k_prefix": 1785,
}  # fmt: skip


def mutated(text: str) -> str | None:
    """Change the first digit that is not zero to the next one, so that the change is beyond every tolerance."""
    found = re.search("[1-9]", text)
    return text[: found.start()] + str(int(found.group()) % 9 + 1) + text[found.end() :] if found else None


def golds(task: str, split: str, mirror) -> list[str]:
    made = load_task(task)
    files = {key: find_in_mirror(source(key), mirror) for key in made.sources(split)}
    return [problem.gold for problem in made.problems(split, 0, files)]


@pytest.mark.parametrize("split", COUNTS)
def test_math_golds(split, mirror):
    found = golds("math", split, mirror)
    assert len(found) == COUNTS[split]
    texts = [", ".join(json.loads(gold)["answers"]) for gold in found]
    itself = list(math_grader.grade_many((f"\\boxed{{{text}}}", gold) for text, gold in zip(texts, found, strict=True)))
    wrong = [(text, verdict) for text, verdict in zip(texts, itself, strict=True) if not verdict.correct]
    changed = [(mutated(text), gold) for text, gold in zip(texts, found, strict=True) if mutated(text)]
    verdicts = list(math_grader.grade_many((f"\\boxed{{{text}}}", gold) for text, gold in changed))
    fooled = [(*pair, verdict) for pair, verdict in zip(changed, verdicts, strict=True) if verdict.correct]
    counts = len(itself) - len(wrong), len(itself), len(changed) - len(fooled), len(changed)
    print("{}: {}/{} right, {}/{} with a changed digit wrong".format(split, *counts))
    assert wrong == []
    assert fooled == []


@pytest.mark.parametrize("split", ["test", "test_released", "test300"])
def test_hitab_golds(split, mirror):
    found = golds("hitab", split, mirror)
    assert len(found) == (300 if split == "test300" else 1584)
    fooled = []
    for gold in found:
        text = "; ".join(str(answer) for answer in json.loads(gold))
        assert hitab_grader.grade(f"<answer>{text}</answer>", gold).correct, gold
        other = mutated(text)
        if other and hitab_grader.grade(f"<answer>{other}</answer>", gold).correct:
            fooled.append((gold, other))
    assert fooled == []
