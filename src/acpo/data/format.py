"""Write the problems of a split as parquet in verl's schema, with a manifest of origins and of what was dropped."""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal

from acpo.data.problems import Row, problem_row, write_rows
from acpo.data.prompts import Message, Style, messages
from acpo.data.registry import source
from acpo.data.verify import DataError, verify
from acpo.progress import Progress
from acpo.provenance import file_hash
from acpo.results import DATA_SCHEMA, Record
from acpo.store import write_json
from acpo.tasks import load_task
from acpo.tasks.base import Problem, Task

_PIECE = re.compile(r"\d|[^\W\d_]+|[^\s\w]|_")
LETTERS_PER_TOKEN = 4


class SourceFile(Record):
    """A raw file that a split was made from."""

    key: str
    url: str
    sha256: str
    licence: str
    citation: str
    profile: str
    note: str


class DataManifest(Record):
    """`<split>.manifest.json`: what is in the parquet file beside it, and why.

    `dropped` counts rows by the filter that dropped them; `repeated` counts repeated questions (dropped only where
    the split is trained on), of which `conflicting` have different golds; `notes` counts rows with a remark, which
    are kept.
    """

    schema_version: Literal[1] = 1
    task: str
    split: str
    rows: int
    columns: dict[str, str]
    prompt_style: str
    root_seed: int
    limit: int | None
    longest_prompt: int | None
    length_measure: str
    dropped: dict[str, int]
    repeated: int
    conflicting: int
    notes: dict[str, int]
    grader_version: str
    ids_sha256: str
    sources: list[SourceFile]


def approximate_tokens(text: str) -> int:
    """Estimate tokens without a tokenizer, rather too many: digits and marks one each, every four letters one."""
    return sum(-(-len(piece) // LETTERS_PER_TOKEN) for piece in _PIECE.findall(text))


@dataclass(frozen=True)
class Plan:
    """How a split is to be formatted.

    Attributes:
        task: Task name.
        split: Split of the task.
        root_seed: Root of random choices.
        style: Prompt style; None: the task's own.
        limit: Keep only the first rows, for trial runs.
        longest_prompt: Tokens that a prompt may have. A longer one is shortened where its task can; where not, it is
            dropped from a split that is trained on, and kept and counted in any other: a benchmark stays whole.
        measure: Counts the tokens of a prompt.
        measure_name: What `measure` is, for the manifest.
    """

    task: str
    split: str
    root_seed: int
    style: Style | None = None
    limit: int | None = None
    longest_prompt: int | None = None
    measure: Callable[[str], int] = approximate_tokens
    measure_name: str = "estimate without a tokenizer"


@dataclass
class _Kept:
    """What passed the filters, and the counts of what did not."""

    rows: list[Row] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    seen: dict[str, str] = field(default_factory=dict)
    repeated: int = 0
    conflicting: int = 0


_LAYOUT = re.compile(r"[\s${}]|\\[()\[\],;:! ]|\\(?:left|right)(?![A-Za-z])")


def question_key(text: str) -> str:
    """Reduce a question to what makes it the same question: its characters in one case, without layout."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return hashlib.sha256(_LAYOUT.sub("", folded).encode()).hexdigest()


def format_split(plan: Plan, files: Mapping[str, Path], output: Path) -> DataManifest:
    """Format one split.

    Args:
        plan: What to make.
        files: Where each raw file of `Task.sources` lies; each is verified first.
        output: The parquet file; the manifest is written beside it, last.

    Returns:
        The manifest.

    Raises:
        DataError: a raw file is missing or wrong, or the split would be empty.
        ConfigError: no such task or split.
    """
    task = load_task(plan.task)
    keys = task.sources(plan.split)
    for key in keys:
        if key not in files:
            raise DataError(f"{plan.task}/{plan.split}: the file of {key!r} was not given; fetch it first")
        verify(source(key), files[key])
    kept = _filter(task, plan, task.problems(plan.split, plan.root_seed, files))
    if not kept.rows:
        raise DataError(f"{plan.task}/{plan.split}: no rows are left; dropped: {dict(kept.dropped) or 'none'}")
    write_rows(output, kept.rows)
    manifest = _manifest(task, plan, kept, {key: files[key] for key in keys})
    write_json(output.with_suffix(".manifest.json"), manifest)
    return manifest


def _filter(task: Task, plan: Plan, problems: Iterator[Problem]) -> _Kept:
    kept, style = _Kept(), plan.style or task.prompt_style
    training = plan.split in task.training_splits
    with Progress(f"format {plan.task}/{plan.split}", plan.limit or 1, unit="rows") as progress:
        for problem in problems:
            if plan.limit is not None and len(kept.rows) >= plan.limit:
                break
            if _repeated(problem, kept) and training:
                kept.dropped["repeated question"] += 1
                continue
            fitting = _fitting(problem, partial(messages, instruction=task.instruction, style=style), plan)
            if fitting is None and training:
                kept.dropped["over-long prompt"] += 1
                continue
            if fitting is None:
                fitting = replace(problem, notes=(*problem.notes, "over-long prompt, kept"))
            kept.notes.update(fitting.notes)
            turns = messages(fitting.prompt, task.instruction, style)
            kept.rows.append(problem_row(plan.task, task.ability, plan.split, fitting, turns, len(kept.rows)))
            if plan.limit is not None:
                progress.advance(1)
    return kept


def _repeated(problem: Problem, kept: _Kept) -> bool:
    """Count a question that was seen before."""
    key = question_key(problem.prompt)
    if key not in kept.seen:
        kept.seen[key] = problem.gold
        return False
    kept.repeated += 1
    kept.conflicting += kept.seen[key] != problem.gold
    return True


def _fitting(problem: Problem, write: Callable[[str], list[Message]], plan: Plan) -> Problem | None:
    """Return the problem if its prompt is short enough, else the shorter version that its task makes, else None."""

    def fits(prompt: str) -> bool:
        length = plan.measure("\n".join(turn["content"] for turn in write(prompt)))
        return plan.longest_prompt is None or length <= plan.longest_prompt

    if fits(problem.prompt):
        return problem
    return problem.shorten(fits) if problem.shorten is not None else None


def _manifest(task: Task, plan: Plan, kept: _Kept, files: Mapping[str, Path]) -> DataManifest:
    ids = "\n".join(str(row["extra_info"]["id"]) for row in kept.rows)
    return DataManifest(
        task=plan.task,
        split=plan.split,
        rows=len(kept.rows),
        columns={column.name: str(column.type) for column in DATA_SCHEMA},
        prompt_style=plan.style or task.prompt_style,
        root_seed=plan.root_seed,
        limit=plan.limit,
        longest_prompt=plan.longest_prompt,
        length_measure=plan.measure_name,
        dropped=dict(kept.dropped),
        repeated=kept.repeated,
        conflicting=kept.conflicting,
        notes=dict(kept.notes),
        grader_version=task.grader_version,
        ids_sha256=hashlib.sha256(ids.encode()).hexdigest(),
        sources=[_source_file(key, path) for key, path in files.items()],
    )


def _source_file(key: str, path: Path) -> SourceFile:
    pinned = source(key)
    return SourceFile(
        key=key,
        url=pinned.url,
        sha256=file_hash(path),
        licence=pinned.licence,
        citation=pinned.citation,
        profile=pinned.profile,
        note=pinned.note,
    )
