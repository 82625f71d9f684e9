"""The objectives as verl sees them: registry, configuration, arguments, and the order of a rollout's responses."""

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hydra.utils import instantiate
from verl.trainer.ppo.core_algos import get_policy_loss_fn
from verl.trainer.ppo.v1 import get_trainer_cls
from verl.workers.engine_workers import ActorRolloutRefWorker

import acpo.engines.verl.plugin  # noqa: F401
from acpo.engines import EngineError
from acpo.engines.verl.losses import MicroBatch, ObjectiveLossConfig, active, objective_loss, response_advantage
from acpo.engines.verl.trainer import RecordingTrainer, dealt_to_ranks
from acpo.engines.verl.worker import ObjectiveWorker
from acpo.errors import ConfigError
from acpo.objectives import objective_names

pytestmark = pytest.mark.verl

GRPO = {"clip": 0.2, "dual_clip": None, "aggregation": "token-mean"}
SETTINGS = {"loss_mode": "acpo_grpo", "parameters": GRPO, "record_directory": "records", "run": "a/seed0"}
MASK = torch.tensor([[True, True, False], [False, True, True], [False, False, False]])
ADVANTAGES = torch.tensor([[2.0, 2.0, 0.0], [0.0, -1.0, -1.0], [0.0, 0.0, 0.0]])


def test_verl_finds_objectives_worker_and_trainer() -> None:
    for name in objective_names():
        assert get_policy_loss_fn(f"acpo_{name}") is objective_loss
    assert ActorRolloutRefWorker.actor_worker_cls is ObjectiveWorker
    assert get_trainer_cls("sync") is RecordingTrainer


def test_hydra_makes_the_configuration() -> None:
    made = instantiate({"_target_": "acpo.engines.verl.losses.ObjectiveLossConfig", **SETTINGS}, _convert_="partial")
    assert made.objective().parameters.clip == 0.2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss_mode": "acpo_grop"}, "policy_loss.loss_mode: unknown objective 'grop': did you mean 'grpo'"),
        ({"loss_mode": "vanilla"}, "'vanilla' does not begin with 'acpo_'"),
        ({"parameters": {**GRPO, "clipp": 1}}, "policy_loss.parameters: clipp: Extra inputs"),
        ({"parameters": {"clip": 0.2, "dual_clip": None}}, "policy_loss.parameters: aggregation: Field required"),
        ({"parameters": {**GRPO, "clip": math.nan}}, "policy_loss.parameters: clip: "),
        ({"record_directory": ""}, "policy_loss.record_directory: is empty"),
        ({"run": ""}, "policy_loss.run: is empty"),
    ],
)
def test_a_wrong_configuration_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ObjectiveLossConfig(**{**SETTINGS, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"policy_loss": object()}, "policy_loss._target_: expected ObjectiveLossConfig, found object"),
        ({"calculate_entropy": False}, "actor.calculate_entropy: set it"),
        ({"ppo_epochs": 2}, "actor.ppo_epochs: set it to 1"),
        ({}, "ulysses_sequence_parallel_size: set it to 1"),
    ],
)
def test_a_worker_refuses_what_no_objective_can_use(change: dict[str, Any], message: str) -> None:
    config = {"policy_loss": ObjectiveLossConfig(**SETTINGS), "calculate_entropy": True, "ppo_epochs": 1, **change}
    worker = ObjectiveWorker.__new__(ObjectiveWorker)
    worker.engine_config = SimpleNamespace(ulysses_sequence_parallel_size=2)
    with pytest.raises(ConfigError, match=message):
        worker.set_loss_fn(SimpleNamespace(keywords={"config": SimpleNamespace(**config)}))


def test_the_advantage_is_that_of_the_first_token() -> None:
    assert response_advantage(ADVANTAGES, MASK).tolist() == [2.0, -1.0, 0.0]


def test_advantages_that_differ_within_a_response_are_refused() -> None:
    differing = ADVANTAGES.clone()
    differing[1, 2] = 1.0
    with pytest.raises(EngineError, match="adv_estimator=grpo"):
        response_advantage(differing, MASK)


def call(**options: Any) -> Any:
    zeros = torch.zeros(MASK.shape)
    return objective_loss(zeros, zeros, ADVANTAGES, MASK, "token-mean", None, **options)


def test_the_loss_is_the_share_of_the_active_micro_batch() -> None:
    entropy = torch.ones(MASK.shape)
    with active(MicroBatch(entropy, lambda batch: batch.advantage.sum() + batch.entropy.sum())):
        value, metrics = call()
    assert value.item() == 2.0 - 1.0 + 9.0
    assert metrics == {}


def test_a_loss_outside_the_worker_is_refused() -> None:
    with pytest.raises(EngineError, match="VERL_USE_EXTERNAL_MODULES"):
        call()


def test_weights_of_rollout_correction_are_refused() -> None:
    with active(MicroBatch(torch.ones(MASK.shape), lambda batch: batch.advantage.sum())):  # noqa: SIM117
        with pytest.raises(EngineError, match="rollout_correction"):
            call(rollout_is_weights=torch.ones(MASK.shape))


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_every_mini_batch_is_dealt_to_ranks_evenly(ranks: int) -> None:
    size, mini_batches = 8, 3
    lengths = torch.randint(1, 1000, (size * mini_batches,), generator=torch.Generator().manual_seed(0)).tolist()
    order = dealt_to_ranks(lengths, size, ranks)
    parts = [order[start : start + len(order) // ranks] for start in range(0, len(order), len(order) // ranks)]
    share = size // ranks
    for number in range(mini_batches):
        rows = [row for part in parts for row in part[number * share : (number + 1) * share]]
        assert sorted(rows) == list(range(number * size, (number + 1) * size))
    if ranks == 1:
        assert order == list(range(len(lengths)))
