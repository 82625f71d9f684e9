"""Records of a run that verl trains, and the tables that they become."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from acpo.engines.token_table import token_rows
from acpo.engines.verl.records import (
    RolloutFacts,
    ValidationFacts,
    collect,
    forget_after,
    has_validation,
    read_updates,
    read_validation,
    write_rollout,
    write_tokens,
    write_updates,
    write_validation,
)
from acpo.objectives import TokenBatch
from acpo.results import TOKEN_SCHEMA
from acpo.store import StoreError, read_table

ROLLOUTS, UPDATES = 3, 2


def record_rollout(directory: Path, rollout: int, loss: float = 0.5) -> None:
    """What workers and trainer write at one rollout."""
    numbers = range((rollout - 1) * UPDATES + 1, rollout * UPDATES + 1)
    rows = [{"rollout": rollout, "update": number, "stage": "all", "loss": loss} for number in numbers]
    write_updates(directory, rollout, rows)
    facts = {"reward_mean": 0.25, "response_tokens_mean": 7.5, "truncation_rate": 0.0, "zero_variance_fraction": 0.5}
    seconds = {"sampling_seconds": 2.0, "update_seconds": 1.0}
    write_rollout(
        directory,
        RolloutFacts(rollout=rollout, response_tokens=10 * rollout, on_policy_error=1e-6, **facts, **seconds),
    )


def tokens_of(question: str, samples: list[int]) -> pd.DataFrame:
    mask = torch.tensor([[True, True, False]] * len(samples))
    value = torch.full(mask.shape, -0.5)
    batch = TokenBatch(value, value - 0.5, mask, torch.ones(len(samples)), value + 1)
    rows = token_rows(batch, torch.full(mask.shape, 9), [question] * len(samples), samples)
    return rows.assign(run="mini_verl/seed0", rollout=1, update=1)


@pytest.fixture
def records(tmp_path: Path) -> Path:
    directory = tmp_path / "records"
    for rollout in range(1, ROLLOUTS + 1):
        record_rollout(directory, rollout)
    for rollout, accuracy in ((0, 0.1), (2, 0.3)):
        write_validation(directory, ValidationFacts(rollout=rollout, validation=accuracy))
    return directory


def test_tables_are_those_of_the_embedded_engine(records, tmp_path) -> None:
    collect(records, tmp_path, ROLLOUTS)
    updates = read_table(tmp_path / "metrics.parquet")
    assert updates["update"].tolist() == [1, 2, 3, 4, 5, 6]
    assert updates["rollout"].tolist() == [1, 1, 2, 2, 3, 3]
    facts = read_table(tmp_path / "rollouts.parquet")
    assert facts["rollout"].tolist() == [0, 1, 2, 3]
    assert facts["response_tokens_total"].tolist() == [0, 10, 30, 60]
    np.testing.assert_equal(facts["validation"].tolist(), [0.1, np.nan, 0.3, np.nan])
    np.testing.assert_equal(facts["reward_mean"].tolist(), [np.nan, 0.25, 0.25, 0.25])
    timings = read_table(tmp_path / "timings.parquet")
    assert timings.columns.tolist() == ["rollout", "sampling_seconds", "update_seconds"]
    assert timings["rollout"].tolist() == [1, 2, 3]


def test_a_resumed_run_has_each_update_once(records, tmp_path) -> None:
    forget_after(records, 1)
    assert not (records / "update_000002.parquet").exists()
    assert read_validation(records) == {0: 0.1}
    for rollout in (2, 3):
        record_rollout(records, rollout, loss=0.75)
    updates, _ = collect(records, tmp_path, ROLLOUTS)
    assert updates["update"].tolist() == [1, 2, 3, 4, 5, 6]
    assert updates["loss"].tolist() == [0.5] * 2 + [0.75] * 4


def test_a_fresh_start_forgets_all_but_the_base_model(records) -> None:
    (records / ".update_000001.parquet.x.tmp").touch()
    write_tokens(records, 1, 1, 0, tokens_of("a", [0]))
    forget_after(records, 0)
    assert [path.name for path in records.iterdir()] == ["validation_000000.json"]
    assert has_validation(records, 0)
    assert not has_validation(records, 2)


def test_a_missing_rollout_is_named(records, tmp_path) -> None:
    (records / "update_000002.parquet").unlink()
    with pytest.raises(StoreError, match="update_000002"):
        collect(records, tmp_path, ROLLOUTS)


def test_updates_that_do_not_follow_one_another_are_refused(records) -> None:
    write_updates(records, 2, [{"rollout": 2, "update": 4, "stage": "all", "loss": 0.0}])
    with pytest.raises(StoreError, match="not numbered 1 to 5"):
        read_updates(records, ROLLOUTS)


def test_tokens_of_all_ranks_become_one_table(records, tmp_path) -> None:
    write_tokens(records, 1, 1, 0, tokens_of("b", [0, 1]))
    write_tokens(records, 1, 1, 1, tokens_of("a", [1]))
    write_tokens(records, 1, 2, 0, tokens_of("a", [0]).assign(update=2))
    collect(records, tmp_path, ROLLOUTS)
    rows = read_table(tmp_path / "tokens" / "rollout_000001.parquet", TOKEN_SCHEMA)
    found = list(rows[["update", "question", "sample", "position"]].itertuples(index=False, name=None))
    first = [(1, "a", 1, 0), (1, "a", 1, 1), (1, "b", 0, 0), (1, "b", 0, 1), (1, "b", 1, 0), (1, "b", 1, 1)]
    assert found == [*first, (2, "a", 0, 0), (2, "a", 0, 1)]
    assert set(rows["old_log_prob"]) == {-1.0}
    assert set(rows["log_prob"]) == {-0.5}
    assert set(rows["entropy"]) == {0.5}
    assert set(rows["token"]) == {9}
