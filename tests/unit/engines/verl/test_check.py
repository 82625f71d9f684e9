"""A run that cannot work is refused in words that name the key."""

import importlib.metadata
import sys
from pathlib import Path
from typing import Any

import pytest

from acpo.config import Study
from acpo.engines.verl.check import CLONE, check_batches, check_model, check_pins
from acpo.errors import ConfigError


def refusal(study: Study, suite: str, **sections: dict[str, Any]) -> str:
    """Change a suite and return why it is refused."""
    values = study.model_dump(mode="json")
    for name, content in sections.items():
        values["suites"][suite][name] |= content
    with pytest.raises(ConfigError) as caught:
        check_batches(Study.model_validate(values), suite)
    return str(caught.value)


def test_shipped_suites_pass(shipped: Study) -> None:
    for suite in shipped.suites:
        check_batches(shipped, suite)


def test_a_micro_batch_that_does_not_divide(shipped: Study) -> None:
    message = refusal(shipped, "orz", engine={"micro_batch_size": 7})
    # near on-policy 64 x 10 / 4 GPUs = 160 responses, off-policy 16 x 10 / 4 = 40
    assert message.splitlines() == [
        "suites.orz.engine.micro_batch_size: an update of regime 'nonp' has 640 responses (mini_batch_size 64 x "
        "group_size 10), which 4 process(es) cannot take in micro-batches of 7: choose 5",
        "suites.orz.engine.micro_batch_size: an update of regime 'offp' has 160 responses (mini_batch_size 16 x "
        "group_size 10), which 4 process(es) cannot take in micro-batches of 7: choose 5",
    ]


def test_responses_that_the_ranks_do_not_divide(shipped: Study) -> None:
    message = refusal(shipped, "orz", resources={"gpus": 3})
    assert "change mini_batch_size, group_size or resources so that 3 divides their product" in message


def test_ranks_of_all_nodes_count(shipped: Study) -> None:
    assert "8 process(es) cannot take" in refusal(
        shipped, "orz", resources={"nodes": 2}, engine={"micro_batch_size": 8}
    )


def test_a_gpu_device_without_gpus(shipped: Study) -> None:
    assert refusal(shipped, "orz", resources={"gpus": 0}).startswith(
        "suites.orz.resources.gpus: 0, but engine.device is cuda"
    )


def test_a_model_spread_over_too_many_gpus(shipped: Study) -> None:
    message = refusal(shipped, "orz", engine={"tensor_parallel": 3})
    assert message.startswith("suites.orz.engine.tensor_parallel: 3 does not divide the 4 processes of a node")


def test_transformers_rollouts_are_not_spread(shipped: Study) -> None:
    message = refusal(shipped, "orz", engine={"tensor_parallel": 2, "rollout": "transformers"})
    assert "suites.orz.engine.tensor_parallel: 2, but rollouts by transformers run on one" in message


def test_checkpoints_between_validations(shipped: Study) -> None:
    message = refusal(shipped, "orz", training={"checkpoint_every": 40})
    assert message.startswith("suites.orz.training.checkpoint_every: 40 does not divide validation_every 50")


def test_heads_too_small_for_vllm_on_a_cpu(shipped: Study) -> None:
    message = refusal(shipped, "mini_verl", engine={"rollout": "vllm"})
    assert message.startswith("models.mini_decoder.attention_heads: heads of 16; vLLM needs 32 on a CPU")


def test_other_engines_pass(shipped: Study) -> None:
    values = shipped.model_dump(mode="json")
    values["suites"]["mini"]["training"]["checkpoint_every"] = 5
    check_batches(Study.model_validate(values), "mini")


def lock_file(root: Path, text: str) -> Path:
    (root / "here").mkdir()
    (root / "here" / "requirements.lock").write_text(text)
    return root


def test_installed_pins_pass(tmp_path: Path) -> None:
    version = importlib.metadata.version("numpy")
    check_pins("here", lock_file(tmp_path, f"# made by hand\n\nnumpy=={version}\n"))


def test_a_builds_name_is_no_other_version(tmp_path: Path) -> None:
    version = importlib.metadata.version("torch").partition("+")[0]
    check_pins("here", lock_file(tmp_path, f"torch=={version}+cu130\n"))


def test_a_wrong_and_a_missing_package_are_named_with_the_command(tmp_path: Path) -> None:
    lock_file(tmp_path, "numpy==0.0.1\n")
    (tmp_path / "here" / "built.lock").write_text("no-such-package==2.0\n")
    with pytest.raises(ConfigError) as caught:
        check_pins("here", tmp_path)
    installed = importlib.metadata.version("numpy")
    assert str(caught.value) == (
        f"{tmp_path}/here: no-such-package is absent, needs 2.0; numpy is {installed}, needs 0.0.1. "
        f"Run: {sys.executable} -m pip install --no-deps no-such-package==2.0 numpy==0.0.1"
    )


def test_many_wrong_packages_mean_another_environment(tmp_path: Path) -> None:
    lock_file(tmp_path, "".join(f"no-such-package-{i}==1\n" for i in range(9)))
    with pytest.raises(ConfigError, match=rf"\(and 4 more\)\. Run: make -B venv-here in {CLONE}$"):
        check_pins("here", tmp_path)


def test_an_unknown_environment() -> None:
    with pytest.raises(ConfigError, match=r"envs/nowhere: no lock file: engine\.environment names a folder of envs/"):
        check_pins("nowhere")


@pytest.mark.parametrize("environment", ["verl-cpu", "gpu"])
def test_lock_files_pin_every_line(environment: str) -> None:
    lines = (CLONE / "envs" / environment / "requirements.lock").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(line.count("==") == 1 and " " not in line for line in pins)
    names = [line.split("==")[0].lower() for line in pins]
    assert len(set(names)) == len(names)
    assert {"verl", "ray", "torch", "transformers", "tensordict", "transferqueue"} <= set(names)


def test_a_directory_without_a_model(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"lacks config\.json, tokenizer_config\.json, weights \(\*\.safetensors\)"):
        check_model(tmp_path)
    for name in ("config.json", "tokenizer_config.json"):
        (tmp_path / name).touch()
    with pytest.raises(ConfigError, match=r"lacks weights"):
        check_model(tmp_path)
    (tmp_path / "model-00001-of-00002.safetensors").touch()
    check_model(tmp_path)
