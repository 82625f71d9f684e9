"""One data-parallel rank of verl's training worker, without Ray: runs cases and keeps losses, gradients and records.

Run as a script, `training_rank.py DIRECTORY`, with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set and with
VERL_USE_EXTERNAL_MODULES as the launcher sets it on a CPU. It reads `tokens.pt` and `cases.json` there; rank 0 writes
`results_<ranks>.pt`.
"""

import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import torch.distributed as dist
from tensordict import NonTensorData, TensorDict
from torch import Tensor
from verl.utils import tensordict_utils as tu
from verl.workers.config import (
    ActorConfig,
    FSDPEngineConfig,
    FSDPOptimizerConfig,
    HFModelConfig,
    TrainingWorkerConfig,
)
from verl.workers.engine_workers import ActorRolloutRefWorker
from verl.workers.utils.losses import ppo_loss

from acpo.engines.verl.losses import ObjectiveLossConfig
from acpo.engines.verl.worker import ROLLOUT_KEY, ObjectiveWorker, Update


def main(directory: Path) -> None:
    tokens = torch.load(directory / "tokens.pt", weights_only=True)
    cases = json.loads((directory / "cases.json").read_text())
    worker = make_worker(directory / "model")
    gradients: list[dict[str, Tensor]] = []
    keep_gradients(worker, gradients)
    results = {}
    for case in cases:
        gradients.clear()
        records = directory / f"records_{dist.get_world_size()}" / case["name"]
        worker.set_loss_fn(partial(ppo_loss, config=actor_config(case, records)))
        before = worker.engine.lr_scheduler.last_epoch
        with faulty(case.get("fault")):
            metrics = tu.get(worker.train_mini_batch(rank_data(tokens, case)), "metrics")
        results[case["name"]] = {
            "loss": metrics["loss"],
            "pg_loss": [float(value) for value in metrics["actor/pg_loss"]],
            "gradients": list(gradients),
            "scheduler_steps": worker.engine.lr_scheduler.last_epoch - before,
            "updates_logged": len(metrics["update/tokens"]),
            "forward_passes": worker.forward_passes,
        }
        worker.forward_passes = 0
    if dist.get_rank() == 0:
        torch.save(results, directory / f"results_{dist.get_world_size()}.pt")
    dist.destroy_process_group()


def make_worker(model: Path) -> ObjectiveWorker:
    """Make verl's worker with its FSDP2 engine in fp32; the learning rate is 0, so that every case meets one policy."""
    config = TrainingWorkerConfig(
        model_type="language_model",
        model_config=HFModelConfig(
            path=str(model),
            load_tokenizer=False,
            use_remove_padding=False,
            enable_gradient_checkpointing=False,
            override_config={"attn_implementation": "sdpa"},
        ),
        engine_config=FSDPEngineConfig(
            strategy="fsdp2",
            mixed_precision={"param_dtype": "fp32"},
            use_torch_compile=False,
            micro_batch_size_per_gpu=1,
            infer_micro_batch_size_per_gpu=2,
            use_dynamic_bsz=False,
        ),
        optimizer_config=FSDPOptimizerConfig(lr=0.0, clip_grad=1.0, total_training_steps=1000),
    )
    worker = ActorRolloutRefWorker.actor_worker_cls(config=config)
    worker.reset()
    worker.forward_passes = 0
    infer = worker.engine.infer_batch

    def counted(*arguments: Any, **options: Any) -> Any:
        worker.forward_passes += 1
        return infer(*arguments, **options)

    worker.engine.infer_batch = counted
    return worker


def keep_gradients(worker: ObjectiveWorker, kept: list[dict[str, Tensor]]) -> None:
    """Copy all gradients, whole and before clipping, at each optimizer step."""
    step = worker.engine.optimizer_step

    def observed_step() -> float:
        parameters = dict(worker.engine.module.named_parameters())
        kept.append({name: parameter.grad.full_tensor().clone() for name, parameter in parameters.items()})
        return step()

    worker.engine.optimizer_step = observed_step


def actor_config(case: dict[str, Any], records: Path) -> ActorConfig:
    loss = ObjectiveLossConfig(
        loss_mode=f"acpo_{case['objective']}",
        parameters=case["parameters"],
        record_directory=str(records),
        run="mini_verl/seed0",
        token_store_rollouts=[1],
    )
    return ActorConfig(
        strategy="fsdp2",
        rollout_n=1,
        ppo_micro_batch_size_per_gpu=1,
        policy_loss=loss,
        calculate_entropy=True,
        loss_agg_mode="seq-mean-token-mean",
    )


def rank_data(tokens: dict[str, Any], case: dict[str, Any]) -> TensorDict:
    """Make this rank's part of every mini-batch as verl's trainer sends it."""
    rank, ranks, size = dist.get_rank(), dist.get_world_size(), tokens["mini_batch"]
    rows = [row for row in range(len(tokens["prompts"])) if row % size // (size // ranks) == rank]
    data = {
        name: nested([tokens[name][row] for row in rows])
        for name in ("prompts", "responses", "response_mask", "old_log_probs", "advantages")
    }
    sequences = [torch.cat([tokens["prompts"][row], tokens["responses"][row]]) for row in rows]
    data["input_ids"] = nested(sequences)
    data["position_ids"] = nested([torch.arange(len(sequence)) for sequence in sequences])
    data["loss_mask"] = data["response_mask"]
    batch = TensorDict(data, batch_size=len(rows))
    tu.assign_non_tensor(
        batch,
        extra_info=[{"id": f"question{row // 4}"} for row in rows],
        session_id=[row % 4 for row in rows],
        calculate_entropy=True,
        global_batch_size=size,
        mini_batch_size=size,
        epochs=1,
        seed=0,
        dataloader_kwargs=NonTensorData({"shuffle": False}),
        temperature=tokens["temperature"],
        pad_token_id=0,
        use_dynamic_bsz=case["micro"] == "dynamic",
        max_token_len_per_gpu=tokens["dynamic_limit"],
        micro_batch_size_per_gpu=size // ranks if case["micro"] in ("all", "dynamic") else case["micro"],
        **{ROLLOUT_KEY: 1},
    )
    return batch


def nested(parts: list[Tensor]) -> Tensor:
    return torch.nested.as_nested_tensor(parts, layout=torch.jagged)


def faulty(fault: str | None) -> Any:
    """Break the worker for a negative control."""
    if fault is None:
        return mock.patch.object(Update, "share", Update.share)
    if fault == "gradient not multiplied by ranks":
        share = Update.share
        return mock.patch.object(Update, "share", lambda self, batch: share(self, batch) / dist.get_world_size())
    if fault == "statistics of the micro-batch":
        return mock.patch.object(
            Update,
            "_statistics",
            lambda self, batch: type(self.whole)(self.whole.counts, *_own(self.objective.statistics(batch))),
        )
    if fault == "normalised by the micro-batch":
        return mock.patch.object(Update, "_statistics", lambda self, batch: self.objective.statistics(batch))
    raise ValueError(fault)


def _own(statistics: Any) -> tuple[Tensor, Tensor]:
    return statistics.sums, statistics.values


if __name__ == "__main__":
    os.environ.setdefault("LOCAL_RANK", os.environ["RANK"])
    main(Path(sys.argv[1]))
