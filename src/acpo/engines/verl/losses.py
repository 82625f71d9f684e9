"""The objectives in verl's registry of policy losses: loss mode `acpo_<objective>`.

verl's `ppo_loss` selects a registered loss and calls it for every micro-batch with log-probabilities, advantages and
mask. What it does not pass on, the entropy and what must be known of the whole mini-batch, the worker holds ready for
the time of the call (see `acpo.engines.verl.worker`).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from pydantic import ValidationError
from torch import Tensor
from verl.trainer.ppo.core_algos import register_policy_loss
from verl.workers.config import ActorConfig, PolicyLossConfig

from acpo.engines import EngineError
from acpo.engines.verl.overrides import LOSS_MODE_PREFIX, loss_mode
from acpo.errors import ConfigError
from acpo.objectives import Objective, TokenBatch, make_objective, objective_names


@dataclass
class ObjectiveLossConfig(PolicyLossConfig):  # type: ignore[misc]
    """The section `actor_rollout_ref.actor.policy_loss` of a run with one of our objectives.

    Args:
        parameters: The objective's parameters, checked by its own model: none has a default.
        record_directory: Where workers and trainer write what is recorded (see `acpo.engines.verl.records`).
        run: Cell and seed, as they stand in the token store.
        token_store_rollouts: At which rollouts tokens are kept (1 is the first).

    Raises:
        ConfigError: the loss mode is not one of ours, or a parameter is missing, unknown or out of range.
    """

    parameters: dict[str, Any] = field(default_factory=dict)
    record_directory: str = ""
    run: str = ""
    token_store_rollouts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name in ("record_directory", "run"):
            if not getattr(self, name):
                raise ConfigError(f"policy_loss.{name}: is empty: give it")
        self.objective()

    def objective(self) -> Objective:
        """Make the objective that loss mode and parameters describe.

        Raises:
            ConfigError: no such objective, or parameters that it refuses; names the key.
        """
        if not self.loss_mode.startswith(LOSS_MODE_PREFIX):
            raise ConfigError(f"policy_loss.loss_mode: {self.loss_mode!r} does not begin with {LOSS_MODE_PREFIX!r}")
        try:
            return make_objective(self.loss_mode.removeprefix(LOSS_MODE_PREFIX), self.parameters)
        except ValidationError as error:
            faults = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
            raise ConfigError(f"policy_loss.parameters: {faults}") from error
        except ValueError as error:
            raise ConfigError(f"policy_loss.loss_mode: {error}") from error


@dataclass(frozen=True)
class MicroBatch:
    """What a registered loss needs beyond verl's arguments.

    Args:
        entropy: (responses, tokens) entropy of the current policy, in nats.
        share: From the tokens to this micro-batch's share of the mini-batch loss, scaled for the engine.
    """

    entropy: Tensor
    share: Callable[[TokenBatch], Tensor]


_active: ContextVar[MicroBatch | None] = ContextVar("micro_batch", default=None)


@contextmanager
def active(micro_batch: MicroBatch) -> Iterator[None]:
    """Hold a micro-batch ready for the registered loss."""
    token = _active.set(micro_batch)
    try:
        yield
    finally:
        _active.reset(token)


def objective_loss(
    old_log_prob: Tensor,
    log_prob: Tensor,
    advantages: Tensor,
    response_mask: Tensor,
    loss_agg_mode: str,  # noqa: ARG001 - an objective aggregates by its own parameter
    config: ActorConfig,  # noqa: ARG001 - the worker has read it
    rollout_is_weights: Tensor | None = None,
) -> tuple[Tensor, dict[str, Any]]:
    """Compute a micro-batch's share of the mini-batch loss, as verl calls it.

    Args:
        old_log_prob: (responses, tokens) log-probabilities under the behavior policy.
        log_prob: (responses, tokens) under the current policy, with gradient.
        advantages: (responses, tokens) the response's advantage at each of its tokens.
        response_mask: (responses, tokens) bool.
        loss_agg_mode: Not used: see the objective's `aggregation`.
        config: Not used.
        rollout_is_weights: Must be None: no objective has weights of rollout correction.

    Returns:
        The scaled share, and no metrics: the worker records them.

    Raises:
        EngineError: called outside our worker, or with advantages or weights that no objective knows.
    """
    micro_batch = _active.get()
    if micro_batch is None:
        raise EngineError(
            f"a loss mode {LOSS_MODE_PREFIX}* was called outside acpo's worker: "
            "let VERL_USE_EXTERNAL_MODULES name acpo.engines.verl.plugin"
        )
    if rollout_is_weights is not None:
        raise EngineError("algorithm.rollout_correction: its weights are not part of any objective: leave it unset")
    batch = TokenBatch(
        log_prob=log_prob,
        old_log_prob=old_log_prob,
        mask=response_mask,
        advantage=response_advantage(advantages, response_mask),
        entropy=micro_batch.entropy,
    )
    return micro_batch.share(batch), {}


def response_advantage(advantages: Tensor, mask: Tensor) -> Tensor:
    """Read the advantage of each response off its first token.

    Args:
        advantages: (responses, tokens) as verl spreads them.
        mask: (responses, tokens) bool, response tokens.

    Returns:
        (responses,) advantages; 0 for a response without tokens.

    Raises:
        EngineError: tokens of one response differ in advantage.
    """
    first = mask.to(torch.uint8).argmax(dim=1, keepdim=True)
    value = torch.where(mask.any(dim=1, keepdim=True), advantages.gather(1, first), 0.0)
    if bool(((advantages != value) & mask).any()):
        raise EngineError("tokens of one response differ in advantage: set algorithm.adv_estimator=grpo")
    return value.squeeze(1)


for _name in objective_names():
    register_policy_loss(loss_mode(_name))(objective_loss)
