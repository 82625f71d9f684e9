"""verl's training worker with what an objective needs beyond a micro-batch: pooled statistics, stages, records.

verl's engine runs forward and backward, and its `ppo_loss` calls the objective (see `acpo.engines.verl.losses`).
FSDP averages gradients over ranks, so each rank's share of the loss is multiplied by their number.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import torch
import torch.distributed as dist
from tensordict import TensorDict
from torch import Tensor
from verl.utils import tensordict_utils as tu
from verl.utils.device import get_device_id
from verl.workers.engine_workers import TrainingWorker
from verl.workers.utils.padding import no_padding_2_padding

from acpo.engines import EngineError
from acpo.engines.token_table import token_rows
from acpo.engines.verl.losses import MicroBatch, ObjectiveLossConfig, active
from acpo.engines.verl.pooling import metrics_over_ranks, pooled_over_ranks
from acpo.engines.verl.ratios import RatioCheck
from acpo.engines.verl.records import write_tokens, write_updates
from acpo.errors import ConfigError
from acpo.objectives import Objective, Statistics, TokenBatch, UpdateMetrics

ROLLOUT_KEY = "acpo_rollout"
"""Where the trainer writes the number of the rollout, from 1, in the batch's metadata."""


@dataclass
class Update:
    """One optimizer step while it is computed.

    Args:
        objective: The method.
        stage: Which pass of the method.
        whole: Statistics of the mini-batch, over all micro-batches and ranks.
        group: The data-parallel ranks.
    """

    objective: Objective
    stage: str
    whole: Statistics
    group: dist.ProcessGroup
    tokens: list[pd.DataFrame] = field(default_factory=list)
    _metrics: list[UpdateMetrics] = field(default_factory=list)
    _value: float = 0.0
    _ratio_error: float = 0.0

    def share(self, batch: TokenBatch) -> Tensor:
        """Return a micro-batch's share of the mini-batch loss, times the number of ranks."""
        loss = self.objective.loss(batch, self._statistics(batch), self.stage)
        self._metrics.append(loss.metrics)
        self._value += loss.value.item()
        self._ratio_error = max(self._ratio_error, largest_ratio_error(batch))
        return loss.value * dist.get_world_size(self.group)

    def facts(self) -> dict[str, float]:
        """Return what is logged of the whole update; every rank must call it."""
        metrics = self._metrics[0]
        for other in self._metrics[1:]:
            metrics = metrics + other
        device = metrics.bins.device
        value = torch.tensor(self._value, dtype=torch.float64, device=device)
        dist.all_reduce(value, group=self.group)
        return {"loss": value.item()} | metrics_over_ranks(metrics, self.group).summary()

    def ratio_error(self) -> float:
        """Return max |rho - 1| over all response tokens; every rank must call it."""
        error = torch.tensor(self._ratio_error, dtype=torch.float64, device=self.whole.counts.device)
        dist.all_reduce(error, op=dist.ReduceOp.MAX, group=self.group)
        return error.item()

    def _statistics(self, batch: TokenBatch) -> Statistics:
        if self.objective.pool == "minibatch":
            return self.whole
        own = self.objective.statistics(batch)
        if self.objective.pool == "ranks":
            own = pooled_over_ranks(own, self.group)
        return Statistics(self.whole.counts, own.sums, own.values)


class ObjectiveWorker(TrainingWorker):  # type: ignore[misc]
    """Trains the actor with one of our objectives."""

    def set_loss_fn(self, loss_fn: Callable[..., Any]) -> None:
        """Take verl's loss, whose configuration names the objective.

        Raises:
            ConfigError: the configuration is not that of an objective, or lacks what one needs.
        """
        config = loss_fn.keywords["config"]  # type: ignore[attr-defined]
        settings = config.policy_loss
        if not isinstance(settings, ObjectiveLossConfig):
            raise ConfigError(f"policy_loss._target_: expected ObjectiveLossConfig, found {type(settings).__name__}")
        if not config.calculate_entropy:
            raise ConfigError("actor.calculate_entropy: set it: objectives select by entropy and log it")
        if config.ppo_epochs != 1:
            raise ConfigError("actor.ppo_epochs: set it to 1: an objective's stages are its passes")
        if self.engine_config.ulysses_sequence_parallel_size != 1:
            raise ConfigError("actor.fsdp_config.ulysses_sequence_parallel_size: set it to 1")
        self._settings = settings
        self._objective = settings.objective()
        self._verl_loss = loss_fn
        self.loss_fn = self._micro_batch_loss

    def train_mini_batch(self, data: TensorDict) -> TensorDict:
        """Make all updates of a rollout: every stage of the objective passes over all mini-batches.

        Raises:
            EngineError: the batch has no rollout number, or importance ratios that cannot be right.
        """
        rollout = tu.pop(data, ROLLOUT_KEY)
        if rollout is None:
            raise EngineError("the batch has no rollout number: acpo's trainer did not send it")
        self._rollout = int(rollout)
        self._rows: list[dict[str, Any]] = []
        self._ratios = RatioCheck(self._rollout, self._precision())
        outputs = []
        mini_batches = len(data) // self._responses_per_update(data)
        self._updates_per_rollout = mini_batches * len(self._objective.stages)
        for stage in self._objective.stages:
            self._stage = stage
            outputs.append(super().train_mini_batch(data.copy()))
        self._ratios.finish()
        if dist.get_rank() == 0:
            write_updates(Path(self._settings.record_directory), self._rollout, self._rows)
        return joined(outputs)

    def train_batch(self, data: TensorDict) -> TensorDict:
        """Make one update; the learning rate advances once a rollout, after its last stage."""
        if self._stage != self._objective.stages[-1]:
            tu.assign_non_tensor(data, update_lr_scheduler=False)
        group = self.engine.get_data_parallel_group()
        self._update = Update(self._objective, self._stage, self._pooled(data, group), group)
        output = super().train_batch(data)
        number = (self._rollout - 1) * self._updates_per_rollout + len(self._rows) + 1
        facts = self._update.facts()
        metrics = tu.get(output, "metrics")
        norm = metrics["grad_norm"]
        facts |= {"gradient_norm": norm, "skipped": float(not math.isfinite(norm))}
        error = self._update.ratio_error()
        self._ratios.add(facts, error)
        logged = {"on_policy_error": error} if not self._rows else {}
        self._rows.append({"rollout": self._rollout, "update": number, "stage": self._stage, **facts})
        self._store_tokens(number)
        logged |= {f"update/{key}": value for key, value in facts.items() if math.isfinite(value)}
        tu.assign_non_tensor_data(output, "metrics", metrics | logged)
        return output

    def _micro_batch_loss(self, model_output: dict[str, Tensor], data: TensorDict, dp_group: Any) -> tuple[Tensor, Any]:
        def share(batch: TokenBatch) -> Tensor:
            if self._rollout in self._settings.token_store_rollouts:
                self._update.tokens.append(rows_of(batch, data))
            return self._update.share(batch)

        entropy = no_padding_2_padding(model_output["entropy"], data).detach()
        with active(MicroBatch(entropy, share)):
            return self._verl_loss(model_output=model_output, data=data, dp_group=dp_group)

    def _pooled(self, data: TensorDict, group: dist.ProcessGroup) -> Statistics:
        """Pool statistics over the mini-batch, with a forward pass only where they depend on the current policy."""
        needs_policy = self._objective.statistic_needs_policy and self._objective.pool == "minibatch"
        batch = self._scored(data) if needs_policy else mask_only(data)
        return pooled_over_ranks(self._objective.statistics(batch), group)

    def _scored(self, data: TensorDict) -> TokenBatch:
        request = data.copy()
        tu.assign_non_tensor(request, compute_loss=False, calculate_entropy=True)
        scores = self.infer_batch(request)
        known = mask_only(data)
        device = known.mask.device
        return TokenBatch(
            log_prob=no_padding_2_padding(tu.get(scores, "log_probs"), data).to(device),
            old_log_prob=data["old_log_probs"].to_padded_tensor(0).to(device),
            mask=known.mask,
            advantage=known.advantage,
            entropy=no_padding_2_padding(tu.get(scores, "entropy"), data).to(device),
        )

    def _store_tokens(self, number: int) -> None:
        if not self._update.tokens:
            return
        frame = pd.concat(self._update.tokens, ignore_index=True)
        frame = frame.assign(run=self._settings.run, rollout=self._rollout, update=number)
        write_tokens(Path(self._settings.record_directory), self._rollout, number, dist.get_rank(), frame)

    def _responses_per_update(self, data: TensorDict) -> int:
        return int(tu.get(data, "mini_batch_size")) // self.engine.get_data_parallel_size()

    def _precision(self) -> str:
        precision = self.engine_config.mixed_precision or {}
        return str(precision.get("param_dtype", "bf16"))


def mask_only(data: TensorDict) -> TokenBatch:
    """Make a batch of which only the mask is known, on the device where losses are computed."""
    mask = data["response_mask"].to_padded_tensor(0).bool().to(get_device_id())
    zeros = torch.zeros(mask.shape, device=mask.device)
    return TokenBatch(zeros, zeros, mask, zeros[:, 0], zeros)


def rows_of(batch: TokenBatch, data: TensorDict) -> pd.DataFrame:
    """List a micro-batch's tokens with the question and the number of the sample that verl's batch carries."""
    tokens = data["responses"].to_padded_tensor(0)
    questions = [str(info["id"]) for info in tu.get(data, "extra_info")]
    return token_rows(batch, tokens, questions, [int(sample) for sample in tu.get(data, "session_id")])


def largest_ratio_error(batch: TokenBatch) -> float:
    """Return max |rho - 1| over the response tokens of a micro-batch, 0 without any; inf where it is not a number."""
    error = (batch.log_ratio().detach().exp() - 1).abs()[batch.mask].nan_to_num(nan=math.inf)
    return error.max().item() if error.numel() else 0.0


def joined(outputs: list[TensorDict]) -> TensorDict:
    """Join the outputs of several passes: each metric is a list with a number for every update."""
    metrics: dict[str, list[Any]] = {}
    for output in outputs:
        for key, values in tu.get(output, "metrics").items():
            metrics.setdefault(key, []).extend(values)
    return tu.get_tensordict(tensor_dict={}, non_tensor_dict={"metrics": metrics})
