"""Token stores read back, and what is wrong with them named."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

from acpo.probes.responses import read_responses
from acpo.results import TOKEN_SCHEMA
from acpo.store import StoreError, write_table

PROMPTS = {"a": [1, 5], "b": [1, 6, 7]}


def frame(**changes) -> pd.DataFrame:
    """Two updates of three responses: question a twice, b once."""
    rows = [("a", 0, 0, 3, -0.1, 1.0), ("a", 0, 1, 4, -0.2, 1.0), ("a", 1, 0, 5, -0.3, -1.0), ("b", 0, 0, 6, -0.4, 0.5)]
    table = pd.DataFrame(rows, columns=["question", "sample", "position", "token", "old_log_prob", "advantage"])
    table = table.assign(run="r", rollout=1, update=1, log_prob=-0.5, entropy=0.3, mask=True)
    for column, (row, value) in changes.items():
        table.loc[row, column] = value
    return table


def store(path: Path, table: pd.DataFrame) -> Path:
    write_table(path / "tokens.parquet", table[TOKEN_SCHEMA.names], TOKEN_SCHEMA)
    return path / "tokens.parquet"


def test_responses_are_put_together(tmp_path: Path) -> None:
    found = read_responses(store(tmp_path, frame().sample(frac=1, random_state=0)), PROMPTS)
    assert found.questions == ["a", "a", "b"]
    assert found.prompts == [[1, 5], [1, 5], [1, 6, 7]]
    assert found.tokens.tolist() == [[3, 4], [5, 0], [6, 0]]
    assert found.mask.tolist() == [[True, True], [True, False], [True, False]]
    assert torch.allclose(found.old_log_prob, torch.tensor([[-0.1, -0.2], [-0.3, 0], [-0.4, 0]]))
    assert found.advantage.tolist() == [1.0, -1.0, 0.5]
    assert [len(half) for half in found.halves()] == [2, 1]
    assert [part.questions for part in found.micro_batches(2)] == [["a", "a"], ["b"]]


def test_a_response_met_by_several_updates_is_taken_once(tmp_path: Path) -> None:
    both = pd.concat([frame(), frame().assign(update=2)])
    assert len(read_responses(store(tmp_path, both), PROMPTS)) == 3
    assert len(read_responses(store(tmp_path, both), PROMPTS, update=2)) == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"old_log_prob": (0, np.nan)}, "old_log_prob holds NaN or infinity"),
        ({"advantage": (3, np.inf)}, "advantage holds NaN or infinity"),
        ({"position": (1, 2)}, "question 'a', sample 0: expected positions 0, 1, ... once each and one advantage"),
        ({"advantage": (1, 2.0)}, "question 'a', sample 0: expected positions"),
        ({"question": (3, "c")}, "question 'c' is not in the data"),
    ],
)
def test_faults_are_named(tmp_path: Path, changes, message: str) -> None:
    with pytest.raises(StoreError, match=message):
        read_responses(store(tmp_path, frame(**changes)), PROMPTS)


def test_missing_columns_and_updates_are_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no tokens of update 7"):
        read_responses(store(tmp_path, frame()), PROMPTS, update=7)
    fields = [field for field in TOKEN_SCHEMA if field.name != "advantage"]
    write_table(tmp_path / "bad.parquet", frame()[[field.name for field in fields]], pa.schema(fields))
    with pytest.raises(StoreError, match="advantage"):
        read_responses(tmp_path / "bad.parquet", PROMPTS)
