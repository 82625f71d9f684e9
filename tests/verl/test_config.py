"""verl composes and accepts the settings of every suite that it trains, and they say what the study says."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from omegaconf import OmegaConf
from small_study import make_small_study

from acpo.config import Study, parse_study
from acpo.engines import TrainingJob
from acpo.engines.verl import losses  # registers the loss modes
from acpo.engines.verl.check import check_run, check_with_verl
from acpo.engines.verl.compose import check_prompts, compose_config, validate
from acpo.engines.verl.overrides import ACTOR, ROLLOUT, verl_settings
from acpo.errors import ConfigError
from acpo.results import DATA_SCHEMA
from acpo.sections import VerlEngine
from acpo.store import read_table, write_table

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "engines" / "verl"))
from verl_jobs import verl_job

pytestmark = pytest.mark.verl

ROOT = Path(__file__).parents[2]
STUDY = parse_study(yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8")), "config.yaml")


def cells() -> Iterator[str]:
    """Name one cell for each suite that verl trains and method of the grid, and all methods of one suite."""
    for suite, definition in STUDY.suites.items():
        if isinstance(definition.engine, VerlEngine):
            for method in STUDY.methods if suite == "orz" else STUDY.grid.methods:
                yield f"{suite}_{method}_{'nonp' if suite == 'countdown' else 'offp'}"


def job(cell: str, study: Study = STUDY) -> TrainingJob:
    measured = {"clip": 0.3} if "clip_avg" in cell else {"clip_high": 0.3} if "clip_max" in cell else {}
    return verl_job(study, cell, Path("/somewhere/else"), measured=measured)


@pytest.mark.parametrize("cell", list(cells()))
def test_every_setting_arrives_and_verl_accepts_it(cell: str) -> None:
    settings = verl_settings(job(cell))
    config = compose_config(settings)
    validate(config)
    arrived = {key: OmegaConf.select(config, key.removeprefix("+"), throw_on_missing=True) for key in settings}
    for key, value in settings.items():
        found = arrived[key]
        plain = OmegaConf.to_container(found) if OmegaConf.is_config(found) else found
        assert plain == value, key


def test_the_loss_that_verl_makes_is_the_configured_one() -> None:
    from verl.utils.config import omega_conf_to_dataclass

    config = compose_config(verl_settings(job("orz_cispo_released_offp")))
    actor = omega_conf_to_dataclass(config.actor_rollout_ref.actor)
    assert isinstance(actor.policy_loss, losses.ObjectiveLossConfig)
    assert actor.policy_loss.objective().parameters.model_dump() == STUDY.methods["cispo_released"].parameters
    assert (actor.optim.lr, tuple(actor.optim.betas), actor.optim.clip_grad) == (1e-6, (0.9, 0.999), 1.0)
    assert (actor.strategy, actor.engine.strategy, actor.engine.mixed_precision["param_dtype"]) == (
        "fsdp2",
        "fsdp2",
        "bf16",
    )
    assert not actor.use_kl_loss
    assert actor.entropy_coeff == 0


def changed(**settings: Any) -> dict[str, Any]:
    """Return a cell's settings with some more, by key with `__` for a dot."""
    return verl_settings(job("orz_acpo_offp")) | {key.replace("__", "."): value for key, value in settings.items()}


def test_a_setting_that_verl_does_not_have_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"verl refuses a setting: .*total_epoch"):
        compose_config(changed(trainer__total_epoch=3))


def test_a_misspelt_parameter_is_named() -> None:
    settings = changed()
    settings[f"+{ACTOR}.policy_loss.parameters"] = STUDY.methods["acpo"].parameters | {"alfa": 1.0}
    with pytest.raises(ConfigError, match=r"policy_loss\.parameters: alfa"):
        validate(compose_config(settings))


def test_an_unregistered_loss_mode_is_named() -> None:
    settings = changed() | {f"{ACTOR}.policy_loss.loss_mode": "acpo_apco"}
    with pytest.raises(ConfigError, match=r"loss_mode: Unsupported loss mode: acpo_apco"):
        validate(compose_config(settings))


def test_verls_own_validation_speaks() -> None:
    settings = changed(data__train_batch_size=8)  # less than a mini-batch of 16
    with pytest.raises(ConfigError, match=r"verl refuses the settings: .*train_batch_size \(8\) must be >="):
        validate(compose_config(settings))


def test_text_arrives_as_it_was_written() -> None:
    for text in ("it's", "a\\", "${HOME}", "null", "1e5", "{a: 1}", "a,b", "{{ bos_token }}"):
        config = compose_config(changed() | {"trainer.experiment_name": text})
        assert config.trainer.experiment_name == text


@pytest.fixture(scope="module")
def small_job(tmp_path_factory: pytest.TempPathFactory) -> TrainingJob:
    """A job of the suite `mini_verl` with a base model and data."""
    small = make_small_study(tmp_path_factory.mktemp("small"))
    cell = "mini_verl_acpo_offp"
    study = small.study()
    files = {"training_file": small.split("train"), "validation_file": small.split("dev")}
    return verl_job(study, cell, small.root, base_directory=small.base, **files)


def test_verl_takes_a_whole_run(small_job: TrainingJob) -> None:
    check_with_verl(small_job)


def test_an_environment_with_other_versions_is_refused_first(
    small_job: TrainingJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("acpo.engines.verl.check._installed", lambda package: "0.0.1")
    with pytest.raises(ConfigError, match=r"make -B venv-verl-cpu"):
        check_run(small_job)


def test_an_external_module_that_cannot_be_imported_is_named(
    small_job: TrainingJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("acpo.engines.verl.overrides.PLUGIN", "acpo.engines.verl.plug")
    with pytest.raises(ConfigError, match=r"acpo\.engines\.verl\.plug\) cannot be imported: No module named"):
        check_with_verl(small_job)


def test_a_missing_gpu_is_named(small_job: TrainingJob) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    values = small_job.study.model_dump(mode="json")
    suite = values["suites"]["mini_verl"]
    suite["engine"]["device"], suite["resources"]["gpus"] = "cuda", 1
    with pytest.raises(ConfigError, match=r"resources\.gpus: the suite wants 1 GPUs on this node, torch sees 0"):
        check_with_verl(TrainingJob(**{**vars(small_job), "study": Study.model_validate(values)}))


def test_long_prompts_are_refused_in_training_and_counted_in_validation(
    small_job: TrainingJob, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = verl_settings(small_job)
    check_prompts(compose_config(settings))  # 7 tokens each, as the suite says
    assert capsys.readouterr().err == ""
    short = compose_config(settings | {"data.max_prompt_length": 6, f"{ROLLOUT}.max_model_len": 42})
    with pytest.raises(ConfigError, match=r"train\.parquet: 16 prompts have more than 6 tokens"):
        check_prompts(short)
    empty = small_job.run_directory.with_name("empty.parquet")
    assert small_job.training_file is not None
    write_table(empty, read_table(small_job.training_file, DATA_SCHEMA).head(0), DATA_SCHEMA)
    short.data.train_files = str(empty)
    check_prompts(short)
    assert "dev.parquet: 16 prompts have more than 6 tokens: their beginning is cut off" in capsys.readouterr().err
