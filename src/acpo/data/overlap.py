"""Measure how much of each benchmark is in a training set: the same question, or any run of thirteen words of it."""

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from acpo.data.format import question_key
from acpo.results import Record

WORDS = 13
MOST_EXAMPLES = 20
_WORD = re.compile(r"[^\W_]+")


class Match(Record):
    """A training question that overlaps a benchmark question."""

    question: str
    training: str
    exact: bool
    shared_runs: int
    share: float


class BenchmarkOverlap(Record):
    """One benchmark: how many questions are in training exactly, and how many share a run of words with it.

    Contest boilerplate ("where m and n are relatively prime positive integers, find m + n") is a shared run, too:
    `sharing_half` counts the questions of which half the runs are in one training question.

    `longest_first` lists the matches, exact ones first, then by shared runs; it is cut at MOST_EXAMPLES, the counts
    are not.
    """

    questions: int
    exact: int
    sharing_a_run: int
    sharing_half: int
    too_short_for_a_run: int
    longest_first: list[Match]


class OverlapReport(Record):
    """Overlap of one training set with benchmarks, before any filter."""

    schema_version: int = 1
    training: str
    training_questions: int
    words_in_a_run: int = WORDS
    benchmarks: dict[str, BenchmarkOverlap]


def runs(text: str) -> Iterator[int]:
    """Yield a hash of every run of WORDS words of a text (letters and digits only, in one case)."""
    words = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
    for start in range(len(words) - WORDS + 1):
        joined = " ".join(words[start : start + WORDS])
        yield int.from_bytes(hashlib.blake2b(joined.encode(), digest_size=8).digest(), "big")


@dataclass
class _Index:
    """The benchmark questions by exact key and by run."""

    exact: dict[str, list[tuple[str, str]]]
    by_run: dict[int, set[tuple[str, str]]]
    sizes: dict[str, int]
    short: dict[str, int]
    runs: dict[tuple[str, str], int]


def _index(benchmarks: Mapping[str, Iterable[tuple[str, str]]]) -> _Index:
    index = _Index({}, {}, {}, {}, {})
    for benchmark, questions in benchmarks.items():
        index.sizes[benchmark] = index.short[benchmark] = 0
        for name, text in questions:
            index.sizes[benchmark] += 1
            index.exact.setdefault(question_key(text), []).append((benchmark, name))
            found = set(runs(text))
            index.runs[benchmark, name] = len(found)
            index.short[benchmark] += not found
            for run in found:
                index.by_run.setdefault(run, set()).add((benchmark, name))
    return index


def overlap(
    training_name: str,
    training: Iterable[tuple[str, str]],
    benchmarks: Mapping[str, Iterable[tuple[str, str]]],
) -> OverlapReport:
    """Compare a training set with benchmarks.

    Args:
        training_name: For the report.
        training: (name, question) pairs; read once, not kept.
        benchmarks: The same for each benchmark.

    Returns:
        Counts and examples by benchmark.
    """
    index = _index(benchmarks)
    best: dict[tuple[str, str], Match] = {}
    count = 0
    for name, text in training:
        count += 1
        shared: dict[tuple[str, str], int] = dict.fromkeys(index.exact.get(question_key(text), ()), 0)
        same = set(shared)
        for run in set(runs(text)):
            for question in index.by_run.get(run, ()):
                shared[question] = shared.get(question, 0) + 1
        for question, number in shared.items():
            share = number / max(1, index.runs[question])
            match = Match(
                question=question[1],
                training=name,
                exact=question in same,
                shared_runs=number,
                share=round(share, 3),
            )
            old = best.get(question)
            if old is None or (match.exact, match.shared_runs) > (old.exact, old.shared_runs):
                best[question] = match
    return OverlapReport(
        training=training_name,
        training_questions=count,
        benchmarks={benchmark: _summary(benchmark, index, best) for benchmark in index.sizes},
    )


def _summary(benchmark: str, index: _Index, best: Mapping[tuple[str, str], Match]) -> BenchmarkOverlap:
    matches = [match for (where, _), match in best.items() if where == benchmark]
    matches.sort(key=lambda match: (not match.exact, -match.shared_runs, match.question))
    return BenchmarkOverlap(
        questions=index.sizes[benchmark],
        exact=sum(match.exact for match in matches),
        sharing_a_run=sum(match.shared_runs > 0 for match in matches),
        sharing_half=sum(match.share >= 0.5 for match in matches),
        too_short_for_a_run=index.short[benchmark],
        longest_first=matches[:MOST_EXAMPLES],
    )


def as_text(report: OverlapReport) -> str:
    """Write the counts as a Markdown table."""
    lines = [
        f"Training set {report.training}: {report.training_questions:,} questions.",
        "",
        f"| benchmark | questions | same question | shares {report.words_in_a_run} words in a row | shares half "
        "of its runs |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, found in report.benchmarks.items():
        lines.append(
            f"| {name} | {found.questions:,} | {found.exact:,} | {found.sharing_a_run:,} | {found.sharing_half:,} |"
        )
    return "\n".join(lines) + "\n"
