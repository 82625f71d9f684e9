"""Token stores of any trainer: what is read, and how each fault is named."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_up_store import made_up_tokens, write_store

from acpo.probes.token_store import COLUMNS, bin_numbers, read_tokens
from acpo.store import StoreError


@pytest.fixture
def tokens() -> pd.DataFrame:
    return made_up_tokens(questions=4, tokens=5)


def test_what_is_read(tmp_path: Path, tokens: pd.DataFrame) -> None:
    tokens.loc[3, ["old_log_prob", "log_prob"]] = [np.log(0.25), np.log(0.5)]
    read = read_tokens([write_store(tmp_path / "a.parquet", tokens, mask=tokens.index != 7)])
    assert len(read) == 19
    row = read[(read["question"] == "q0") & (read["position"] == 3)].iloc[0]
    assert (row["probability"], row["current"], row["ratio"]) == pytest.approx((0.25, 0.5, 2.0), rel=1e-6)
    assert row["distance"] == pytest.approx(0.75, rel=1e-6)
    assert read["cluster"].nunique() == 4


def test_nearly_certain_tokens_keep_their_distance(tmp_path: Path, tokens: pd.DataFrame) -> None:
    read = read_tokens([write_store(tmp_path / "a.parquet", tokens, old_log_prob=-1e-12, log_prob=-1e-12)])
    assert read["distance"].to_numpy() == pytest.approx(1e-12, rel=1e-6)


def test_several_stores_and_other_numeric_types(tmp_path: Path, tokens: pd.DataFrame) -> None:
    first = write_store(tmp_path / "a.parquet", tokens)
    other = tokens.assign(rollout=tokens["rollout"] + 2).drop(columns="token")
    other.astype({"update": "int16", "log_prob": "float64"}).to_parquet(tmp_path / "b.parquet")
    assert len(read_tokens([first, tmp_path / "b.parquet"])) == 2 * len(tokens)


def test_a_question_of_two_rollouts_is_two_clusters(tmp_path: Path, tokens: pd.DataFrame) -> None:
    store = write_store(tmp_path / "a.parquet", tokens, question="same")
    assert read_tokens([store])["cluster"].nunique() == 2


@pytest.mark.parametrize("column", COLUMNS)
def test_a_missing_column_is_named(tmp_path: Path, tokens: pd.DataFrame, column: str) -> None:
    tokens.drop(columns=column).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(StoreError, match=rf"a\.parquet: lacks {column}: a token store has"):
        read_tokens([tmp_path / "a.parquet"])


@pytest.mark.parametrize("column", ["old_log_prob", "log_prob", "entropy", "advantage"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite(tmp_path: Path, tokens: pd.DataFrame, column: str, value: float) -> None:
    tokens.loc[[5, 6], column] = value
    path = write_store(tmp_path / "a.parquet", tokens)
    with pytest.raises(
        StoreError, match=f"column {column}: 2 of 20 response tokens are not finite, the first in row 5"
    ):
        read_tokens([path])
    masked = write_store(tmp_path / "b.parquet", tokens, mask=~tokens.index.isin([5, 6]))
    assert len(read_tokens([masked])) == 18


@pytest.mark.parametrize(("column", "value"), [("old_log_prob", 0.5), ("log_prob", 3.0)])
def test_a_probability_above_one(tmp_path: Path, tokens: pd.DataFrame, column: str, value: float) -> None:
    path = write_store(tmp_path / "a.parquet", tokens, **{column: value})
    with pytest.raises(StoreError, match=f"column {column}: {value:g} is no logarithm of a probability"):
        read_tokens([path])


def test_rounding_is_not_refused(tmp_path: Path, tokens: pd.DataFrame) -> None:
    path = write_store(tmp_path / "a.parquet", tokens, log_prob=2e-4, old_log_prob=1e-7, entropy=-2e-4)
    read = read_tokens([path])
    assert (read["ratio"] == 1).all()
    assert (read["entropy"] == 0).all()


def test_a_negative_entropy(tmp_path: Path, tokens: pd.DataFrame) -> None:
    with pytest.raises(StoreError, match="column entropy: -1 is no entropy"):
        read_tokens([write_store(tmp_path / "a.parquet", tokens, entropy=-1.0)])


def test_columns_of_another_kind(tmp_path: Path, tokens: pd.DataFrame) -> None:
    for column, wanted in (("log_prob", "a number"), ("update", "a whole number"), ("mask", "true or false")):
        tokens.assign(**{column: "x"}).to_parquet(tmp_path / "a.parquet")
        with pytest.raises(StoreError, match=f"column {column}: expected {wanted}, found"):
            read_tokens([tmp_path / "a.parquet"])


def test_missing_values_of_other_columns(tmp_path: Path, tokens: pd.DataFrame) -> None:
    tokens.loc[0, "question"] = None
    tokens.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(StoreError, match="column question: 1 values are missing"):
        read_tokens([tmp_path / "a.parquet"])


def test_no_tokens(tmp_path: Path, tokens: pd.DataFrame) -> None:
    for path in (
        write_store(tmp_path / "a.parquet", tokens, mask=False),
        write_store(tmp_path / "b.parquet", tokens.iloc[:0]),
    ):
        with pytest.raises(StoreError, match="no response token"):
            read_tokens([path])
    with pytest.raises(StoreError, match="no token store given"):
        read_tokens([])


def test_files_that_are_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="absent: no such file"):
        read_tokens([tmp_path / "absent"])
    (tmp_path / "text.parquet").write_text("PAR1 nothing PAR1")
    with pytest.raises(StoreError, match=r"text\.parquet: cannot be read"):
        read_tokens([tmp_path / "text.parquet"])


def test_bins_are_those_of_eq_11() -> None:
    probability = pd.Series([0.0, 0.2, 0.39999, 0.4, 0.8, 0.999, 1.0])
    assert list(bin_numbers(probability, 5)) == [0, 1, 1, 2, 4, 4, 4]
