"""The raw layer: what is joined, and what is refused."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_up import QUESTIONS, K, made_study, made_tally, study

from acpo.cells import Cell
from acpo.results import SAMPLE_SCHEMA, VERDICT_SCHEMA
from acpo.stats.raw import COLUMNS, missing_runs, read_cell, tallies, tally
from acpo.store import StoreError, write_table

ACPO = Cell("mini", "acpo", "nonp")


def edit(path: Path, change) -> None:
    schema = SAMPLE_SCHEMA if path.name == "samples.parquet" else VERDICT_SCHEMA
    write_table(path, change(pd.read_parquet(path)), schema)


def test_one_row_a_sample_with_all_that_names_it(whole: Path) -> None:
    frame = read_cell(study(), ACPO, whole)
    assert list(frame.columns) == COLUMNS
    assert len(frame) == 2 * 2 * QUESTIONS * K  # seeds x checkpoints
    first = frame.iloc[0]
    assert (first["cell"], first["task"], first["regime"], first["seed"]) == (
        "mini_acpo_nonp", "countdown_mini", "nonp", 0,
    )  # fmt: skip
    assert set(read_cell(study(), Cell("mini", "base", None), whole)["regime"]) == {""}


def test_counts_are_those_of_the_store(whole: Path) -> None:
    items = tallies(read_cell(study(), ACPO, whole), ACPO)
    assert {item.checkpoint for item in items} == {"last", "best"}
    for item in items:
        assert item.correct.shape == (2, QUESTIONS, K)
        for seed in item.seeds:
            stored = pd.read_parquet(whole / f"runs/mini_acpo_nonp/seed{seed}/verdicts.parquet")
            stored = stored[stored["checkpoint"] == item.checkpoint].set_index(["question", "sample"])["correct"]
            for place, question in enumerate(item.questions):
                for sample in range(K):
                    assert item.correct[seed, place, sample] == stored[question, sample]


def test_means_by_hand() -> None:
    item = made_tally(np.array([[[1, 1], [1, 0], [0, 0]]]))
    assert item.mean == 0.5
    assert item.right.tolist() == [[2, 1, 0]]
    assert item.question_means.tolist() == [[1, 0.5, 0]]
    assert item.repeat_means == pytest.approx(np.array([[2 / 3, 1 / 3]]))


@pytest.mark.parametrize("store", ["samples.parquet", "verdicts.parquet"])
def test_a_question_without_exactly_k_samples_is_an_error(results: Path, store: str) -> None:
    edit(results / "runs/mini_acpo_nonp/seed0" / store, lambda frame: frame.drop(index=3))
    with pytest.raises(StoreError, match=rf"seed0/{store}: countdown_mini, checkpoint last, question 'q00': expected"):
        read_cell(study(), ACPO, results)


def test_a_sample_that_stands_twice_is_an_error(results: Path) -> None:
    path = results / "runs/mini_acpo_nonp/seed0/verdicts.parquet"
    edit(path, lambda frame: pd.concat([frame, frame.iloc[:1]], ignore_index=True))
    with pytest.raises(StoreError, match="question 'q00': expected samples"):
        read_cell(study(), ACPO, results)


def test_two_grader_versions_are_an_error(results: Path) -> None:
    edit(results / "runs/mini_acpo_nonp/seed1/verdicts.parquet", lambda frame: frame.assign(grader_version="2"))
    with pytest.raises(StoreError, match=r"mini_acpo_nonp: countdown_mini was graded by several versions"):
        read_cell(study(), ACPO, results)


def test_seeds_with_different_questions_are_an_error(whole: Path) -> None:
    frame = read_cell(study(), ACPO, whole)
    lacking = frame[~((frame["seed"] == 1) & (frame["question"] == "q03"))]
    with pytest.raises(StoreError, match=r"92 verdicts where 2 training seeds x 12 questions x 4 samples"):
        tally(lacking, ACPO, "countdown_mini", "last")


def test_one_question_is_refused(whole: Path) -> None:
    frame = read_cell(study(), ACPO, whole)
    with pytest.raises(StoreError, match="countdown_mini has one question"):
        tally(frame[frame["question"] == "q00"], ACPO, "countdown_mini", "last")


def test_no_such_checkpoint(whole: Path) -> None:
    frame = read_cell(study(), ACPO, whole)
    with pytest.raises(StoreError, match="no verdicts of countdown_mini at the checkpoint 'first'"):
        tally(frame, ACPO, "countdown_mini", "first")


def test_missing_cells_and_seeds_are_named(tmp_path: Path) -> None:
    made = study()
    lost = ("mini_acpo_nonp/seed1", "mini_dapo_nonp/seed0", "mini_dapo_nonp/seed1")
    results = made_study(tmp_path, made, leave_out=lost)
    dapo = Cell("mini", "dapo", "nonp")
    frame = read_cell(made, ACPO, results)
    assert frame["seed"].unique().tolist() == [0]
    assert read_cell(made, dapo, results).empty
    assert missing_runs(made, [ACPO, dapo], tallies(frame, ACPO)) == [
        "mini_acpo_nonp: no training seed 1", "mini_dapo_nonp: no finished run",
    ]  # fmt: skip
