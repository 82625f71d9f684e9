"""Models on disk: transformers checkpoints to keep, and training states to resume from."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from acpo.engines.tiny.model import Architecture, Weights, weight_shapes
from acpo.provenance import file_hash
from acpo.store import StoreError, atomic_directory, read_table, write_table

WEIGHTS_FILE = "model.safetensors"
KEPT_STATES = 2


def architecture_of(directory: Path) -> Architecture:
    """Read the sizes of a transformers Llama checkpoint.

    Raises:
        StoreError: no config, or one that this engine cannot run.
    """
    path = directory / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        sizes = Architecture(
            config["vocab_size"], config["hidden_size"], config["num_hidden_layers"], config["num_attention_heads"],
            config["num_key_value_heads"], config["intermediate_size"], config["max_position_embeddings"],
        )  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path}: not the config of a Llama checkpoint ({error})") from error
    if config.get("model_type") != "llama" or config.get("tie_word_embeddings"):
        raise StoreError(f"{path}: the embedded engine runs untied Llama models only")
    return sizes


def load_weights(directory: Path) -> Weights:
    """Read and check the weights of a transformers checkpoint.

    Raises:
        StoreError: missing, damaged, or not the shapes that its config says.
    """
    path = directory / WEIGHTS_FILE
    weights = _load_tensors(path)
    shapes = weight_shapes(architecture_of(directory))
    found = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    if found != shapes:
        wrong = sorted(name for name in shapes.keys() | found.keys() if shapes.get(name) != found.get(name))
        raise StoreError(f"{path}: {wrong[0]}: expected shape {shapes.get(wrong[0])}, found {found.get(wrong[0])}")
    return weights


def save_policy(directory: Path, weights: Weights, template: Path) -> str:
    """Write a transformers checkpoint: these weights with the config and tokenizer of `template`.

    Returns:
        The sha256 of the weights file.
    """
    with atomic_directory(directory) as temporary:
        for file in sorted(template.glob("*.json")):
            shutil.copyfile(file, temporary / file.name)
        _save_tensors(weights, temporary / WEIGHTS_FILE)
    return file_hash(directory / WEIGHTS_FILE)


@dataclass
class TrainingState:
    """All that a run needs to go on as if it had never stopped. Random draws need nothing: they are named."""

    rollout: int
    update: int
    response_tokens: int
    weights: Weights
    optimizer: dict[str, Tensor]
    best_weights: Weights
    best_rollout: int
    best_validation: float
    updates: pd.DataFrame
    rollouts: pd.DataFrame


def save_state(directory: Path, state: TrainingState, fingerprint: str) -> None:
    """Write a state to `directory/rollout_<n>`, whole or not at all, and keep it and the one before it only.

    Later ones can only be damaged or another configuration's: `load_newest_state` passed them over.
    """
    with atomic_directory(directory / f"rollout_{state.rollout:06d}") as temporary:
        parts = {"policy": state.weights, "optimizer": state.optimizer, "best": state.best_weights}
        tensors = {f"{part}/{name}": tensor for part, content in parts.items() for name, tensor in content.items()}
        _save_tensors(tensors, temporary / "state.safetensors")
        write_table(temporary / "updates.parquet", state.updates)
        write_table(temporary / "rollouts.parquet", state.rollouts)
        hashes = {file.name: file_hash(file) for file in sorted(temporary.iterdir())}
        scalars = {key: getattr(state, key) for key in _SCALARS}
        manifest = {"fingerprint": fingerprint, "files": hashes, **scalars}
        (temporary / "manifest.json").write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    states = _states(directory)
    kept = [path for path in states if path.name <= f"rollout_{state.rollout:06d}"][:KEPT_STATES]
    for path in states:
        if path not in kept:
            shutil.rmtree(path)


_SCALARS = ("rollout", "update", "response_tokens", "best_rollout", "best_validation")


def load_newest_state(directory: Path, fingerprint: str) -> tuple[TrainingState | None, list[str]]:
    """Read the newest undamaged state.

    A damaged state is passed over: the run goes on from the one before it, or from the start, and ends equal.

    Args:
        directory: Where `save_state` wrote.
        fingerprint: Hash of configuration, code and data of the run that asks.

    Returns:
        The state (None: start from the beginning), and a warning for each state passed over.
    """
    warnings: list[str] = []
    for path in _states(directory):
        try:
            return _load_state(path, fingerprint), warnings
        except StoreError as error:
            warnings.append(str(error))
    return None, warnings


def _states(directory: Path) -> list[Path]:
    return sorted(directory.glob("rollout_*"), reverse=True)


def _load_state(path: Path, fingerprint: str) -> TrainingState:
    try:
        manifest = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
        if manifest["fingerprint"] != fingerprint:
            raise StoreError(f"{path}: belongs to another configuration or version of the code; not resumed")
        for name, expected in manifest["files"].items():
            if file_hash(path / name) != expected:
                raise StoreError(f"{path / name}: damaged (its hash differs from the manifest's); not resumed")
        scalars = {key: manifest[key] for key in _SCALARS}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{path}: damaged ({error}); not resumed") from error
    parts: dict[str, Weights] = {"policy": {}, "optimizer": {}, "best": {}}
    for key, tensor in _load_tensors(path / "state.safetensors").items():
        part, name = key.split("/", 1)
        parts[part][name] = tensor
    return TrainingState(
        weights=parts["policy"], optimizer=parts["optimizer"], best_weights=parts["best"],
        updates=read_table(path / "updates.parquet"), rollouts=read_table(path / "rollouts.parquet"), **scalars,
    )  # fmt: skip


def _save_tensors(tensors: Weights, path: Path) -> None:
    content = {name: tensor.detach().contiguous() for name, tensor in sorted(tensors.items())}
    try:
        save_file(content, path, metadata={"format": "pt"})
    except SafetensorError as error:
        raise OSError(f"safetensors: {error}") from error


def _load_tensors(path: Path) -> dict[str, Tensor]:
    try:
        tensors: dict[str, Tensor] = load_file(path)
    except (SafetensorError, OSError) as error:
        raise StoreError(f"{path}: cannot be read ({error}). Delete it and run the same command again") from error
    if not all(torch.isfinite(tensor).all() for tensor in tensors.values()):
        raise StoreError(f"{path}: holds NaN or infinity. Delete it and run the same command again")
    return tensors
