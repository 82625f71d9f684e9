"""Sampled responses with their verdicts, packed question by question, as many questions as a budget allows."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any

from acpo.cells import Cell, cell_seeds
from acpo.evaluation import KEY
from acpo.report.explorer.packing import compact, pack
from acpo.report.explorer.questions import Graded, Place
from acpo.report.sources import Results
from acpo.results import SAMPLE_SCHEMA, VERDICT_SCHEMA
from acpo.stats.raw import NEEDED
from acpo.store import read_table

BUDGET = 5_000_000
"""How many bytes of the page responses may take."""
TOKENS_PER_BYTE = 8
"""How many tokens of responses a packed byte holds at the most: what cannot fit is not read."""
FACTS = ("response", "correct", "extracted", "reason", "response_tokens", "finish_reason")

Question = tuple[Place, str]
Samples = dict[str, list[tuple[Any, ...]]]
"""By cell/seed/checkpoint: its samples' `FACTS`, in order."""


@dataclass(frozen=True)
class Packed:
    """Packed responses by place and index of the question, and which questions of each place they are."""

    blocks: dict[str, dict[str, str]]
    shown: dict[Place, list[str]]


def pack_responses(results: Results, graded: Graded, budget: int = BUDGET) -> Packed:
    """Pack the responses of the first questions of `drawing_order` that fit the budget together.

    Args:
        results: Where the stores are.
        graded: What has been graded.
        budget: How many bytes they may take, as packed.
    """
    candidates = _affordable(graded, budget)
    found = _read(results, graded, candidates)
    blocks: dict[str, dict[str, str]] = {"/".join(place): {} for place in graded.questions}
    shown: dict[Place, list[str]] = {place: [] for place in graded.questions}
    index = {(place, problem.id): str(number) for place, problems in graded.questions.items() for number, problem in
             enumerate(problems)}  # fmt: skip
    spent = 0
    for place, question in candidates:
        block = pack(compact(_intern(found[place, question])))
        spent += len(block)
        if spent > budget:
            break
        blocks["/".join(place)][index[place, question]] = block
        shown[place].append(question)
    return Packed(blocks, shown)


def drawing_order(graded: Graded) -> Iterator[Question]:
    """Yield all questions, one of each benchmark in turn, each benchmark's by the hash of their ids."""
    ordered = [
        sorted(((place, problem.id) for problem in problems), key=lambda question: _hash(question[1]))
        for place, problems in graded.questions.items()
    ]
    return (question for question in chain.from_iterable(zip_longest(*ordered)) if question)


def _hash(question: str) -> bytes:
    return hashlib.sha256(question.encode("utf-8")).digest()


def _affordable(graded: Graded, budget: int) -> list[Question]:
    """Return the first questions, at least one, whose responses may fit."""
    chosen: list[Question] = []
    tokens = 0
    for place, question in drawing_order(graded):
        tokens += int(graded.tokens[place][question])
        if chosen and tokens > budget * TOKENS_PER_BYTE:
            break
        chosen.append((place, question))
    return chosen


def _read(results: Results, graded: Graded, questions: list[Question]) -> Mapping[Question, Samples]:
    found: dict[Question, Samples] = {question: {} for question in questions}
    for cell in graded.cells():
        for seed in cell_seeds(results.study, cell):
            for (benchmark, checkpoint, question), facts in _samples(results, cell, seed):
                samples = found.get(((cell.suite, benchmark), question))
                if samples is not None:
                    samples.setdefault(f"{cell}/{seed}/{checkpoint}", []).append(facts)
    return found


def _samples(results: Results, cell: Cell, seed: int) -> Iterator[tuple[tuple[str, str, str], tuple[Any, ...]]]:
    run = results.root / "runs" / str(cell) / f"seed{seed}"
    if not all((run / name).exists() for name in NEEDED):
        return
    verdicts = read_table(run / "verdicts.parquet", VERDICT_SCHEMA)
    rows = read_table(run / "samples.parquet", SAMPLE_SCHEMA).merge(verdicts, on=KEY, validate="one_to_one")
    rows = rows.sort_values(KEY)
    columns = [rows[name].astype(object).where(rows[name].notna(), None).tolist() for name in FACTS]
    keys = [rows[name].tolist() for name in ("benchmark", "checkpoint", "question")]
    yield from zip(zip(*keys, strict=True), zip(*columns, strict=True), strict=True)


def _intern(samples: Samples) -> dict[str, Any]:
    """Keep each distinct sample once: `seen`, and by run their places in it."""
    places: dict[tuple[Any, ...], int] = {}
    runs = {run: [places.setdefault(facts, len(places)) for facts in found] for run, found in samples.items()}
    return {"seen": list(places), "runs": runs}
