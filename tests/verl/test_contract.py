"""Every name of verl, vLLM, Ray and TransferQueue that we touch, with what we rely on: an upgrade breaks here first.

`CONTRACT` is the one list: a function or class with the parameters or fields that we give or read. The tests find by
syntax what `src/acpo` imports, reads, calls through `super()` and overrides, and compare.
"""

import ast
import dataclasses
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.verl

SOURCE = Path(__file__).parents[2] / "src" / "acpo"
LIBRARIES = ("verl", "vllm", "ray", "transfer_queue")

CONTRACT = {
    "ray.get_actor": "name",
    "ray.get_runtime_context": "",
    "ray.init": "address log_to_driver configure_logging",
    "ray.nodes": "",
    "ray.remote": "",
    "ray.shutdown": "",
    "ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy": "node_id soft",
    "transfer_queue.KVBatchMeta": "keys tags partition_id extra_info",
    "transfer_queue.kv_batch_get": "keys partition_id select_fields",
    "verl.plugin.platform.PlatformBase": "",
    "verl.plugin.platform.PlatformBase.communication_backend_name": "",
    "verl.plugin.platform.PlatformBase.cudart": "",
    "verl.plugin.platform.PlatformBase.current_device": "",
    "verl.plugin.platform.PlatformBase.device_count": "",
    "verl.plugin.platform.PlatformBase.device_module": "",
    "verl.plugin.platform.PlatformBase.device_name": "",
    "verl.plugin.platform.PlatformBase.empty_cache": "",
    "verl.plugin.platform.PlatformBase.get_device_capability": "device_index",
    "verl.plugin.platform.PlatformBase.is_available": "",
    "verl.plugin.platform.PlatformBase.is_ipc_supported": "",
    "verl.plugin.platform.PlatformBase.manual_seed": "seed",
    "verl.plugin.platform.PlatformBase.manual_seed_all": "seed",
    "verl.plugin.platform.PlatformBase.nvtx_range": "msg",
    "verl.plugin.platform.PlatformBase.profiler_start": "",
    "verl.plugin.platform.PlatformBase.profiler_stop": "",
    "verl.plugin.platform.PlatformBase.ray_noset_envvars": "",
    "verl.plugin.platform.PlatformBase.ray_resource_name": "",
    "verl.plugin.platform.PlatformBase.set_allocator_settings": "settings",
    "verl.plugin.platform.PlatformBase.set_device": "device_index",
    "verl.plugin.platform.PlatformBase.synchronize": "device_index",
    "verl.plugin.platform.PlatformBase.vendor_name": "",
    "verl.plugin.platform.PlatformBase.visible_devices_envvar": "",
    "verl.plugin.platform.PlatformRegistry": "",
    "verl.plugin.platform.PlatformRegistry.register": "platform",
    "verl.plugin.platform.get_platform": "",
    "verl.plugin.platform.set_platform": "platform",
    "verl.trainer.ppo.core_algos.get_policy_loss_fn": "name",
    "verl.trainer.ppo.core_algos.register_policy_loss": "name",
    "verl.trainer.ppo.utils.need_critic": "config",
    "verl.trainer.ppo.utils.need_reference_policy": "config",
    "verl.trainer.ppo.v1.trainer_base.TRAINER_REGISTRY": "",
    "verl.trainer.ppo.v1.trainer_sync.PPOTrainerSync": "config",
    "verl.trainer.ppo.v1.trainer_sync.PPOTrainerSync._balance_batch": "batch metrics",
    "verl.trainer.ppo.v1.trainer_sync.PPOTrainerSync._init_tokenizer": "",
    "verl.trainer.ppo.v1.trainer_sync.PPOTrainerSync._load_checkpoint": "",
    "verl.trainer.ppo.v1.trainer_sync.PPOTrainerSync._save_checkpoint": "",
    "verl.trainer.ppo.v1.trainer_sync.PPOTrainerSync._submit_batch_to_rollout": "batch",
    "verl.trainer.ppo.v1.trainer_sync.PPOTrainerSync._update_actor": "batch metrics",
    "verl.trainer.ppo.v1.trainer_sync.PPOTrainerSync._val_metrics_update": (
        "data_sources sample_uids reward_extra_infos_dict sample_turns expected_acc_counts"
    ),
    "verl.trainer.ppo.v1.trainer_sync.PPOTrainerSync.on_step_end": "",
    "verl.trainer.ppo.v1.trainer_sync.PPOTrainerSync.on_train_begin": "",
    "verl.trainer.ppo.v1.trainer_sync.PPOTrainerSync.on_validate_end": "",
    "verl.trainer.ppo.v1.trainer_sync.PPOTrainerSync.step": "metrics timing_raw",
    "verl.utils.config.omega_conf_to_dataclass": "config",
    "verl.utils.config.validate_config": "config use_reference_policy use_critic",
    "verl.utils.device.get_device_id": "",
    "verl.utils.distributed.initialize_global_process_group_ray": "timeout_second backend",
    "verl.utils.seqlen_balancing.calculate_workload": "seqlen_list",
    "verl.utils.seqlen_balancing.get_seqlen_balanced_partitions": "seqlen_list k_partitions equal_size",
    "verl.utils.tensordict_utils.assign_non_tensor": "tensor_dict kwargs",
    "verl.utils.tensordict_utils.assign_non_tensor_data": "tensor_dict key val",
    "verl.utils.tensordict_utils.get": "tensordict key default",
    "verl.utils.tensordict_utils.get_tensordict": "tensor_dict non_tensor_dict",
    "verl.utils.tensordict_utils.pop": "tensordict key default",
    "verl.workers.config.ActorConfig": "policy_loss calculate_entropy ppo_epochs ppo_mini_batch_size loss_agg_mode",
    "verl.workers.config.PolicyLossConfig": "loss_mode",
    "verl.workers.engine_workers.ActorRolloutRefWorker": "",
    "verl.workers.engine_workers.ActorRolloutRefWorker.actor_worker_cls": "config",
    "verl.workers.engine_workers.TrainingWorker": "",
    "verl.workers.engine_workers.TrainingWorker.infer_batch": "data",
    "verl.workers.engine_workers.TrainingWorker.set_loss_fn": "loss_fn",
    "verl.workers.engine_workers.TrainingWorker.train_batch": "data",
    "verl.workers.engine_workers.TrainingWorker.train_mini_batch": "data",
    "verl.workers.rollout.base.BaseRollout": "",
    "verl.workers.rollout.base.BaseRollout.release": "",
    "verl.workers.rollout.base.BaseRollout.resume": "tags",
    "verl.workers.rollout.base.BaseRollout.update_weights": "weights",
    "verl.workers.rollout.base._ROLLOUT_REGISTRY": "",
    "verl.workers.rollout.replica.RolloutReplica": "replica_rank config model_config",
    "verl.workers.rollout.replica.RolloutReplica.launch_servers": "",
    "verl.workers.rollout.replica.RolloutReplica.max_concurrency": "",
    "verl.workers.rollout.replica.RolloutReplicaRegistry": "",
    "verl.workers.rollout.replica.RolloutReplicaRegistry.register": "name loader",
    "verl.workers.rollout.replica.TokenOutput": "token_ids log_probs stop_reason extra_fields",
    "verl.workers.utils.padding.no_padding_2_padding": "tensor data",
    "vllm._custom_ops._supports_onednn": "",
    "vllm.LLM": ("model dtype seed tensor_parallel_size gpu_memory_utilization enforce_eager trust_remote_code kwargs"),
    "vllm.SamplingParams": "n seed temperature max_tokens stop_token_ids detokenize",
}
"""Name: the parameters (of a function or constructor) or fields (of a dataclass) relied on."""

VARIABLES = {
    "VERL_USE_EXTERNAL_MODULES": "verl",
    "VERL_ENGINE_DEVICE": "verl.workers.engine.base",
    "TENSORBOARD_DIR": "verl.utils.tracking",
}
"""Variable of the environment: the module that reads it."""


def test_what_the_source_uses_is_listed() -> None:
    found = {name for file in SOURCE.rglob("*.py") for name in used_names(file)}
    used = {name for name in found if not inspect.ismodule(resolve(name))}
    assert used - CONTRACT.keys() == set(), "used and not listed"
    assert CONTRACT.keys() - used == set(), "listed and not used"


@pytest.mark.parametrize("name", CONTRACT)
def test_a_name_is_there_with_what_is_relied_on(name: str) -> None:
    missing = set(CONTRACT[name].split()) - offered(resolve(name))
    assert not missing, f"{name} has no longer {sorted(missing)}"


def test_vllm_takes_further_settings_of_its_engine() -> None:
    assert {"max_model_len", "generation_config"} <= offered(resolve("vllm.engine.arg_utils.EngineArgs"))


@pytest.mark.parametrize("variable", VARIABLES)
def test_a_variable_is_read_where_it_was(variable: str) -> None:
    assert variable in inspect.getsource(importlib.import_module(VARIABLES[variable]))


def test_the_synchronous_trainer_is_the_one_that_is_replaced() -> None:
    from verl.trainer.ppo.v1.trainer_base import TRAINER_REGISTRY
    from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync

    assert issubclass(TRAINER_REGISTRY["sync"], PPOTrainerSync)


def test_what_a_class_reads_of_itself_its_base_has() -> None:
    """Attributes that verl's classes set when they are made have no signature: their names must stand in the source."""
    seen = 0
    for file in SOURCE.rglob("*.py"):
        for node, base in derived_classes(ast.parse(file.read_text(encoding="utf-8"))):
            own = {part.name for part in node.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)}
            own |= {part.attr for part in self_attributes(node) if isinstance(part.ctx, ast.Store)}
            own |= {dotted(target) for part in node.body if isinstance(part, ast.Assign) for target in part.targets}
            own |= {dotted(part.target) for part in node.body if isinstance(part, ast.AnnAssign)}
            theirs = [each for each in resolve(base).__mro__ if each.__module__.split(".")[0] in LIBRARIES]
            source = "".join(map(inspect.getsource, theirs))
            for name in {part.attr for part in self_attributes(node)} - own:
                seen += 1
                assert f"self.{name}" in source or hasattr(resolve(base), name), f"{base} has no longer {name}"
    assert seen


def resolve(name: str) -> Any:
    """Import the longest part of a dotted name that is a module, and read the rest."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            found = getattr(found, part)
        return found
    raise ModuleNotFoundError(name)


def offered(value: Any) -> set[str]:
    """Return the fields of a dataclass and the parameters of what can be called."""
    fields = {field.name for field in dataclasses.fields(value)} if dataclasses.is_dataclass(value) else set()
    try:
        return fields | set(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        return fields


def used_names(file: Path) -> Iterator[str]:
    """Yield the dotted names of the libraries that a module uses."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    known = dict(imported(tree))
    yield from known.values()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            head, _, rest = (dotted(node) or "").partition(".")
            if head in known:
                yield f"{known[head]}.{rest}"
    for node, base in derived_classes(tree):
        yield from members(node, base)


def derived_classes(tree: ast.AST) -> Iterator[tuple[ast.ClassDef, str]]:
    """Yield the classes whose base is one of a library's, with the base's full name."""
    known = dict(imported(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for base in filter(None, map(dotted, node.bases)):
                head, dot, rest = base.partition(".")
                if head in known:
                    yield node, known[head] + dot + rest


def imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the local and the full name of everything imported from the libraries."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] in LIBRARIES:
                    yield alias.asname or alias.name, alias.name
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in LIBRARIES:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def members(node: ast.ClassDef, base: str) -> Iterator[str]:
    """Yield the methods that a class takes from its base: calls through `super()` or on itself, or overrides."""
    names = {part.name for part in node.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)}
    names |= {part.attr for part in self_attributes(node)}
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Call) and dotted(part.value.func) == "super":
            names.add(part.attr)
    value = resolve(base)
    fields = {field.name for field in dataclasses.fields(value)} if dataclasses.is_dataclass(value) else set()
    for name in names - fields:
        if hasattr(value, name) and not name.startswith("__"):
            yield f"{base}.{name}"


def self_attributes(node: ast.ClassDef) -> list[ast.Attribute]:
    """List where a class reads or sets an attribute of itself."""
    return [part for part in ast.walk(node) if isinstance(part, ast.Attribute) and dotted(part.value) == "self"]


def dotted(node: ast.expr) -> str | None:
    """Return `a.b.c` as text, None for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (head := dotted(node.value)):
        return f"{head}.{node.attr}"
    return None
