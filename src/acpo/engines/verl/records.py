"""What a run records while verl trains it, and the files that it becomes, the same as the embedded engine's.

Each rollout has its own files, named by its number and written whole: a run that was killed and resumed writes those
of a repeated rollout again, and what lies beyond the checkpoint it resumes from is removed first. So every update
stands in the result once.

`update_000001.parquet` rows of the updates of rollout 1; `rollout_000001.json` its facts; `validation_000001.json` the
accuracy after it (0: the base model); `tokens_000001/` one file for each of its updates and ranks.
"""

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from acpo.results import TOKEN_SCHEMA, Record, metrics_schema
from acpo.store import StoreError, atomic_file, read_json, read_table, write_json, write_table

NUMBERED = re.compile(r"(?:update|rollout|validation|tokens)_(\d{6})(?:\.\w+)?")
TOKEN_ORDER = ["question", "sample", "position"]


class RolloutFacts(Record):
    """One rollout: `response_tokens` are its own; `on_policy_error` is max |rho - 1| before any update."""

    rollout: int
    reward_mean: float
    response_tokens_mean: float
    truncation_rate: float
    zero_variance_fraction: float
    response_tokens: int
    on_policy_error: float
    sampling_seconds: float
    update_seconds: float


class ValidationFacts(Record):
    """Accuracy on the validation set, a mean over all samples, after so many rollouts."""

    rollout: int
    validation: float


def write_updates(directory: Path, rollout: int, updates: Sequence[Mapping[str, Any]]) -> None:
    """Write the rows of a rollout's updates."""
    frame = pd.DataFrame(list(updates))
    write_table(directory / f"update_{rollout:06d}.parquet", frame, metrics_schema(frame))


def write_rollout(directory: Path, facts: RolloutFacts) -> None:
    """Write the facts of a rollout."""
    write_json(directory / f"rollout_{facts.rollout:06d}.json", facts)


def write_validation(directory: Path, facts: ValidationFacts) -> None:
    """Write the accuracy after a rollout."""
    write_json(directory / f"validation_{facts.rollout:06d}.json", facts)


def has_validation(directory: Path, rollout: int) -> bool:
    """Tell whether the accuracy after a rollout is recorded."""
    return (directory / f"validation_{rollout:06d}.json").exists()


def write_tokens(directory: Path, rollout: int, update: int, rank: int, tokens: pd.DataFrame) -> None:
    """Write the tokens of an update that one rank held (columns of `TOKEN_SCHEMA`)."""
    path = directory / f"tokens_{rollout:06d}" / f"update_{update:06d}_rank_{rank:04d}.parquet"
    write_table(path, tokens, TOKEN_SCHEMA)


def forget_after(directory: Path, rollout: int) -> None:
    """Remove what was recorded after a rollout, and what a killed process left half-written."""
    for path in sorted(directory.glob("*")):
        numbered = NUMBERED.fullmatch(path.name)
        if path.name.endswith(".tmp") or (numbered and int(numbered[1]) > rollout):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def read_validation(directory: Path) -> dict[int, float]:
    """Return the accuracy after each rollout at which it was measured.

    Raises:
        StoreError: a file is damaged.
    """
    facts = [read_json(path, ValidationFacts) for path in sorted(directory.glob("validation_*.json"))]
    return {fact.rollout: fact.validation for fact in facts}


def read_updates(directory: Path, rollouts: int) -> pd.DataFrame:
    """Return the rows of all updates of rollouts 1 to `rollouts`, in order.

    Raises:
        StoreError: a rollout is missing or its file is damaged.
    """
    frames = [read_table(directory / f"update_{number:06d}.parquet") for number in range(1, rollouts + 1)]
    frame = pd.concat(frames, ignore_index=True)
    if list(frame["update"]) != list(range(1, len(frame) + 1)):
        raise StoreError(f"{directory}: the updates of rollouts 1 to {rollouts} are not numbered 1 to {len(frame)}")
    return frame


def read_rollouts(directory: Path, rollouts: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the facts and the seconds of rollouts 1 to `rollouts`; the first facts are those of the base model.

    Raises:
        StoreError: a rollout is missing or its file is damaged.
    """
    numbers = range(1, rollouts + 1)
    facts = [read_json(directory / f"rollout_{number:06d}.json", RolloutFacts).model_dump() for number in numbers]
    frame = pd.DataFrame(facts)
    seconds = ["sampling_seconds", "update_seconds"]
    timings = frame[["rollout", *seconds]]
    total = frame.pop("response_tokens").cumsum()
    frame = frame.drop(columns=seconds).assign(response_tokens_total=total)
    base = pd.DataFrame([{"rollout": 0, "response_tokens_total": 0}])
    frame = pd.concat([base, frame], ignore_index=True)
    return frame.assign(validation=frame["rollout"].map(read_validation(directory)).astype(float)), timings


def collect(directory: Path, run_directory: Path, rollouts: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Make a finished run's tables of its records: metrics, rollouts, timings and token store.

    Args:
        directory: The records.
        run_directory: Where the tables go.
        rollouts: How many rollouts the run has made.

    Returns:
        The tables of updates and of rollouts.

    Raises:
        StoreError: a record is missing or damaged.
    """
    updates = read_updates(directory, rollouts)
    facts, timings = read_rollouts(directory, rollouts)
    tables = {"metrics": updates, "rollouts": facts, "timings": timings}
    for name, frame in tables.items():
        write_table(run_directory / f"{name}.parquet", frame, metrics_schema(frame))
    for tokens in sorted(directory.glob("tokens_*")):
        merge_tokens(tokens, run_directory / "tokens" / f"{tokens.name.replace('tokens', 'rollout')}.parquet")
    return updates, facts


def merge_tokens(directory: Path, path: Path) -> None:
    """Merge a rollout's tokens of all ranks into one file, update by update, so that memory holds one update."""
    updates: dict[str, list[Path]] = {}
    for part in sorted(directory.glob("update_*.parquet")):
        updates.setdefault(part.name.split("_rank_")[0], []).append(part)
    with (
        atomic_file(path) as temporary,
        pq.ParquetWriter(temporary, TOKEN_SCHEMA, compression="zstd", write_page_checksum=True) as writer,
    ):
        for parts in updates.values():
            frame = pd.concat([read_table(part, TOKEN_SCHEMA) for part in parts]).sort_values(TOKEN_ORDER)
            table = pa.Table.from_pandas(frame, schema=TOKEN_SCHEMA, preserve_index=False)
            writer.write_table(table.replace_schema_metadata(None))
