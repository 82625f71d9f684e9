"""From a cell to verl's settings: every value comes from the study, none is written twice.

Keys are those of verl's `ppo_trainer` configuration; one that starts with `+` is not in its default file. What verl
decides itself and no study has an opinion on is left as it is.
"""

import re
import shlex
import sys
from collections.abc import Mapping
from typing import Any

from acpo.config import Study
from acpo.data.prompts import chat_template
from acpo.engines import TrainingJob
from acpo.engines.runs import STATES
from acpo.sections import Regime, Suite, VerlEngine
from acpo.streams import stream_seed
from acpo.tasks import load_task

Settings = dict[str, Any]

ENTRY_POINT = ("-m", "verl.trainer.main_ppo")

PLUGIN = "acpo.engines.verl.plugin"
CPU_PLATFORM = "acpo.engines.verl.cpu"
LOSS_CONFIG = "acpo.engines.verl.losses.ObjectiveLossConfig"
REWARD = "pkg://acpo.engines.verl.reward"
SEED_LIMIT = 2**31  # vLLM seeds NumPy, which takes 32 bits, with the seed plus the number of the replica
CPU_SLOTS = 8  # Ray gives each of verl's processes one; on a CPU they mostly wait for each other
BARE_WORD = re.compile(r"(?!(?:null|true|false|nan|inf)$)[A-Za-z_/][\w./-]*", re.IGNORECASE | re.ASCII)
LOSS_MODE_PREFIX = "acpo_"
VLLM_ON_A_CPU = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
DTYPES = {"bf16": "bfloat16", "fp32": "float32"}

ACTOR = "actor_rollout_ref.actor"
MODEL = "actor_rollout_ref.model"
ROLLOUT = "actor_rollout_ref.rollout"


def loss_mode(objective: str) -> str:
    """Return the name under which an objective is registered with verl."""
    return LOSS_MODE_PREFIX + objective


def ranks_per_node(suite: Suite) -> int:
    """Return how many training processes a node runs: one a GPU, or one on a CPU."""
    return suite.resources.gpus if engine_of(suite).device == "cuda" else 1


def engine_of(suite: Suite) -> VerlEngine:
    """Return the engine section of a suite that verl trains."""
    assert isinstance(suite.engine, VerlEngine)
    return suite.engine


def expected_rollouts(job: TrainingJob) -> int:
    """Return how many rollouts verl makes: each pass over the training set drops its incomplete last batch."""
    training, size = _suite(job).training, _regime(job).train_batch_size
    if training.prompts is not None:
        return training.prompts // size
    return (training.epochs or 0) * (len(job.problems) // size)


def command(job: TrainingJob, python: str = sys.executable) -> list[str]:
    """Return the argument vector that trains a cell: verl's own entry point with every setting.

    Args:
        job: The training run. Its `problems`, `validation` and `data_hashes` may be empty.
        python: The interpreter of the engine's environment.
    """
    hydra = {"hydra.run.dir": str(job.run_directory.resolve() / "hydra")}
    settings = [f"{key}={hydra_value(value)}" for key, value in (verl_settings(job) | hydra).items()]
    return [python, *ENTRY_POINT, *settings]


def environment(job: TrainingJob) -> dict[str, str]:
    """Return the variables that the command adds to the environment."""
    engine = engine_of(_suite(job))
    modules = [CPU_PLATFORM, PLUGIN] if engine.device == "cpu" else [PLUGIN]
    variables = {"VERL_USE_EXTERNAL_MODULES": ",".join(modules), "HYDRA_FULL_ERROR": "1"}
    if "tensorboard" in engine.loggers:
        variables["TENSORBOARD_DIR"] = str(job.run_directory.resolve() / "tensorboard")
    if engine.device == "cpu":
        variables |= {"OMP_NUM_THREADS": "1", "TQ_NUM_THREADS": "1"}  # of the queue that verl moves data through
        variables["VERL_ENGINE_DEVICE"] = "cuda"  # verl has FSDP engines for cuda and npu only
        if engine.rollout == "vllm":
            variables |= VLLM_ON_A_CPU
    return variables


def shown(job: TrainingJob, python: str = sys.executable) -> str:
    """Write the command for a shell: the environment first, one setting a line (arguments as in `command`)."""
    variables = [f"{name}={shlex.quote(value)}" for name, value in environment(job).items()]
    start = 1 + len(ENTRY_POINT)
    words = command(job, python)
    lines = ["env", *variables, shlex.join(words[:start]), *map(shlex.quote, words[start:])]
    return " \\\n  ".join(lines)


def verl_settings(job: TrainingJob) -> Settings:
    """Return every setting of a training run, by its place in verl's configuration.

    Args:
        job: The training run (see `command`).
    """
    suite = _suite(job)
    settings = _data(job) | _model(job) | _actor(job) | _rollout(job) | _trainer(job)
    if suite.resources.nodes == 1:
        # A cluster of its own; over several nodes the launcher starts one and gives its address in the environment.
        settings |= {"+ray_kwargs.ray_init.address": "local", "ray_kwargs.ray_init.num_cpus": suite.resources.cpus}
    if engine_of(suite).device == "cpu":
        settings |= _on_a_cpu(job)
    return settings


def hydra_value(value: Any) -> str:
    """Write a value in the grammar of hydra's command line."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value if BARE_WORD.fullmatch(value) else _quoted(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}:{hydra_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(hydra_value, value)) + "]"
    return repr(value)


def _quoted(text: str) -> str:
    """Quote a text: only before a quote do hydra's backslashes escape; `${` would begin a reference."""
    escaped = re.sub(r"(\\*)('|$)", lambda found: found[1] * 2 + ("\\'" if found[2] else ""), text)
    return "'" + escaped.replace("${", "\\${") + "'"


def _suite(job: TrainingJob) -> Suite:
    return job.study.suites[job.cell.suite]


def _regime(job: TrainingJob) -> Regime:
    assert job.cell.regime is not None
    return job.study.regime(job.cell.suite, job.cell.regime)


def _seed(study: Study, *names: str | int) -> int:
    return stream_seed(study.root_seed, *names) % SEED_LIMIT


def _data(job: TrainingJob) -> Settings:
    """Data order comes from the stream ("data", seed), the same for every method."""
    training = _suite(job).training
    assert job.training_file is not None
    assert job.validation_file is not None
    return {
        "data.train_files": str(job.training_file.resolve()),
        "data.val_files": str(job.validation_file.resolve()),
        "data.train_batch_size": _regime(job).train_batch_size,
        "data.max_prompt_length": training.max_prompt_tokens,
        "data.max_response_length": training.max_response_tokens,
        "data.shuffle": True,
        "data.seed": _seed(job.study, "data", job.seed),
        "data.dataloader_num_workers": 0,
        "reward.custom_reward_function.path": REWARD,
        "reward.custom_reward_function.name": "compute_score",
    }


def _model(job: TrainingJob) -> Settings:
    assert job.base_directory is not None
    settings: Settings = {f"{MODEL}.path": str(job.base_directory.resolve())}
    template = chat_template(load_task(_suite(job).task).prompt_style)
    if template is not None:
        settings[f"{MODEL}.custom_chat_template"] = template
    return settings


def _actor(job: TrainingJob) -> Settings:
    """The loss: ours, with its parameters; no KL term and no entropy bonus beside it."""
    suite, method = _suite(job), job.study.methods[job.cell.method]
    training, engine = suite.training, engine_of(suite)
    run = job.run_directory.resolve()
    return {
        "algorithm.adv_estimator": "grpo",
        "algorithm.norm_adv_by_std_in_grpo": True,
        f"{ACTOR}.strategy": "fsdp2",
        f"{ACTOR}.ppo_mini_batch_size": _regime(job).mini_batch_size,
        f"{ACTOR}.ppo_micro_batch_size_per_gpu": engine.micro_batch_size,
        f"{ACTOR}.policy_loss._target_": LOSS_CONFIG,
        f"{ACTOR}.policy_loss.loss_mode": loss_mode(method.objective),
        f"+{ACTOR}.policy_loss.parameters": {**method.parameters, **job.measured},
        f"+{ACTOR}.policy_loss.record_directory": str(run / "records"),
        f"+{ACTOR}.policy_loss.run": f"{job.cell}/seed{job.seed}",
        f"+{ACTOR}.policy_loss.token_store_rollouts": suite.token_store.rollouts,
        f"{ACTOR}.use_kl_loss": training.kl_coefficient > 0,
        f"{ACTOR}.entropy_coeff": training.entropy_coefficient,
        f"{ACTOR}.calculate_entropy": True,
        f"{ACTOR}.optim.lr": training.learning_rate,
        f"{ACTOR}.optim.lr_scheduler_type": "constant",
        f"{ACTOR}.optim.betas": list(training.adam_betas),
        f"{ACTOR}.optim.weight_decay": training.weight_decay,
        f"{ACTOR}.optim.clip_grad": training.gradient_clip,
        f"+{ACTOR}.fsdp_config.mixed_precision": {"param_dtype": engine.precision},
        f"{ACTOR}.fsdp_config.param_offload": engine.offload,
        f"{ACTOR}.fsdp_config.optimizer_offload": engine.offload,
    }


def _rollout(job: TrainingJob) -> Settings:
    suite = _suite(job)
    training, engine = suite.training, engine_of(suite)
    return {
        f"{ROLLOUT}.name": engine.rollout,
        f"{ROLLOUT}.n": training.group_size,
        f"{ROLLOUT}.temperature": training.temperature,
        f"{ROLLOUT}.top_p": training.top_p,
        f"{ROLLOUT}.seed": _seed(job.study, "rollout", job.seed),
        f"{ROLLOUT}.dtype": DTYPES[engine.precision],
        f"{ROLLOUT}.max_model_len": training.max_prompt_tokens + training.max_response_tokens,
        f"{ROLLOUT}.tensor_model_parallel_size": engine.tensor_parallel,
        f"{ROLLOUT}.gpu_memory_utilization": engine.gpu_memory_utilization,
        f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu": engine.micro_batch_size,
        f"{ROLLOUT}.calculate_log_probs": True,
        f"{ROLLOUT}.val_kwargs.n": suite.validation.samples,
        f"{ROLLOUT}.val_kwargs.do_sample": True,
        f"{ROLLOUT}.val_kwargs.temperature": training.temperature,
        f"{ROLLOUT}.val_kwargs.top_p": training.top_p,
    }


def _trainer(job: TrainingJob) -> Settings:
    """Length, validation, checkpoints; verl stops at the earlier of its two lengths."""
    suite = _suite(job)
    training, engine = suite.training, engine_of(suite)
    # Each pass has at least one rollout: as many passes as rollouts are never too few.
    rollouts = None if training.prompts is None else training.prompts // _regime(job).train_batch_size
    return {
        "trainer.project_name": "acpo",
        "trainer.experiment_name": f"{job.cell}_seed{job.seed}",
        "trainer.logger": ["console", *engine.loggers],
        "trainer.device": engine.device,
        "trainer.nnodes": suite.resources.nodes,
        "trainer.n_gpus_per_node": ranks_per_node(suite),
        "trainer.total_epochs": training.epochs or rollouts,
        "trainer.total_training_steps": rollouts,
        "trainer.val_before_train": True,
        "trainer.test_freq": training.validation_every,
        "trainer.save_freq": training.checkpoint_every,
        "trainer.default_local_dir": str(job.run_directory.resolve() / STATES),
        "trainer.max_actor_ckpt_to_keep": engine.kept_checkpoints,
        "trainer.resume_mode": "auto",
    }


def _on_a_cpu(job: TrainingJob) -> Settings:
    """What runs verl without a GPU: Ray is told of one that is not there, and what needs a GPU is switched off."""
    settings: Settings = {
        "ray_kwargs.ray_init.num_cpus": CPU_SLOTS,
        "+ray_kwargs.ray_init.num_gpus": 1,
        "transfer_queue.backend.SimpleStorage.num_data_storage_units": 1,
        f"{ROLLOUT}.agent.num_workers": 1,
        "reward.num_workers": 1,
        f"{MODEL}.use_remove_padding": False,
        f"{MODEL}.enable_gradient_checkpointing": False,
        f"+{MODEL}.override_config.attn_implementation": "sdpa",
        f"{ACTOR}.fsdp_config.use_torch_compile": False,
    }
    if engine_of(_suite(job)).rollout == "vllm":
        settings |= {
            f"{ROLLOUT}.load_format": "auto",
            f"{ROLLOUT}.enforce_eager": True,
            f"{ROLLOUT}.free_cache_engine": False,
            f"+{ROLLOUT}.enable_sleep_mode": False,
            f"{ROLLOUT}.checkpoint_engine.update_weights_bucket_megabytes": 64,
        }
    return settings
