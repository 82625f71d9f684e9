"""The token store: every token of the updates of chosen rollouts, for the probes."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from acpo.engines.tiny.rollout import Rollout
from acpo.engines.token_table import token_rows
from acpo.objectives import TokenBatch
from acpo.results import TOKEN_SCHEMA
from acpo.store import write_table


def write_tokens(
    path: Path,
    run: str,
    number: int,
    rollout: Rollout,
    updates: Sequence[tuple[int, slice, Sequence[TokenBatch]]],
) -> None:
    """Write the tokens of a rollout as each update saw them.

    Where a rollout begins a new pass over the training set a question can stand in it twice; the samples of its
    second group are numbered on from those of the first.

    Args:
        path: The parquet file (`acpo.results.TOKEN_SCHEMA`).
        run: Cell and seed.
        number: Which rollout, from 1.
        rollout: The rollout.
        updates: For each update its number, its responses, and its token batches.
    """
    samples = len(rollout.reward) // len(rollout.problems)
    questions = [problem.id for problem in rollout.problems]
    first_sample = [count * samples for count in _occurrences(questions)]
    frames = []
    for update, rows, batches in updates:
        start = rows.start
        for batch in batches:
            part = range(start, start + len(batch.mask))
            start = part.stop
            frame = token_rows(
                batch,
                rollout.responses.tokens[part.start : part.stop],
                [questions[i // samples] for i in part],
                [first_sample[i // samples] + i % samples for i in part],
            )
            frames.append(frame.assign(run=run, rollout=number, update=update))
    write_table(path, pd.concat(frames, ignore_index=True), TOKEN_SCHEMA)


def _occurrences(questions: Sequence[str]) -> list[int]:
    """Count for each question how often it stood earlier in the list."""
    seen: dict[str, int] = {}
    counts = []
    for question in questions:
        counts.append(seen.get(question, 0))
        seen[question] = counts[-1] + 1
    return counts
