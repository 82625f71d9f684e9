"""verl's own reading of a run's settings; runs in the engine's environment.

As a program it reads `{"settings": ..., "gpus": ...}` from standard input, and says what is wrong in lines that begin
with `error: ` (see `acpo.engines.verl.check.check_with_verl`).
"""

import json
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from acpo.cli import run
from acpo.engines.verl.overrides import ACTOR, MODEL, hydra_value
from acpo.errors import ConfigError
from acpo.store import read_table

DATA_KEYS = ("data.train_files", "data.val_files")


def compose_config(settings: Mapping[str, Any]) -> Any:
    """Put settings into verl's default configuration.

    Args:
        settings: Values by key (see `acpo.engines.verl.overrides.verl_settings`).

    Returns:
        The `DictConfig` that verl's trainer would be given.

    Raises:
        ConfigError: verl has no such key, or another one must be written with `+`.
    """
    from hydra import compose, initialize_config_module
    from hydra.core.global_hydra import GlobalHydra
    from hydra.errors import HydraException

    GlobalHydra.instance().clear()
    with initialize_config_module(config_module="verl.trainer.config", version_base=None):
        try:
            return compose("ppo_trainer", [f"{key}={hydra_value(value)}" for key, value in settings.items()])
        except HydraException as error:
            cause = f" ({error.__cause__})" if error.__cause__ else ""
            text = " ".join(f"{error}{cause}".split())
            raise ConfigError(f"verl refuses a setting: {text}. Is this the pinned version of verl?") from error


def validate(config: Any) -> None:
    """Let verl check a composed configuration, and check what verl leaves to the run itself.

    Raises:
        ConfigError: verl refuses it, or its loss mode is not registered.
    """
    from hydra.errors import InstantiationException
    from omegaconf.errors import OmegaConfBaseException
    from verl.trainer.ppo.core_algos import get_policy_loss_fn
    from verl.trainer.ppo.utils import need_critic, need_reference_policy
    from verl.utils.config import omega_conf_to_dataclass, validate_config

    try:
        get_policy_loss_fn(config.actor_rollout_ref.actor.policy_loss.loss_mode)
    except ValueError as error:
        raise ConfigError(
            f"{ACTOR}.policy_loss.loss_mode: {error}. VERL_USE_EXTERNAL_MODULES must name acpo.engines.verl.plugin"
        ) from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that there is no critic
            critic = need_critic(config)
        validate_config(config, need_reference_policy(config), critic)
        omega_conf_to_dataclass(config.actor_rollout_ref.rollout)
    except (InstantiationException, OmegaConfBaseException, AssertionError, ValueError, TypeError) as error:
        cause = error.__cause__ or error
        raise ConfigError(f"verl refuses the settings: {' '.join(str(cause).split())}") from error


def check_prompts(config: Any) -> None:
    """Count the prompts that are longer than verl's limit: verl would cut off their beginning.

    Those of the validation set are allowed, as a benchmark stays whole, and counted in a warning.

    Raises:
        ConfigError: the model's tokenizer cannot be read, or prompts of the training set are too long.
    """
    from transformers import AutoTokenizer

    model, limit = config.actor_rollout_ref.model, int(config.data.max_prompt_length)
    try:
        tokenizer = AutoTokenizer.from_pretrained(model.path)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{MODEL}.path: {model.path} has no tokenizer that can be read: {error}") from error
    if model.custom_chat_template is not None:
        tokenizer.chat_template = model.custom_chat_template
    for key in DATA_KEYS:
        file = config.data[key.removeprefix("data.")]
        long = _too_long(tokenizer, read_prompts(file), limit)
        if long and key == DATA_KEYS[0]:
            raise ConfigError(
                f"{file}: {long} prompts have more than {limit} tokens: raise training.max_prompt_tokens, or make "
                "the data again with a lower limit"
            )
        if long:
            print(
                f"warning: {file}: {long} prompts have more than {limit} tokens: their beginning is cut off",
                file=sys.stderr,
            )


def read_prompts(file: str) -> list[list[dict[str, str]]]:
    """Read the messages of each problem of a formatted data set."""
    return [list(turns) for turns in read_table(Path(file))["prompt"]]


def _too_long(tokenizer: Any, prompts: Sequence[list[dict[str, str]]], limit: int) -> int:
    """Count prompts of more than `limit` tokens; a token is at least one byte of text, so most need no tokenizer."""
    count = 0
    for turns in prompts:
        text = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        if len(text.encode()) > limit:
            count += len(tokenizer(text, add_special_tokens=False)["input_ids"]) > limit
    return count


def check_gpus(wanted: int) -> None:
    """Refuse a node that has fewer GPUs than a run wants.

    Raises:
        ConfigError: says how many there are.
    """
    import torch

    found = torch.cuda.device_count()
    if found < wanted:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        hint = f" (CUDA_VISIBLE_DEVICES={visible})" if visible is not None else ""
        raise ConfigError(
            f"resources.gpus: the suite wants {wanted} GPUs on this node, torch sees {found}{hint}: run where there "
            "are as many, or lower resources.gpus"
        )


def main() -> None:
    """Check the settings on standard input.

    Raises:
        ConfigError: verl or an external module cannot be imported, or something does not fit.
    """
    request = json.load(sys.stdin)
    check_gpus(request["gpus"])
    try:
        import verl  # noqa: F401 - imports the external modules
    except ImportError as error:
        modules = os.environ.get("VERL_USE_EXTERNAL_MODULES", "")
        raise ConfigError(f"verl or an external module ({modules}) cannot be imported: {error}") from error
    config = compose_config(request["settings"])
    validate(config)
    check_prompts(config)


if __name__ == "__main__":
    run(main)
