"""verl's synchronous trainer with mini-batches of whole prompts and a record of every rollout."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
import transfer_queue as tq
from omegaconf import DictConfig
from tensordict import TensorDict
from transfer_queue import KVBatchMeta
from transformers import GenerationConfig
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync
from verl.utils.seqlen_balancing import calculate_workload, get_seqlen_balanced_partitions

from acpo.engines import EngineError
from acpo.engines.verl.checkpoints import STOP_FILE, keep_best, keep_newest
from acpo.engines.verl.records import (
    RolloutFacts,
    ValidationFacts,
    forget_after,
    has_validation,
    read_validation,
    write_rollout,
    write_validation,
)
from acpo.engines.verl.worker import ROLLOUT_KEY

UPDATE_TIMERS = ("old_log_prob", "adv", "update_actor")


class RecordingTrainer(PPOTrainerSync):  # type: ignore[misc]
    """Trains as verl does; prompts keep their order, and what happens is recorded."""

    def __init__(self, config: DictConfig) -> None:
        super().__init__(config)
        self._records = Path(config.actor_rollout_ref.actor.policy_loss.record_directory)
        self._states = Path(config.trainer.default_local_dir)
        self.total_training_steps: int
        self._order: dict[str, int] = {}
        self._resumed = True

    def on_train_begin(self) -> None:
        """See verl: validation before this is that of the policy that training starts from."""
        super().on_train_begin()
        self._resumed = False

    def on_validate_end(self) -> None:
        """See verl: the best model so far is kept from the rotation of checkpoints."""
        super().on_validate_end()
        keep_best(self._states, read_validation(self._records))

    def on_step_end(self) -> None:
        """See verl: a request to stop ends training after this step, with a checkpoint of it."""
        super().on_step_end()
        if (self._states.parent / STOP_FILE).exists() and self.global_steps < self.total_training_steps:
            if self.global_steps % self.config.trainer.save_freq:
                self._save_checkpoint()
            self.total_training_steps = self.global_steps

    def step(self, metrics: dict[str, Any], timing_raw: dict[str, float]) -> KVBatchMeta:
        """Make a rollout and its updates, and record its facts before a checkpoint can contain it."""
        batch = super().step(metrics, timing_raw)
        responses = self._responses(batch)
        facts = RolloutFacts(
            rollout=self.global_steps,
            on_policy_error=float(metrics["actor/on_policy_error"]),
            sampling_seconds=timing_raw["gen"],
            update_seconds=sum(timing_raw[name] for name in UPDATE_TIMERS),
            **responses,
        )
        write_rollout(self._records, facts)
        return batch

    def _init_tokenizer(self) -> None:
        super()._init_tokenizer()
        ends = GenerationConfig.from_pretrained(self.config.actor_rollout_ref.model.path).eos_token_id
        self._end_tokens = {self.tokenizer.eos_token_id, *(ends if isinstance(ends, list) else [ends])}

    def _load_checkpoint(self) -> None:
        super()._load_checkpoint()
        forget_after(self._records, self.global_steps)

    def _save_checkpoint(self) -> None:
        super()._save_checkpoint()
        keep_newest(self._states, self.config.trainer.max_actor_ckpt_to_keep)

    def _submit_batch_to_rollout(self, batch: TensorDict) -> int:
        self._order = {uid: place for place, uid in enumerate(batch["uid"])}
        return int(super()._submit_batch_to_rollout(batch))

    def _balance_batch(self, batch: KVBatchMeta, metrics: dict[str, Any], **options: Any) -> KVBatchMeta:
        """Order responses by prompt and deal each mini-batch out to the ranks, so that it holds whole prompts.

        verl leaves them in the order in which sampling ended, short ones first, and deals out the rollout as a whole.
        """
        expected = self.config.data.train_batch_size * self.config.actor_rollout_ref.rollout.n
        if len(batch) != expected:
            raise EngineError(
                f"rollout {self.global_steps}: {len(batch)} responses of {expected}: sampling or grading failed for "
                "the others, see the errors above"
            )
        batch = super()._balance_batch(batch, metrics, **options)
        batch.reorder(sorted(range(len(batch)), key=lambda row: self._place(batch.keys[row])))
        ranks = max(self.actor_rollout_wg._dispatch_info["actor"]) + 1
        settings = self.config.actor_rollout_ref
        size = settings.actor.ppo_mini_batch_size * settings.rollout.n
        batch.reorder(dealt_to_ranks([tag["seq_len"] for tag in batch.tags], size, ranks))
        return batch

    def _place(self, key: str) -> tuple[int, int]:
        """Return the place of a response, whose key is `{uid}_{sample}_{part}`; verl's padding comes last."""
        uid, sample, _ = key.rsplit("_", 2)
        return self._order.get(uid, len(self._order)), int(sample)

    def _update_actor(self, batch: KVBatchMeta, metrics: dict[str, Any]) -> KVBatchMeta:
        batch.extra_info[ROLLOUT_KEY] = self.global_steps
        return super()._update_actor(batch, metrics)

    def _val_metrics_update(
        self,
        data_sources: list[str],
        sample_uids: list[str],
        reward_extra_infos_dict: dict[str, list[Any]],
        sample_turns: list[int],
        expected_acc_counts: dict[tuple[str, str], int],
    ) -> dict[str, float]:
        correct = sum(reward_extra_infos_dict["reward"])
        accuracy = float(correct / sum(expected_acc_counts.values()))
        if not (self._resumed and has_validation(self._records, self.global_steps)):
            write_validation(self._records, ValidationFacts(rollout=self.global_steps, validation=accuracy))
        metrics: dict[str, float] = super()._val_metrics_update(
            data_sources, sample_uids, reward_extra_infos_dict, sample_turns, expected_acc_counts=expected_acc_counts
        )
        return metrics

    def _responses(self, batch: KVBatchMeta) -> dict[str, Any]:
        """Return the facts that rewards and lengths tell; verl's padding is left out."""
        rows = [row for row, tag in enumerate(batch.tags) if not tag.get("is_padding", False)]
        keys = [batch.keys[row] for row in rows]
        data = tq.kv_batch_get(keys=keys, partition_id=batch.partition_id, select_fields=["responses", "rm_scores"])
        reward = np.array([scores.sum().item() for scores in data["rm_scores"].unbind()])
        responses = data["responses"].unbind()
        lengths = np.array([len(tokens) for tokens in responses])
        limit = self.config.data.max_response_length
        truncated = [len(tokens) >= limit and int(tokens[-1]) not in self._end_tokens for tokens in responses]
        groups: dict[str, list[float]] = {}
        for key, value in zip(keys, reward, strict=True):
            groups.setdefault(key.rsplit("_", 2)[0], []).append(value)
        return {
            "reward_mean": float(reward.mean()),
            "response_tokens_mean": float(lengths.mean()),
            "response_tokens": int(lengths.sum()),
            "truncation_rate": float(np.mean(truncated)),
            "zero_variance_fraction": float(np.mean([min(group) == max(group) for group in groups.values()])),
        }


def dealt_to_ranks(lengths: list[int], size: int, ranks: int) -> list[int]:
    """Deal each mini-batch out to ranks that each get as many responses and about as much work.

    Args:
        lengths: Tokens of each sequence, in the order of mini-batches.
        size: Responses of a mini-batch over all ranks.
        ranks: Number of ranks.

    Returns:
        The order in which verl, which gives each rank a contiguous part, gives it its part of every mini-batch.
    """
    workload = calculate_workload(torch.tensor(lengths, dtype=torch.int64))
    parts: list[list[int]] = [[] for _ in range(ranks)]
    for start in range(0, len(lengths), size):
        chunk = workload[start : start + size]
        dealt = get_seqlen_balanced_partitions(chunk, k_partitions=ranks, equal_size=True)
        for part, chosen in zip(parts, dealt, strict=True):
            part += [start + row for row in chosen]
    return [row for part in parts for row in part]
