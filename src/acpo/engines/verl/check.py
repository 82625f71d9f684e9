"""Refuse a run that cannot work before anything starts.

`check_batches` needs no verl and is fast: the workflow calls it for every suite of the grid. `check_run` is called in
the engine's environment when a run starts.
"""

import importlib.metadata
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from acpo.config import Study
from acpo.engines import EngineError, TrainingJob
from acpo.engines.verl.overrides import engine_of, environment, ranks_per_node, verl_settings
from acpo.errors import ConfigError
from acpo.provenance import SOURCE
from acpo.sections import BuiltModel, Suite, VerlEngine

CLONE = SOURCE.parents[1]
WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
SMALLEST_CPU_HEAD = 32  # of vLLM's attention on a CPU
SHOWN = 5


def check_batches(study: Study, suite: str) -> None:
    """Check the arithmetic of a suite's batches, and what its engine settings ask of each other.

    Suites of other engines pass.

    Raises:
        ConfigError: one line per fault, naming the key and what to do.
    """
    definition = study.suites[suite]
    if isinstance(definition.engine, VerlEngine) and (faults := list(_faults(study, suite, definition))):
        raise ConfigError("\n".join(faults))


def _faults(study: Study, name: str, suite: Suite) -> Iterator[str]:
    engine, training, where = engine_of(suite), suite.training, f"suites.{name}"
    ranks = suite.resources.nodes * ranks_per_node(suite)
    if not ranks:
        yield f"{where}.resources.gpus: 0, but engine.device is cuda: give the GPUs of a node, or device: cpu"
        return
    if ranks_per_node(suite) % engine.tensor_parallel:
        yield (
            f"{where}.engine.tensor_parallel: {engine.tensor_parallel} does not divide the {ranks_per_node(suite)} "
            "processes of a node (resources.gpus, 1 on a CPU): choose a divisor"
        )
    if engine.rollout == "transformers" and engine.tensor_parallel != 1:
        yield (
            f"{where}.engine.tensor_parallel: {engine.tensor_parallel}, but rollouts by transformers run on one "
            "process each: set 1, or engine.rollout: vllm"
        )
    if training.validation_every % training.checkpoint_every:
        yield (
            f"{where}.training.checkpoint_every: {training.checkpoint_every} does not divide validation_every "
            f"{training.validation_every}: choose a divisor, so that the best validated rollout has a checkpoint"
        )
    model = study.models[suite.model]
    if engine.device == "cpu" and engine.rollout == "vllm" and isinstance(model, BuiltModel):
        head = model.hidden_size // model.attention_heads
        if head < SMALLEST_CPU_HEAD:
            yield (
                f"models.{suite.model}.attention_heads: heads of {head}; vLLM needs {SMALLEST_CPU_HEAD} on a CPU: "
                "choose fewer heads, or engine.rollout: transformers"
            )
    for regime in study.regimes:
        prompts = study.regime(name, regime).mini_batch_size
        responses = prompts * training.group_size
        if responses % (ranks * engine.micro_batch_size):
            yield (
                f"{where}.engine.micro_batch_size: an update of regime {regime!r} has {responses} responses "
                f"(mini_batch_size {prompts} x group_size {training.group_size}), which {ranks} process(es) cannot "
                f"take in micro-batches of {engine.micro_batch_size}: "
                + _advice(responses, ranks, engine.micro_batch_size)
            )


def _advice(responses: int, ranks: int, size: int) -> str:
    if responses % ranks:
        return f"change mini_batch_size, group_size or resources so that {ranks} divides their product"
    share = responses // ranks
    return f"choose {max(part for part in range(1, min(share, size) + 1) if share % part == 0)}"


def check_run(job: TrainingJob) -> None:
    """Check everything that a run needs, in the engine's environment; verl itself has the last word.

    Raises:
        ConfigError: the configuration, the environment, the model or the data does not fit.
        EngineError: verl could not be asked.
    """
    engine = engine_of(job.study.suites[job.cell.suite])
    check_batches(job.study, job.cell.suite)
    check_pins(engine.environment)
    if job.base_directory is None:
        raise ConfigError(f"{job.cell}: needs the suite's base model")
    check_model(job.base_directory)
    check_with_verl(job)


def check_pins(name: str, environments: Path = CLONE / "envs") -> None:
    """Compare what is installed with an environment's lock files.

    Args:
        name: The environment, a folder of `envs/`.
        environments: Where those folders lie.

    Raises:
        ConfigError: a package is missing or has another version; gives the command that installs the right one.
    """
    locks = sorted((environments / name).glob("*.lock"))
    if not locks:
        raise ConfigError(f"{environments / name}: no lock file: engine.environment names a folder of envs/")
    lines = [line.strip() for lock in locks for line in lock.read_text(encoding="utf-8").splitlines()]
    pins = [line.partition("==") for line in lines if line and not line.startswith("#")]
    wrong = [
        (package, version, found) for package, _, version in pins if (found := _installed(package)) != _release(version)
    ]
    if wrong:
        named = "; ".join(f"{package} is {found}, needs {version}" for package, version, found in wrong[:SHOWN])
        more = f" (and {len(wrong) - SHOWN} more)" if len(wrong) > SHOWN else ""
        pinned = " ".join(f"{package}=={version}" for package, version, _ in wrong[:SHOWN])
        command = f"make -B venv-{name} in {CLONE}" if more else f"{sys.executable} -m pip install --no-deps {pinned}"
        raise ConfigError(f"{environments / name}: {named}{more}. Run: {command}")


def _release(version: str) -> str:
    """Drop a build's name: 2.13.0+cpu is 2.13.0."""
    return version.partition("+")[0]


def _installed(package: str) -> str:
    try:
        return _release(importlib.metadata.version(package))
    except importlib.metadata.PackageNotFoundError:
        return "absent"


def check_model(directory: Path) -> None:
    """Refuse a directory that is no transformers checkpoint.

    Raises:
        ConfigError: names what is missing.
    """
    missing = [name for name in ("config.json", "tokenizer_config.json") if not (directory / name).is_file()]
    if not any(file for pattern in WEIGHTS for file in directory.glob(pattern)):
        missing.append("weights (*.safetensors)")
    if missing:
        raise ConfigError(
            f"{directory}: no model: lacks {', '.join(missing)}. Delete the run that made it (its run.json) and ask "
            "for the same result again"
        )


def check_with_verl(job: TrainingJob) -> None:
    """Let verl read the settings, in a process of its own: its external modules are imported with verl.

    Raises:
        ConfigError: a setting that verl does not have or refuses, a loss mode that is not registered, an external
            module that cannot be imported, prompts that are too long, a GPU that is not there.
        EngineError: the process died.
    """
    suite = job.study.suites[job.cell.suite]
    request = {
        "settings": verl_settings(job),
        "gpus": suite.resources.gpus if engine_of(suite).device == "cuda" else 0,
    }
    done = subprocess.run(
        [sys.executable, "-m", "acpo.engines.verl.compose"], input=json.dumps(request), capture_output=True, text=True,
        check=False, env=os.environ | environment(job),
    )  # fmt: skip
    lines = done.stderr.splitlines()
    for line in lines:
        if line.startswith("warning: "):
            print(line, file=sys.stderr)
    if not done.returncode:
        return
    start = next((number for number, line in enumerate(lines) if line.startswith("error: ")), None)
    if start is None:
        raise EngineError(
            f"verl could not be asked whether it takes the settings of {job.cell}:\n{done.stderr.strip()}"
        )
    raise ConfigError("\n".join(lines[start:]).removeprefix("error: "))
