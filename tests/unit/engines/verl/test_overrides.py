"""verl's settings say what the study says."""

import shlex
from pathlib import Path
from typing import Any

import pytest
from verl_jobs import verl_job

from acpo.config import Study
from acpo.data.prompts import RAW_TEMPLATE
from acpo.engines.verl.overrides import (
    command,
    environment,
    expected_rollouts,
    hydra_value,
    shown,
    verl_settings,
)
from acpo.tasks.base import Problem

ACTOR, ROLLOUT, MODEL = "actor_rollout_ref.actor", "actor_rollout_ref.rollout", "actor_rollout_ref.model"


def changed(study: Study, suite: str, **sections: dict[str, Any]) -> Study:
    values = study.model_dump(mode="json")
    for name, content in sections.items():
        values["suites"][suite][name] |= content
    return Study.model_validate(values)


def test_the_papers_values_arrive(shipped: Study, tmp_path: Path) -> None:
    settings = verl_settings(verl_job(shipped, "orz_acpo_offp", tmp_path))
    expected = {
        # Table 3 and App. I
        "data.train_batch_size": 256,
        f"{ACTOR}.ppo_mini_batch_size": 16,
        f"{ACTOR}.optim.lr": 1e-6,
        f"{ACTOR}.optim.lr_scheduler_type": "constant",
        f"{ACTOR}.optim.betas": [0.9, 0.999],
        f"{ACTOR}.optim.weight_decay": 0.01,
        f"{ACTOR}.optim.clip_grad": 1.0,
        f"{ROLLOUT}.n": 10,
        f"{ROLLOUT}.temperature": 1.0,
        f"{ROLLOUT}.top_p": 1.0,
        "data.max_prompt_length": 1024,
        "data.max_response_length": 3072,
        f"{ROLLOUT}.max_model_len": 4096,
        "trainer.total_epochs": 15,
        "trainer.total_training_steps": None,
        f"{ROLLOUT}.val_kwargs.n": 8,
        f"{ROLLOUT}.val_kwargs.temperature": 1.0,
        "trainer.test_freq": 50,
        "trainer.save_freq": 50,
        f"{ACTOR}.use_kl_loss": False,
        f"{ACTOR}.entropy_coeff": 0.0,
        "algorithm.adv_estimator": "grpo",
        "algorithm.norm_adv_by_std_in_grpo": True,
        "trainer.n_gpus_per_node": 4,
        "trainer.nnodes": 1,
        "trainer.device": "cuda",
        f"{ROLLOUT}.name": "vllm",
        f"{ROLLOUT}.dtype": "bfloat16",
        f"+{ACTOR}.fsdp_config.mixed_precision": {"param_dtype": "bf16"},
        f"{ACTOR}.strategy": "fsdp2",
        f"{ACTOR}.policy_loss.loss_mode": "acpo_acpo",
        f"+{ACTOR}.policy_loss.parameters": shipped.methods["acpo"].parameters,
        f"+{ACTOR}.policy_loss.token_store_rollouts": [1],
        "trainer.resume_mode": "auto",
        "trainer.max_actor_ckpt_to_keep": 2,
    }
    assert {key: settings[key] for key in expected} == expected


def test_each_change_of_the_study_changes_its_setting(shipped: Study, tmp_path: Path) -> None:
    study = changed(
        shipped,
        "orz",
        training={"group_size": 7, "max_response_tokens": 99, "learning_rate": 0.5, "gradient_clip": 0.25},
        engine={"micro_batch_size": 3, "tensor_parallel": 2, "offload": False, "loggers": ["wandb"]},
        resources={"gpus": 2, "nodes": 3},
        validation={"samples": 5},
    )
    before = verl_settings(verl_job(shipped, "orz_dapo_nonp", tmp_path))
    after = verl_settings(verl_job(study, "orz_dapo_nonp", tmp_path))
    assert {key: after[key] for key in after if key not in before or before[key] != after[key]} == {
        f"{ROLLOUT}.n": 7,
        "data.max_response_length": 99,
        f"{ROLLOUT}.max_model_len": 1024 + 99,
        f"{ACTOR}.optim.lr": 0.5,
        f"{ACTOR}.optim.clip_grad": 0.25,
        f"{ACTOR}.ppo_micro_batch_size_per_gpu": 3,
        f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu": 3,
        f"{ROLLOUT}.tensor_model_parallel_size": 2,
        f"{ACTOR}.fsdp_config.param_offload": False,
        f"{ACTOR}.fsdp_config.optimizer_offload": False,
        "trainer.logger": ["console", "wandb"],
        "trainer.n_gpus_per_node": 2,
        "trainer.nnodes": 3,
        f"{ROLLOUT}.val_kwargs.n": 5,
    }


def test_measured_parameters_join_the_others(shipped: Study, tmp_path: Path) -> None:
    job = verl_job(shipped, "orz_dapo_clip_max_offp", tmp_path, measured={"clip_high": 0.7})
    assert verl_settings(job)[f"+{ACTOR}.policy_loss.parameters"] == {
        **shipped.methods["dapo_clip_max"].parameters, "clip_high": 0.7,
    }  # fmt: skip


def test_seeds_are_shared_by_methods_and_differ_by_training_seed(shipped: Study, tmp_path: Path) -> None:
    def seeds(cell: str, seed: int) -> tuple[int, int]:
        settings = verl_settings(verl_job(shipped, cell, tmp_path, seed=seed))
        return settings["data.seed"], settings[f"{ROLLOUT}.seed"]

    assert seeds("orz_acpo_offp", 0) == seeds("orz_dapo_offp", 0)
    drawn = [number for seed in range(5) for number in seeds("orz_acpo_offp", seed)]
    assert len(set(drawn)) == len(drawn)
    assert all(0 <= number < 2**31 for number in drawn)


@pytest.mark.parametrize(
    ("cell", "template"),
    [("orz_dapo_offp", RAW_TEMPLATE), ("mini_verl_dapo_offp", RAW_TEMPLATE), ("countdown_dapo_offp", None)],
)
def test_only_chat_prompts_use_the_models_template(
    shipped: Study, tmp_path: Path, cell: str, template: str | None
) -> None:
    assert verl_settings(verl_job(shipped, cell, tmp_path)).get(f"{MODEL}.custom_chat_template") == template


def test_a_budget_of_prompts_is_a_number_of_steps(shipped: Study, tmp_path: Path) -> None:
    job = verl_job(shipped, "mini_verl_dapo_offp", tmp_path)
    assert verl_settings(job)["trainer.total_training_steps"] == 2816 // 128 == expected_rollouts(job)


def test_passes_drop_their_incomplete_last_batch(shipped: Study, tmp_path: Path) -> None:
    problems = [Problem(str(i), "", "") for i in range(300)]
    assert expected_rollouts(verl_job(shipped, "orz_dapo_offp", tmp_path, problems=problems)) == 15
    assert expected_rollouts(verl_job(shipped, "orz_dapo_nonp", tmp_path, problems=problems)) == 30


def test_what_a_cpu_needs_is_set_only_there(shipped: Study, tmp_path: Path) -> None:
    cpu = verl_settings(verl_job(shipped, "mini_verl_dapo_offp", tmp_path))
    vllm = verl_settings(verl_job(shipped, "mini_vllm_dapo_offp", tmp_path))
    gpu = verl_settings(verl_job(shipped, "orz_dapo_offp", tmp_path))
    assert cpu["trainer.device"] == "cpu"
    assert cpu["trainer.n_gpus_per_node"] == cpu["+ray_kwargs.ray_init.num_gpus"] == 1
    assert f"{ROLLOUT}.enforce_eager" in vllm
    assert f"{ROLLOUT}.enforce_eager" not in {*cpu, *gpu}
    assert f"{MODEL}.use_remove_padding" not in gpu


def test_one_node_has_a_ray_cluster_of_its_own(shipped: Study, tmp_path: Path) -> None:
    assert verl_settings(verl_job(shipped, "orz_dapo_offp", tmp_path))["+ray_kwargs.ray_init.address"] == "local"
    several = verl_job(changed(shipped, "orz", resources={"nodes": 2}), "orz_dapo_offp", tmp_path)
    assert not [key for key in verl_settings(several) if "ray_init" in key]


def test_the_plug_in_is_loaded_and_on_a_cpu_its_platform_first(shipped: Study, tmp_path: Path) -> None:
    key = "VERL_USE_EXTERNAL_MODULES"
    assert environment(verl_job(shipped, "orz_dapo_offp", tmp_path))[key] == "acpo.engines.verl.plugin"
    cpu = environment(verl_job(shipped, "mini_vllm_dapo_offp", tmp_path))
    assert cpu[key] == "acpo.engines.verl.cpu,acpo.engines.verl.plugin"
    assert cpu["TENSORBOARD_DIR"] == str(tmp_path / "runs" / "mini_vllm_dapo_offp" / "seed0" / "tensorboard")


def test_what_is_shown_is_what_runs(shipped: Study, tmp_path: Path) -> None:
    job = verl_job(shipped, "orz_cispo_released_offp", tmp_path / "it's a place")
    lines = shown(job, "/some/python").splitlines()
    words = shlex.split(" ".join(line.removesuffix("\\") for line in lines))
    variables = [f"{name}={value}" for name, value in environment(job).items()]
    assert words == ["env", *variables, *command(job, "/some/python")]
    assert len(lines) == len(words) - 2  # python -m module is one line


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, "null"),
        (True, "true"),
        (1e-06, "1e-06"),
        ("vllm", "vllm"),
        ("/a/b-c.d", "/a/b-c.d"),
        ("null", "'null'"),
        ("TRUE", "'TRUE'"),
        ("1e5", "'1e5'"),
        ("it's", r"'it\'s'"),
        ("a\\", r"'a\\'"),
        ("a\\b", r"'a\b'"),
        ("${HOME}", r"'\${HOME}'"),
        ([0.9, 0.999], "[0.9,0.999]"),
        ({"gate": {"clip_low": 0.2}, "dual_clip": None}, "{gate:{clip_low:0.2},dual_clip:null}"),
    ],
)
def test_values_in_hydras_grammar(value: Any, written: str) -> None:
    assert hydra_value(value) == written
