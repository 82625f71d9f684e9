"""Whole training runs of a small study: what they write, and when they refuse."""

import errno
import fcntl
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from small_study import SmallStudy, small_values

from acpo.cells import resolve
from acpo.config import digest, parse_study
from acpo.data.problems import write_problems
from acpo.engines import EngineError, load_engine
from acpo.engines.runs import exclusive
from acpo.engines.tiny import trainer as trainer_module
from acpo.engines.tiny.checkpoint import load_weights
from acpo.engines.tiny.engine import ENGINE
from acpo.engines.tiny.rollout import Rollout
from acpo.engines.tiny.sampler import Responses
from acpo.engines.tiny.token_store import write_tokens
from acpo.errors import ConfigError
from acpo.objectives import TokenBatch
from acpo.provenance import code_hash, file_hash, training_modules
from acpo.results import TOKEN_SCHEMA, RunRecord
from acpo.store import StoreError, read_json, read_table
from acpo.tasks.base import Problem

STUDY = parse_study(small_values())
# Settings of Table 5 are ACPO with other numbers; without a base width it is another method.
METHODS = sorted({*STUDY.methods} - {*STUDY.ablations["table5"].methods} | {"acpo", "acpo_a3_e00"})
MEASURED = {"grpo_clip_avg": {"clip": 0.3}, "dapo_clip_max": {"clip_high": 0.5}}
BIN_METRICS = (
    "count", "ratio_mean", "ratio_std", "clip_width_low", "clip_width_high", "clip_fraction", "clip_low_fraction",
    "clip_high_fraction", "gradient_std",
)  # fmt: skip
METRICS = {
    "rollout", "update", "stage", "loss", "gradient_norm", "skipped", "tokens", "responses", "approx_kl", "entropy",
    "clip_fraction", "dual_clip_fraction", "selected_fraction", "ratio_mean", "clip_width_mean", "ratio_max",
    "clip_width_max", *(f"bin{b}/{name}" for b in range(1, 6) for name in BIN_METRICS),
}  # fmt: skip
ROLLOUTS = {
    "rollout", "reward_mean", "response_tokens_mean", "truncation_rate", "zero_variance_fraction",
    "response_tokens_total", "validation",
}  # fmt: skip
EASY = [Problem("1 1 1 to 1", "1 1 1 to 1 >", "1 1 1 to 1")]


@pytest.fixture(scope="module")
def trained(small_base: SmallStudy, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Every configured method trained for the two rollouts of the off-policy regime."""
    root = tmp_path_factory.mktemp("trained")
    for method in METHODS:
        cell = f"mini_{method}_offp"
        ENGINE.train(small_base.job(cell, root / method, measured=MEASURED.get(method, {})))
    return {method: root / method for method in METHODS}


class TestEveryMethod:
    @pytest.mark.parametrize("method", METHODS)
    def test_trains_and_writes_all(self, trained: dict[str, Path], method: str) -> None:
        run = trained[method]
        assert sorted(path.name for path in run.iterdir()) == [
            "best", "last", "lock", "metrics.parquet", "progress.json", "rollouts.parquet", "run.json", "segments.json",
            "tensorboard", "timings.parquet", "tokens",
        ]  # fmt: skip
        metrics, rollouts = read_table(run / "metrics.parquet"), read_table(run / "rollouts.parquet")
        assert set(metrics.columns) == METRICS
        assert set(rollouts.columns) == ROLLOUTS
        updates = 16 if method.startswith("ar_lopti") else 8
        assert metrics["update"].tolist() == list(range(1, updates + 1))
        assert metrics["rollout"].tolist() == [1] * (updates // 2) + [2] * (updates // 2)
        assert rollouts["rollout"].tolist() == [0, 1, 2]
        assert (metrics["responses"] == 16).all()
        assert np.isfinite(metrics["loss"]).all()
        assert (metrics["entropy"] > 0).all()

    @pytest.mark.parametrize("method", METHODS)
    def test_bins_add_up(self, trained: dict[str, Path], method: str) -> None:
        metrics = read_table(trained[method] / "metrics.parquet")
        counts = metrics[[f"bin{b}/count" for b in range(1, 6)]].to_numpy()
        assert (counts.sum(1) == metrics["tokens"]).all()
        for name, total in (("ratio_mean", "ratio_mean"), ("clip_fraction", "clip_fraction")):
            parts = metrics[[f"bin{b}/{name}" for b in range(1, 6)]].to_numpy()
            mean = np.nansum(np.where(counts > 0, parts * counts, 0), 1) / counts.sum(1)
            np.testing.assert_allclose(mean, metrics[total], atol=1e-9)

    def test_all_begin_with_the_same_rollout(self, trained: dict[str, Path]) -> None:
        """Methods are compared on the same prompts, uniforms and base: the first rollouts are equal."""
        first = [read_table(run / "rollouts.parquet").iloc[:2].drop(columns="validation") for run in trained.values()]
        for other in first[1:]:
            pd.testing.assert_frame_equal(first[0], other)
        losses = {method: read_table(run / "metrics.parquet")["entropy"][0] for method, run in trained.items()}
        assert max(losses.values()) - min(losses.values()) < 1e-6

    def test_the_record(self, small_base: SmallStudy, trained: dict[str, Path]) -> None:
        record = read_json(trained["acpo"] / "run.json", RunRecord)
        study, cell = small_base.study(), small_base.cell("mini_acpo_offp")
        metrics = read_table(trained["acpo"] / "metrics.parquet")
        rollouts = read_table(trained["acpo"] / "rollouts.parquet")
        assert (record.cell, record.seed, record.rollouts, record.updates) == ("mini_acpo_offp", 0, 2, 8)
        assert record.response_tokens == metrics["tokens"].sum() == rollouts["response_tokens_total"].iloc[-1]
        assert record.provenance.configuration_hash == digest(resolve(study, cell))
        assert record.provenance.code_hash == code_hash(training_modules(study, cell))
        assert record.provenance.data_hashes["base/model.safetensors"] == file_hash(
            small_base.base / "model.safetensors"
        )
        for name, info in record.checkpoints.items():
            assert info.weights_sha256 == file_hash(trained["acpo"] / name / "model.safetensors")

    def test_measured_parameters_are_recorded_and_used(self, trained: dict[str, Path]) -> None:
        record = read_json(trained["grpo_clip_avg"] / "run.json", RunRecord)
        assert record.measured_parameters == {"clip": 0.3}
        assert read_table(trained["grpo_clip_avg"] / "metrics.parquet")["clip_width_max"].to_numpy() == pytest.approx(
            0.3
        )

    def test_methods_end_differently(self, trained: dict[str, Path]) -> None:
        names = ("acpo", "ar_lopti", "cispo", "dapo", "high_entropy", "low_entropy")
        records = [read_json(trained[name] / "run.json", RunRecord) for name in names]
        assert len({record.checkpoints["last"].weights_sha256 for record in records}) == len(names)

    def test_checkpoints_load_in_transformers(self, trained: dict[str, Path]) -> None:
        from transformers import AutoModelForCausalLM

        weights = load_weights(trained["acpo"] / "last")
        loaded = AutoModelForCausalLM.from_pretrained(trained["acpo"] / "last").state_dict()
        assert all(torch.equal(loaded[name], tensor) for name, tensor in weights.items())


@pytest.fixture(scope="module")
def store(trained: dict[str, Path]) -> pd.DataFrame:
    return read_table(trained["acpo"] / "tokens/rollout_000002.parquet", TOKEN_SCHEMA)


class TestTokenStore:
    def test_holds_the_chosen_rollouts_only(self, trained: dict[str, Path]) -> None:
        names = sorted(path.name for path in (trained["acpo"] / "tokens").iterdir())
        assert names == ["rollout_000001.parquet", "rollout_000002.parquet"]

    def test_agrees_with_the_metrics_of_each_update(self, trained: dict[str, Path], store: pd.DataFrame) -> None:
        metrics = read_table(trained["acpo"] / "metrics.parquet").set_index("update")
        assert sorted(store["update"].unique()) == [5, 6, 7, 8]
        for update, rows in store.groupby("update"):
            told = metrics.loc[update]
            ratio = np.exp(rows["log_prob"].astype(float) - rows["old_log_prob"].astype(float))
            assert len(rows) == told["tokens"]
            assert ratio.mean() == pytest.approx(told["ratio_mean"], abs=1e-5)
            assert ratio.max() == pytest.approx(told["ratio_max"], rel=1e-5)
            assert rows["entropy"].mean() == pytest.approx(told["entropy"], rel=1e-4)
            assert (rows["old_log_prob"] - rows["log_prob"]).mean() == pytest.approx(told["approx_kl"], abs=1e-5)
            edges = np.floor(np.exp(rows["old_log_prob"].astype(float)) * 5).clip(0, 4).astype(int)
            counts = np.bincount(edges, minlength=5)
            assert np.abs(counts - [told[f"bin{b}/count"] for b in range(1, 6)]).max() <= 1

    def test_each_response_is_whole_and_in_one_update(self, store: pd.DataFrame) -> None:
        groups = store.groupby(["question", "sample"])
        assert len(groups) == 64
        for _, rows in groups:
            assert rows["position"].tolist() == list(range(len(rows)))
            assert rows["update"].nunique() == rows["advantage"].nunique() == 1
            end = 112  # the word "yes"
            assert (rows["token"].iloc[:-1] != end).all()
            assert len(rows) == 36 or rows["token"].iloc[-1] == end
        assert store["mask"].all()
        assert set(store["run"]) == {"mini_acpo_offp/seed0"}

    def test_a_question_standing_twice_in_a_rollout_keeps_its_samples_apart(self, tmp_path: Path) -> None:
        tokens = torch.arange(8).reshape(8, 1)
        ones = torch.ones(8, 1)
        responses = Responses(tokens, torch.ones(8, dtype=torch.long), ones, torch.ones(8, dtype=torch.bool))
        problems = [Problem(name, "", "") for name in ("a", "b", "a", "c")]
        rollout = Rollout(problems, ones, responses, torch.zeros(8), torch.zeros(8))
        batch = TokenBatch(ones, ones, ones.bool(), torch.zeros(8), ones)
        write_tokens(tmp_path / "store.parquet", "run", 1, rollout, [(1, slice(0, 8), [batch])])
        store = read_table(tmp_path / "store.parquet", TOKEN_SCHEMA)
        keys = list(zip(store["question"], store["sample"], store["token"], strict=True))
        assert keys == [
            ("a", 0, 0), ("a", 1, 1), ("b", 0, 2), ("b", 1, 3), ("a", 2, 4), ("a", 3, 5), ("c", 0, 6), ("c", 1, 7),
        ]  # fmt: skip

    def test_two_stages_store_each_response_twice(self, trained: dict[str, Path]) -> None:
        store = read_table(trained["ar_lopti"] / "tokens/rollout_000001.parquet", TOKEN_SCHEMA)
        assert sorted(store["update"].unique()) == list(range(1, 9))
        assert (store.groupby(["question", "sample", "position"]).size() == 2).all()
        old = store.groupby(["question", "sample", "position"])["old_log_prob"].nunique()
        assert (old == 1).all()


class TestBest:
    """`best` is the checkpoint of the highest validation, the later of equals, the base model included."""

    def run(self, small: SmallStudy, monkeypatch: pytest.MonkeyPatch, scores: dict[int, float]) -> RunRecord:
        monkeypatch.setattr(trainer_module.Trainer, "_validate", lambda self, learner, rollout: scores[rollout])
        small.change(training={"validation_every": 1})
        ENGINE.train(small.job("mini_dapo_nonp"))
        return read_json(small.run("mini_dapo_nonp") / "run.json", RunRecord)

    @pytest.mark.parametrize(
        ("scores", "best"),
        [
            ([0.1, 0.2, 0.5, 0.3, 0.4], 2),
            ([0.1, 0.2, 0.2, 0.1, 0.1], 2),
            ([0.1, 0.2, 0.3, 0.4, 0.5], 4),
            ([0.9, 0.2, 0.3, 0.4, 0.5], 0),
            ([0.0, 0.0, 0.0, 0.0, 0.0], 4),
        ],
    )
    def test_by_hand(self, small: SmallStudy, monkeypatch: pytest.MonkeyPatch, scores: list[float], best: int) -> None:
        record = self.run(small, monkeypatch, dict(enumerate(scores)))
        assert record.checkpoints["best"].rollout == best
        assert record.checkpoints["best"].validation == scores[best]
        assert record.checkpoints["last"].rollout == 4
        assert record.checkpoints["last"].validation == scores[4]
        same = record.checkpoints["best"].weights_sha256 == record.checkpoints["last"].weights_sha256
        assert same == (best == 4)
        base = file_hash(small.base / "model.safetensors")
        assert (record.checkpoints["best"].weights_sha256 == base) == (best == 0)
        found = read_table(small.run("mini_dapo_nonp") / "rollouts.parquet")["validation"]
        assert found.tolist() == scores

    def test_validation_is_skipped_between(self, small: SmallStudy) -> None:
        small.change(training={"validation_every": 3})
        ENGINE.train(small.job("mini_dapo_nonp"))
        validation = read_table(small.run("mini_dapo_nonp") / "rollouts.parquet")["validation"]
        assert validation.notna().tolist() == [True, False, False, True, True]  # the last one always


class TestSame:
    def test_a_second_run_has_the_same_bytes(
        self, small_base: SmallStudy, trained: dict[str, Path], tmp_path: Path
    ) -> None:
        """L31."""
        ENGINE.train(small_base.job("mini_acpo_offp", tmp_path / "again"))
        for name in ("metrics.parquet", "rollouts.parquet", "last/model.safetensors", "tokens/rollout_000001.parquet"):
            assert (tmp_path / "again" / name).read_bytes() == (trained["acpo"] / name).read_bytes(), name

    def test_another_seed_differs_from_the_first_rollout_on(
        self, small_base: SmallStudy, trained: dict[str, Path], tmp_path: Path
    ) -> None:
        ENGINE.train(small_base.job("mini_acpo_offp", tmp_path / "other", seed=1))
        one, other = (read_table(run / "metrics.parquet") for run in (trained["acpo"], tmp_path / "other"))
        assert one["tokens"].iloc[0] != other["tokens"].iloc[0]
        assert one["entropy"].iloc[0] != other["entropy"].iloc[0]


class TestRefusals:
    def refused(self, small: SmallStudy, kind: type[Exception], match: str, **changes: Any) -> None:
        with pytest.raises(kind, match=match):
            ENGINE.train(small.job("mini_dapo_nonp", **changes))
        assert not (small.run("mini_dapo_nonp") / "run.json").exists()

    def test_a_truncated_base(self, small: SmallStudy) -> None:
        path = small.base / "model.safetensors"
        path.write_bytes(path.read_bytes()[:1000])
        self.refused(small, StoreError, rf"{path}: cannot be read")

    def test_no_base_or_no_validation(self, small: SmallStudy) -> None:
        self.refused(small, ConfigError, "mini_dapo_nonp: needs the suite's base model", base_directory=None)
        self.refused(small, ConfigError, "mini_dapo_nonp: needs validation data", validation=[])

    def test_prompts_longer_than_the_limit(self, small: SmallStudy) -> None:
        small.change(training={"max_prompt_tokens": 6})
        self.refused(
            small, ConfigError, r"suites\.mini\.training\.max_prompt_tokens: prompts have 7 to 7 tokens, the limit is 6"
        )

    def test_prompts_of_different_lengths(self, small: SmallStudy) -> None:
        problems = [Problem("a", "1 2 3 to 6 >", "1 2 3 to 6"), Problem("b", "1 2 to 3 >", "1 2 to 3")]
        self.refused(small, ConfigError, "prompts have 6 to 7 tokens", problems=problems)

    def test_data_of_another_task(self, small: SmallStudy) -> None:
        problems = [Problem("a", "What is 1 + 1 ?", "2")]
        self.refused(
            small, ConfigError, "the word 'What' is not in the task's vocabulary: are these", problems=problems
        )

    def test_less_than_one_rollout(self, small: SmallStudy) -> None:
        small.change(training={"prompts": None, "epochs": 1})
        job = small.job("mini_dapo_nonp")
        self.refused(small, ConfigError, "7 training problems are less than one rollout", problems=job.problems[:7])

    def test_sampler_and_trainer_that_disagree(self, small: SmallStudy, monkeypatch: pytest.MonkeyPatch) -> None:
        real = trainer_module.collect

        def tampered(*arguments: Any) -> Any:
            rollout = real(*arguments)
            rollout.responses.log_prob.mul_(0.9)
            return rollout

        monkeypatch.setattr(trainer_module, "collect", tampered)
        self.refused(small, EngineError, "rollout 1: the importance ratio before any update")

    def test_a_second_process(self, small: SmallStudy) -> None:
        run = small.run("mini_dapo_nonp")
        with exclusive(run):
            self.refused(small, StoreError, rf"^{run}: another process is training this run: wait for it or end it$")

    def test_a_file_system_without_locks(self, small: SmallStudy, monkeypatch: pytest.MonkeyPatch) -> None:
        def flock(*_: int) -> None:
            raise OSError(errno.ENOSYS, "Function not implemented")

        monkeypatch.setattr(fcntl, "flock", flock)
        self.refused(small, StoreError, "no file locks on this file system")

    def test_a_place_that_cannot_be_written(self, small: SmallStudy) -> None:
        (small.root / "file").write_text("")
        self.refused(small, StoreError, "cannot write in", run_directory=small.root / "file" / "run")

    def test_an_engine_that_is_not_there(self) -> None:
        with pytest.raises(ConfigError, match=r"the engine 'trl' is not part of this version \(it has: tiny"):
            load_engine("trl")


class TestBase:
    def test_is_the_same_bytes_again(self, small: SmallStudy) -> None:
        values = json.loads(small.study().model_dump_json())
        values["models"][values["suites"]["mini"]["model"]]["supervised"]["steps"] = 5
        run, other = small.root / "one", small.root / "other"
        for directory in (run, other):
            job = small.job("mini_base", directory, study=parse_study(values), base_directory=None)
            ENGINE.make_base(job)
        for name in (path.name for path in (run / "last").iterdir()):
            assert (run / "last" / name).read_bytes() == (other / "last" / name).read_bytes(), name
        record = read_json(run / "run.json", RunRecord)
        assert list(record.checkpoints) == ["last"]
        assert (record.rollouts, record.updates, record.response_tokens) == (0, 0, 0)

    def test_a_hub_model_cannot_be_made(self, small: SmallStudy) -> None:
        values = json.loads(small.study().model_dump_json())
        values["suites"]["mini"]["model"] = "qwen2_5_3b"
        job = small.job("mini_base", study=parse_study(values), base_directory=None)
        with pytest.raises(ConfigError, match=r"suites\.mini\.model: the embedded engine runs models with `source"):
            ENGINE.make_base(job)


def test_data_sets_refuse_what_makes_no_sense(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"x\.parquet: there are no problems"):
        write_problems(tmp_path / "x.parquet", "task", "a", "train", [])
    with pytest.raises(StoreError, match=r"x\.parquet: two problems share an id"):
        write_problems(tmp_path / "x.parquet", "task", "a", "train", EASY * 2)
