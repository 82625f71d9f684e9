"""Sampling, grading and scoring: the numbers by hand, and what is refused."""

import itertools
import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_study import SmallStudy

from acpo.cells import Cell
from acpo.config import Study
from acpo.data.problems import read_problems
from acpo.engines.tiny.checkpoint import load_weights, save_policy
from acpo.engines.tiny.engine import ENGINE
from acpo.evaluation import check_complete, grade_run, over_seeds, pass_at_k, sample_run, score_cell, score_seed
from acpo.results import SAMPLE_SCHEMA, VERDICT_SCHEMA, RunRecord
from acpo.store import StoreError, read_json, read_table, write_json, write_table
from acpo.tasks.base import Problem
from acpo.tasks.countdown_mini import TASK


class TestPassAtK:
    @pytest.mark.parametrize(
        ("n", "c", "k", "expected"),
        [
            (4, 0, 1, 0.0),
            (4, 1, 1, 0.25),
            (4, 1, 4, 1.0),
            (4, 2, 2, 5 / 6),
            (3, 1, 2, 2 / 3),
            (8, 8, 3, 1.0),
            (5, 3, 3, 1.0),
        ],
    )
    def test_by_hand(self, n: int, c: int, k: int, expected: float) -> None:
        assert pass_at_k(n, c, k) == pytest.approx(expected, abs=1e-15)

    @given(st.integers(1, 8), st.data())
    def test_is_the_share_of_all_subsets_with_a_right_one(self, n: int, data: st.DataObject) -> None:
        """L33: without replacement, over every subset of k samples."""
        c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
        right = [i < c for i in range(n)]
        subsets = list(itertools.combinations(right, k))
        assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, subsets)) / len(subsets), abs=1e-12)

    @pytest.mark.parametrize(("n", "c", "k"), [(4, 1, 5), (4, 1, 0), (4, 5, 1), (4, -1, 1), (0, 0, 1)])
    def test_impossible_counts_are_refused(self, n: int, c: int, k: int) -> None:
        with pytest.raises(ValueError, match="pass@k needs"):
            pass_at_k(n, c, k)


def rows(table: list[list[int]]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "question": f"q{i}", "sample": j, "correct": bool(value), "extracted": "x" if value else None,
                "reason": "solved" if value else "timeout" if (i, j) == (1, 1) else "wrong result",
                "finish_reason": "length" if (i, j) == (0, 1) else "stop", "response_tokens": 10 * i + j,
            }
            for i, line in enumerate(table)
            for j, value in enumerate(line)
        ]
    )  # fmt: skip


class TestScoreSeed:
    """Three questions of three samples: 1 1 0 / 0 0 0 / 1 1 1, so question means 2/3, 0, 1."""

    TABLE = ((1, 1, 0), (0, 0, 0), (1, 1, 1))

    @pytest.fixture
    def shuffled(self) -> pd.DataFrame:
        return rows([list(line) for line in self.TABLE]).sample(frac=1, random_state=0)

    def test_by_hand(self, shuffled: pd.DataFrame) -> None:
        score = score_seed(shuffled, seed=3, rollout=7, k=3)
        assert (score.seed, score.rollout) == (3, 7)
        assert score.avg_at_k == pytest.approx(5 / 9)
        # Question means 2/3, 0, 1: mean 5/9, deviations 1/9, -5/9, 4/9: squares sum to 42/81.
        assert score.standard_error == pytest.approx(math.sqrt(42 / 81 / 2) / math.sqrt(3))
        assert score.repeat_means == pytest.approx([2 / 3, 2 / 3, 1 / 3])
        # k = 2: question 0 has C(1,2) = 0 ways to miss, question 1 misses always, question 2 never.
        assert score.pass_at_k == {1: pytest.approx(5 / 9), 2: pytest.approx(2 / 3)}
        assert score.truncation_rate == pytest.approx(1 / 9)
        assert score.extraction_rate == pytest.approx(5 / 9)
        assert score.undecided == 1
        assert score.mean_response_tokens == pytest.approx((0 + 1 + 2 + 10 + 11 + 12 + 20 + 21 + 22) / 9)

    def test_every_kind_of_undecided_verdict_is_counted(self) -> None:
        frame = rows([[0, 0, 0], [0, 0, 1]])
        frame["reason"] = ["timeout", "memory", "crashed", "grader error: ValueError: x", "equal timeouts", "solved"]
        assert score_seed(frame, 0, 0, 3).undecided == 4

    def test_samples_of_a_question_are_no_independent_observations(self) -> None:
        """Repeating every sample leaves the clustered error as it is; the naive one would shrink."""
        once = score_seed(rows([[1, 0], [0, 0], [1, 1]]), 0, 0, 2)
        twice = score_seed(rows([[1, 0, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1]]), 0, 0, 4)
        assert once.standard_error == pytest.approx(twice.standard_error)

    def test_one_question(self) -> None:
        score = score_seed(rows([[1, 0, 1, 1]]), 0, 0, 4)
        assert (score.avg_at_k, score.standard_error) == (0.75, 0.0)
        assert list(score.pass_at_k) == [1, 2, 4]

    def test_over_seeds_by_hand(self) -> None:
        """0.2, 0.4, 0.6: mean 0.4, standard deviation 0.2 (ddof 1), its error 0.2 / sqrt 3."""
        score = score_seed(rows([[1, 0], [0, 1]]), 0, 0, 2)
        made = [
            score.model_copy(update={"avg_at_k": value, "pass_at_k": {1: value}, "repeat_means": [value]})
            for value in (0.2, 0.4, 0.6)
        ]
        found = over_seeds(made)
        assert found.avg_at_k == pytest.approx(0.4)
        assert found.seed_sd == pytest.approx(0.2)
        assert found.seed_standard_error == pytest.approx(0.2 / math.sqrt(3))
        alone = over_seeds([score])
        assert (alone.avg_at_k, alone.seed_sd, alone.seed_standard_error) == (0.5, None, None)


BASE = Cell("mini", "base", None)
QUESTIONS = {"countdown_mini": [Problem("a", "", ""), Problem("b", "", "")]}


def store(samples: int = 8, checkpoints: tuple[str, ...] = ("last", "best")) -> pd.DataFrame:
    keys = itertools.product(["countdown_mini"], checkpoints, ["a", "b"], range(samples))
    return pd.DataFrame(keys, columns=["benchmark", "checkpoint", "question", "sample"])


class TestComplete:
    """L33: exactly k samples a question, or no score."""

    def refusal(self, shipped: Study, frame: pd.DataFrame, **options: Any) -> str:
        with pytest.raises(StoreError) as caught:
            check_complete(frame, shipped, BASE, QUESTIONS, Path("runs/samples.parquet"), **options)
        return str(caught.value).removeprefix("runs/samples.parquet: ")

    def test_complete(self, shipped: Study) -> None:
        check_complete(store().sample(frac=1, random_state=0), shipped, BASE, QUESTIONS, Path("x"), ["best", "last"])

    def test_one_is_missing(self, shipped: Study) -> None:
        told = self.refusal(shipped, store().drop(index=13))
        assert told == (
            "countdown_mini, checkpoint last, question 'b': expected samples 0..7 once each, "
            "found [0, 1, 2, 3, 4, 6, 7]. Sample again"
        )

    def test_one_is_there_twice(self, shipped: Study) -> None:
        frame = pd.concat([store(), store().iloc[[16]]])
        assert "checkpoint best, question 'a': " in self.refusal(shipped, frame)
        swapped = store()
        swapped.loc[5, "sample"] = 4
        assert "found [0, 1, 2, 3, 4, 4, 6, 7]" in self.refusal(shipped, swapped)

    @pytest.mark.parametrize("samples", [1, 4, 7, 9])
    def test_another_k(self, shipped: Study, samples: int) -> None:
        assert "expected samples 0..7 once each" in self.refusal(shipped, store(samples))

    def test_a_question_is_missing(self, shipped: Study) -> None:
        frame = store()
        assert "question 'b': expected samples 0..7 once each, found []" in self.refusal(
            shipped, frame[frame["question"] == "a"]
        )

    def test_a_question_too_many(self, shipped: Study) -> None:
        frame = pd.concat([store(), store().assign(question="c")])
        assert "question 'c': " in self.refusal(shipped, frame)
        assert "(not a question of this benchmark)" in self.refusal(shipped, frame)

    def test_a_checkpoint_is_missing(self, shipped: Study) -> None:
        told = self.refusal(shipped, store(checkpoints=("last",)), checkpoints=["last", "best"])
        assert told.startswith("countdown_mini, checkpoint best, question 'a': ")

    def test_a_checkpoint_too_many(self, shipped: Study) -> None:
        assert self.refusal(shipped, store(), checkpoints=["last"]) == "the run has no checkpoint 'best'. Sample again"

    def test_a_benchmark_too_many_or_too_few(self, shipped: Study) -> None:
        frame = pd.concat([store(), store().assign(benchmark="amc")])
        assert self.refusal(shipped, frame) == "'amc' is not a benchmark of mini. Sample again"
        assert self.refusal(shipped, store().iloc[:0]) == "no samples of the benchmark 'countdown_mini'. Sample again"


@pytest.fixture(scope="module")
def sampled(small_base: SmallStudy, tmp_path_factory: pytest.TempPathFactory) -> SmallStudy:
    """The small study with its base model sampled and graded."""
    shutil.copytree(small_base.root, tmp_path_factory.mktemp("sampled") / "small")
    small = SmallStudy(tmp_path_factory.getbasetemp() / "sampled0/small")
    sample(small)
    grade(small)
    return small


@pytest.fixture
def graded(sampled: SmallStudy, tmp_path: Path) -> SmallStudy:
    """A copy to damage."""
    shutil.copytree(sampled.root, tmp_path / "small")
    return SmallStudy(tmp_path / "small")


def problems(small: SmallStudy) -> dict[str, list[Problem]]:
    return {"countdown_mini": read_problems(small.split("test"))}


def sample(small: SmallStudy, output: Path | None = None, seed: int = 0) -> None:
    run = small.run("mini_base")
    sample_run(small.study(), BASE, seed, run, problems(small), output or run / "samples.parquet")


def grade(small: SmallStudy) -> None:
    run = small.run("mini_base")
    grade_run(small.study(), BASE, problems(small), run / "samples.parquet", run / "verdicts.parquet")


def score(small: SmallStudy) -> Any:
    return score_cell(small.study(), BASE, {0: small.run("mini_base")}, problems(small))["countdown_mini"]


class TestPipeline:
    def test_scores_are_those_of_a_plain_loop(self, sampled: SmallStudy) -> None:
        samples = read_table(sampled.run("mini_base") / "samples.parquet", SAMPLE_SCHEMA)
        golds = {problem.id: problem.gold for problem in problems(sampled)["countdown_mini"]}
        right = [TASK.grade(r, golds[q]).correct for q, r in zip(samples["question"], samples["response"], strict=True)]
        found = score(sampled)
        assert len(samples) == 12 * 4
        assert (found.questions, found.k, found.grader_version) == (12, 4, TASK.grader_version)
        assert list(found.checkpoints) == ["last"]
        assert found.checkpoints["last"].avg_at_k == pytest.approx(np.mean(right))

    def test_what_was_sampled_is_whole(self, sampled: SmallStudy) -> None:
        """L30: tokens, words and the reason of the end say the same."""
        samples = read_table(sampled.run("mini_base") / "samples.parquet", SAMPLE_SCHEMA)
        words = samples["response"].str.split(" ")
        assert (words.str.len() == samples["response_tokens"]).all()
        assert ((words.str[-1] == "yes") == (samples["finish_reason"] == "stop")).all()
        assert set(samples["finish_reason"]) == {"stop", "length"}
        assert (samples.loc[samples["finish_reason"] == "length", "response_tokens"] == 36).all()

    def test_same_seed_same_bytes(self, sampled: SmallStudy, tmp_path: Path) -> None:
        """L31."""
        sample(sampled, tmp_path / "again.parquet")
        assert (tmp_path / "again.parquet").read_bytes() == (sampled.run("mini_base") / "samples.parquet").read_bytes()

    def test_equal_weights_are_sampled_once(self, graded: SmallStudy, monkeypatch: pytest.MonkeyPatch) -> None:
        run = graded.run("mini_base")
        record = read_json(run / "run.json", RunRecord)
        last = record.checkpoints["last"]
        changed = {name: tensor * 0.5 for name, tensor in load_weights(run / "last").items()}
        other = last.model_copy(
            update={"path": "other", "weights_sha256": save_policy(run / "other", changed, run / "last")}
        )
        checkpoints = {"last": last, "best": last, "other": other}
        write_json(run / "run.json", record.model_copy(update={"checkpoints": checkpoints}))
        calls = []
        real = type(ENGINE).sample
        monkeypatch.setattr(type(ENGINE), "sample", lambda *asked: calls.append(asked) or real(*asked))
        sample(graded)
        assert len(calls) == 2
        frame = read_table(run / "samples.parquet").set_index("checkpoint")
        assert frame.loc["best"].reset_index(drop=True).equals(frame.loc["last"].reset_index(drop=True))

    def test_weights_that_changed_since_training_are_refused(self, graded: SmallStudy) -> None:
        path = graded.run("mini_base") / "last/model.safetensors"
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(content)
        with pytest.raises(StoreError, match=r"seed0/last: its weights are not those that run\.json names"):
            sample(graded)

    def test_another_batch_size_draws_the_same(self, graded: SmallStudy) -> None:
        before = read_table(graded.run("mini_base") / "samples.parquet")
        graded.change(engine={"generation_batch_size": 7})
        sample(graded)
        assert read_table(graded.run("mini_base") / "samples.parquet").equals(before)

    def test_sample_i_does_not_depend_on_k(self, graded: SmallStudy) -> None:
        before = read_table(graded.run("mini_base") / "samples.parquet")
        benchmark = graded.study().suites["mini"].benchmarks["countdown_mini"].model_dump() | {"samples": 2}
        graded.change(benchmarks={"countdown_mini": benchmark})
        sample(graded)
        fewer = read_table(graded.run("mini_base") / "samples.parquet")
        assert fewer.equals(before[before["sample"] < 2].reset_index(drop=True))

    def test_a_new_grader_grades_the_old_samples(self, graded: SmallStudy, monkeypatch: pytest.MonkeyPatch) -> None:
        run = graded.run("mini_base")
        before = (run / "samples.parquet").read_bytes()
        real = type(TASK).grade
        monkeypatch.setattr(type(TASK), "grade", lambda self, r, g: replace(real(self, r, g), correct=True))
        monkeypatch.setattr(type(TASK), "grader_version", "countdown_mini-next")
        grade(graded)
        assert (run / "samples.parquet").read_bytes() == before
        found = score(graded)
        assert (found.checkpoints["last"].avg_at_k, found.grader_version) == (1.0, "countdown_mini-next")

    def test_two_versions_of_the_grader_are_refused(self, graded: SmallStudy) -> None:
        path = graded.run("mini_base") / "verdicts.parquet"
        verdicts = read_table(path, VERDICT_SCHEMA)
        verdicts.loc[3, "grader_version"] = "countdown_mini-0"
        write_table(path, verdicts, VERDICT_SCHEMA)
        with pytest.raises(
            StoreError, match=r"mini_base: countdown_mini was graded by several versions .*: grade again"
        ):
            score(graded)

    @pytest.mark.parametrize("name", ["samples.parquet", "verdicts.parquet"])
    def test_a_truncated_store_is_refused(self, graded: SmallStudy, name: str) -> None:
        path = graded.run("mini_base") / name
        path.write_bytes(path.read_bytes()[:-20])
        with pytest.raises(StoreError, match=rf"{name}: cannot be read"):
            score(graded)

    @pytest.mark.parametrize(
        ("name", "schema"), [("samples.parquet", SAMPLE_SCHEMA), ("verdicts.parquet", VERDICT_SCHEMA)]
    )
    def test_an_incomplete_store_is_refused(self, graded: SmallStudy, name: str, schema: Any) -> None:
        path = graded.run("mini_base") / name
        write_table(path, read_table(path, schema).iloc[:-1], schema)
        with pytest.raises(
            StoreError, match=rf"{name}: countdown_mini, checkpoint last, question .* found \[0, 1, 2\]"
        ):
            score(graded)

    def test_a_truncated_sample_store_is_not_graded(self, graded: SmallStudy) -> None:
        path = graded.run("mini_base") / "samples.parquet"
        path.write_bytes(path.read_bytes()[:100])
        before = (graded.run("mini_base") / "verdicts.parquet").read_bytes()
        with pytest.raises(StoreError, match=r"samples\.parquet: cannot be read"):
            grade(graded)
        assert (graded.run("mini_base") / "verdicts.parquet").read_bytes() == before

    def test_a_run_of_another_cell_is_refused(self, graded: SmallStudy) -> None:
        path = graded.run("mini_base") / "run.json"
        record = read_json(path, RunRecord)
        write_json(path, record.model_copy(update={"cell": "mini_dapo_offp"}))
        for use in (score, sample):
            with pytest.raises(
                StoreError, match=r"run\.json: is the run of mini_dapo_offp seed 0, expected mini_base seed 0"
            ):
                use(graded)
        with pytest.raises(StoreError, match="expected mini_base seed 1"):
            sample(graded, seed=1)

    def test_a_damaged_record_is_refused(self, graded: SmallStudy) -> None:
        path = graded.run("mini_base") / "run.json"
        path.write_text(path.read_text().replace('"schema_version": 1', '"schema_version": 2'))
        with pytest.raises(StoreError, match=r"run\.json: schema_version: Input should be 1"):
            score(graded)
