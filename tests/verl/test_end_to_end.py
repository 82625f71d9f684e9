"""Real runs: verl, Ray and FSDP train our objectives on a CPU, with rollouts by transformers and by vLLM."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file
from small_study import SmallStudy
from verl_study import REPORT, ROLLOUTS, UPDATES, Training, finished, make_verl_study

from acpo.engines.tiny.trainer import ON_POLICY_TOLERANCE
from acpo.results import TOKEN_SCHEMA
from acpo.store import read_table

pytestmark = pytest.mark.verl

RESPONSES = 16 * 4
ROLLOUT_DIFFERENCE = 1e-3
"""How far the probability of a token may differ between sampling and training: more means other weights."""


@pytest.fixture(scope="module")
def transformers_study(tmp_path_factory: pytest.TempPathFactory) -> SmallStudy:
    """The suite mini_verl."""
    return make_verl_study(tmp_path_factory.mktemp("verl"), "mini_verl")


@pytest.fixture(scope="module")
def vllm_study(tmp_path_factory: pytest.TempPathFactory) -> SmallStudy:
    """The suite mini_vllm."""
    return make_verl_study(tmp_path_factory.mktemp("vllm"), "mini_vllm")


def check_run(small: SmallStudy, run: Path, stages: tuple[str, ...] = ("all",)) -> None:
    """Check what a finished run says and wrote."""
    record, metrics, rollouts = finished(run)
    updates = ROLLOUTS * UPDATES * len(stages)
    assert (record.rollouts, record.updates) == (ROLLOUTS, updates)
    assert metrics["update"].tolist() == list(range(1, updates + 1))
    assert metrics["rollout"].tolist() == sorted([*range(1, ROLLOUTS + 1)] * (updates // ROLLOUTS))
    assert metrics["stage"].tolist() == [stage for stage in stages for _ in range(UPDATES)] * ROLLOUTS
    numbers = metrics[["loss", "gradient_norm", "ratio_max", "clip_fraction", "entropy"]].to_numpy()
    assert np.isfinite(numbers).all()
    assert (metrics["gradient_norm"] > 0).any()
    assert metrics["responses"].sum() == ROLLOUTS * RESPONSES * len(stages)
    first = metrics.groupby("rollout").first()
    assert (first["ratio_max"] - 1).abs().max() < ON_POLICY_TOLERANCE
    assert rollouts["rollout"].tolist() == list(range(ROLLOUTS + 1))
    assert rollouts["validation"].between(0, 1).all()
    assert rollouts["reward_mean"].iloc[1:].between(0, 1).all()
    assert record.response_tokens == rollouts["response_tokens_total"].iloc[-1] > RESPONSES
    tokens = read_table(run / "tokens" / "rollout_000001.parquet", TOKEN_SCHEMA)
    assert set(tokens["update"]) == set(metrics.loc[metrics["rollout"] == 1, "update"])
    assert not (run / "states").exists()
    check_models(small, run, record.checkpoints["best"].rollout)


def check_models(small: SmallStudy, run: Path, best: int) -> None:
    """Check that the last model has moved from the base model, and that the best is one of those there were."""
    base, last = load_file(small.base / "model.safetensors"), load_file(run / "last" / "model.safetensors")
    assert base.keys() == last.keys()
    assert all(base[name].dtype == last[name].dtype for name in base)
    moved = max((last[name] - base[name]).abs().max().item() for name in base)
    assert 0 < moved < 0.1
    chosen = load_file(run / "best" / "model.safetensors")
    same = {0: base, ROLLOUTS: last}.get(best)
    assert same is None or all((chosen[name] == same[name]).all() for name in base)
    for kind in ("last", "best"):
        names = {path.name for path in (run / kind).iterdir()}
        assert {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"} < names
        config = json.loads((run / kind / "config.json").read_text())
        assert config == json.loads((small.base / "config.json").read_text())


def rollout_difference(said: str) -> float:
    """Return, and report, the largest difference of a token's probability between sampling and training."""
    found = [float(value) for value in re.findall(r"rollout_probs_diff_max:(?:np\.float\d+\()?([-\d.e]+)", said)]
    assert len(found) == ROLLOUTS, found
    REPORT.append(f"largest difference of a token's probability between sampling and training: {max(found):.1e}")
    return max(found)


@pytest.mark.parametrize("method", ["ar_lopti", "high_entropy"])
def test_transformers_rollouts(transformers_study: SmallStudy, tmp_path: Path, method: str) -> None:
    run = tmp_path / "run"
    training = Training.start(transformers_study, f"mini_verl_{method}_offp", run)
    assert training.wait() == 0
    assert training.leaves_no_orphans()
    assert rollout_difference(training.said()) < ROLLOUT_DIFFERENCE
    stages = ("low_probability", "high_probability") if method == "ar_lopti" else ("all",)
    check_run(transformers_study, run, stages)


def test_killed_and_resumed(transformers_study: SmallStudy, tmp_path: Path) -> None:
    """DAPO; the launcher is killed after the first checkpoint, and the same command goes on."""
    run = tmp_path / "run"
    killed = Training.start(transformers_study, "mini_verl_dapo_offp", run)
    killed.until(lambda run: (run / "states" / "latest_checkpointed_iteration.txt").exists())
    killed.process.kill()
    killed.process.wait()
    assert killed.leaves_no_orphans()
    assert not (run / "run.json").exists()
    resumed = Training.start(transformers_study, "mini_verl_dapo_offp", run)
    assert resumed.wait() == 0
    assert resumed.leaves_no_orphans()
    assert "setting global step to " in resumed.said()
    check_run(transformers_study, run)


def test_vllm_rollouts(vllm_study: SmallStudy, tmp_path: Path) -> None:
    """ACPO, whose statistics cost a forward pass more."""
    run = tmp_path / "run"
    training = Training.start(vllm_study, "mini_vllm_acpo_offp", run)
    assert training.wait() == 0
    assert training.leaves_no_orphans()
    assert rollout_difference(training.said()) < ROLLOUT_DIFFERENCE
    check_run(vllm_study, run)
