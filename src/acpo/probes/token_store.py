"""Reading a token store of any trainer: the columns that the probes need, checked before they are used."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from acpo.objectives.batch import LOG_RATIO_LIMIT
from acpo.objectives.binning import bin_index
from acpo.store import StoreError, read_table

NUMBERS = ("old_log_prob", "log_prob", "entropy", "advantage")
WHOLE = ("rollout", "update", "sample", "position")
COLUMNS = ("run", "question", *WHOLE, *NUMBERS, "mask")
ROUNDING = 1e-3
"""How far above 0 a log-probability, or below 0 an entropy, may lie: rounding of half-precision engines."""


def read_tokens(paths: Sequence[Path]) -> pd.DataFrame:
    """Read the response tokens of one or more token stores.

    Args:
        paths: Parquet files with at least the columns of `COLUMNS` (see `acpo.results.TOKEN_SCHEMA`); the exact
            numeric types do not matter.

    Returns:
        One row a token whose `mask` is true, with `COLUMNS` but the mask, and `probability` (behavior), `distance`
        (1 - probability, to full precision), `current` (probability under the current policy), `ratio`, and
        `cluster`, a number for each question of a rollout.

    Raises:
        StoreError: no file; a file is missing, damaged, lacks a column, has one of another kind, or has a value that
            cannot be what the column says; no token is left.
    """
    if not paths:
        raise StoreError("no token store given: a run writes them for the rollouts named in its suite's token_store")
    tokens = pd.concat([_read_file(path) for path in paths], ignore_index=True)
    old, new = np.minimum(tokens["old_log_prob"], 0), np.minimum(tokens["log_prob"], 0)
    return tokens.assign(
        probability=np.exp(old),
        distance=-np.expm1(old),
        current=np.exp(new),
        ratio=np.exp((new - old).clip(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)),
        entropy=np.maximum(tokens["entropy"], 0),
        cluster=tokens.groupby(["run", "rollout", "question"], sort=True).ngroup(),
    )


def _read_file(path: Path) -> pd.DataFrame:
    _check_columns(path)
    tokens = read_table(path)[list(COLUMNS)]
    for name in set(COLUMNS) - set(NUMBERS):
        if tokens[name].isna().any():
            raise StoreError(f"{path}: column {name}: {int(tokens[name].isna().sum())} values are missing")
    tokens = tokens[tokens["mask"].astype(bool)].drop(columns="mask")
    if tokens.empty:
        raise StoreError(f"{path}: no response token (no row, or every mask is false): nothing to probe")
    tokens = tokens.astype(dict.fromkeys(NUMBERS, float) | dict.fromkeys(WHOLE, int) | {"question": str, "run": str})
    for name in NUMBERS:
        bad = ~np.isfinite(tokens[name])
        if bad.any():
            raise StoreError(
                f"{path}: column {name}: {int(bad.sum())} of {len(tokens)} response tokens are not finite, the first "
                f"in row {int(bad.idxmax())}: mend the trainer that wrote it, or mask those tokens out"
            )
    _check_range(path, tokens)
    return tokens


def _check_columns(path: Path) -> None:
    if not path.is_file():
        raise StoreError(f"{path}: no such file")
    try:
        schema = pq.read_schema(path)
    except (pa.ArrowException, OSError) as error:
        raise StoreError(f"{path}: cannot be read ({error}): is it a parquet file?") from error
    missing = [name for name in COLUMNS if name not in schema.names]
    if missing:
        raise StoreError(f"{path}: lacks {', '.join(missing)}: a token store has the columns {', '.join(COLUMNS)}")
    for name in (*NUMBERS, *WHOLE):
        kind = schema.field(name).type
        fits = pa.types.is_integer(kind) or (name in NUMBERS and pa.types.is_floating(kind))
        if not fits:
            wanted = "a number" if name in NUMBERS else "a whole number"
            raise StoreError(f"{path}: column {name}: expected {wanted}, found {kind}")
    if not pa.types.is_boolean(schema.field("mask").type):
        raise StoreError(f"{path}: column mask: expected true or false, found {schema.field('mask').type}")


def _check_range(path: Path, tokens: pd.DataFrame) -> None:
    for name in ("old_log_prob", "log_prob"):
        highest = float(tokens[name].max())
        if highest > ROUNDING:
            raise StoreError(f"{path}: column {name}: {highest:g} is no logarithm of a probability: expected at most 0")
    lowest = float(tokens["entropy"].min())
    if lowest < -ROUNDING:
        raise StoreError(f"{path}: column entropy: {lowest:g} is no entropy of a discrete distribution: it is negative")


def bin_numbers(probability: pd.Series, bins: int) -> np.ndarray:
    """Return the zero-based bin of each probability among equal-width bins (Eq. 11), as the objectives bin it."""
    values = torch.tensor(probability.to_numpy(float))
    return bin_index(values, torch.ones_like(values, dtype=torch.bool), bins).numpy()
