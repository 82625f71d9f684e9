"""One data-parallel rank of verl's training worker, without Ray: runs cases and keeps losses, gradients and records.

Run as a script, `training_rank.py DIRECTORY`, with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set and with
VERL_USE_EXTERNAL_MODULES as the launcher sets it on a CPU. It reads `tokens.pt` and `cases.json` there; rank 0 writes
`results_<ranks>.pt`.
"""

import json
import math
import os
import sys
from collections.abc import Callable
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
from verl.workers.utils.padding import response_from_nested

from acpo.engines import EngineError
from acpo.engines.verl.losses import ObjectiveLossConfig
from acpo.engines.verl.worker import ROLLOUT_KEY, ObjectiveWorker, Update


def main(directory: Path) -> None:
    tokens = torch.load(directory / "tokens.pt", weights_only=True)
    cases = json.loads((directory / "cases.json").read_text())
    workers = {precision: make_worker(directory / "model", precision) for precision in ("fp32", "bf16")}
    results = {}
    for case in cases:
        records = directory / f"records_{dist.get_world_size()}" / case["name"]
        results[case["name"]] = run_case(workers[case["precision"]], tokens, case, records)
    if dist.get_rank() == 0:
        torch.save(results, directory / f"results_{dist.get_world_size()}.pt")
    dist.destroy_process_group()


def run_case(worker: ObjectiveWorker, tokens: dict[str, Any], case: dict[str, Any], records: Path) -> dict[str, Any]:
    """Make all updates of a rollout and return what can be seen of them."""
    worker.kept_gradients.clear()
    worker.forward_passes = 0
    worker.set_loss_fn(partial(ppo_loss, config=actor_config(case, records)))
    for group in worker.engine.optimizer.param_groups:
        group["lr"] = case["learning_rate"]
    weights, scheduled = whole_weights(worker), worker.engine.lr_scheduler.last_epoch
    data = rank_data(tokens, case)
    if case["precision"] == "bf16":
        score_anew(worker, data)
    try:
        with faulty(case["fault"]):
            metrics = tu.get(worker.train_mini_batch(data), "metrics")
    except EngineError as error:
        return {"error": str(error)}
    moved = [(value - weights[name]).abs().max() for name, value in whole_weights(worker).items()]
    return {
        "loss": metrics["loss"],
        "gradients": list(worker.kept_gradients),
        "scheduler_steps": worker.engine.lr_scheduler.last_epoch - scheduled,
        "updates_logged": len(metrics["update/tokens"]),
        "on_policy_error": metrics["on_policy_error"],
        "forward_passes": worker.forward_passes,
        "moved": max(moved).item(),
    }


def make_worker(model: Path, precision: str) -> ObjectiveWorker:
    """Make verl's worker with its FSDP2 engine, which keeps gradients and counts passes without an update."""
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
            mixed_precision={"param_dtype": precision},
            use_torch_compile=False,
            micro_batch_size_per_gpu=1,
            infer_micro_batch_size_per_gpu=2,
            use_dynamic_bsz=False,
        ),
        optimizer_config=FSDPOptimizerConfig(lr=0.0, clip_grad=1.0, weight_decay=0.0, total_training_steps=1000),
    )
    worker = ActorRolloutRefWorker.actor_worker_cls(config=config)
    worker.reset()
    worker.kept_gradients = []
    step, infer = worker.engine.optimizer_step, worker.engine.infer_batch

    def observed_step() -> float:
        parameters = worker.engine.module.named_parameters()
        worker.kept_gradients.append({name: whole.grad.full_tensor().clone() for name, whole in parameters})
        return step()

    def counted_infer(*arguments: Any, **options: Any) -> Any:
        worker.forward_passes += 1
        return infer(*arguments, **options)

    worker.engine.optimizer_step, worker.engine.infer_batch = observed_step, counted_infer
    return worker


def whole_weights(worker: ObjectiveWorker) -> dict[str, Tensor]:
    return {name: value.full_tensor().detach().clone() for name, value in worker.engine.module.named_parameters()}


def score_anew(worker: ObjectiveWorker, data: TensorDict) -> None:
    """Compute old log-probabilities as verl's trainer does: by the worker, in its precision and its own split."""
    request = data.copy()
    tu.assign_non_tensor(request, compute_loss=False, micro_batch_size_per_gpu=2)
    scores = tu.get(worker.infer_batch(request), "log_probs")
    data["old_log_probs"] = response_from_nested(scores, data["response_mask"])


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
    tokens = tokens | TAMPERED[case["tampering"]](tokens)
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


TAMPERED: dict[str | None, Callable[[dict[str, Any]], dict[str, Any]]] = {
    None: lambda tokens: {},
    "infinite advantage": lambda tokens: {"advantages": [part * math.inf for part in tokens["advantages"]]},
    "old log-probabilities of another policy": lambda tokens: {
        "old_log_probs": [part - 0.01 for part in tokens["old_log_probs"]]
    },
}


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
