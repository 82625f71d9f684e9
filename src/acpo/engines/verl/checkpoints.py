"""verl's checkpoints: which one to resume from, the best by validation, and what becomes a transformers checkpoint.

verl writes `global_step_<rollout>/` with a shard of model, optimizer and extra state for each rank, then the state of
the data loader, and names the step in a tracker file last. `best_<rollout>/` holds links to the model's shards alone.
"""

import os
import re
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from acpo.engines import EngineError
from acpo.provenance import weights_hash
from acpo.store import StoreError, atomic_directory, write_text

TRACKER = "latest_checkpointed_iteration.txt"
FINGERPRINT = "fingerprint"
STOP_FILE = "stop"
"""Made in the run directory by a signal: verl's trainer saves and ends after the step that it is in."""
STEP = re.compile(r"global_step_(\d+)")
KEPT_BEST = 2
"""So many of the best are kept: the newest may lie beyond the checkpoint that a killed run resumes from."""


def prepare(states: Path, fingerprint: str, ranks: int) -> tuple[int, list[str]]:
    """Make the checkpoints of an earlier start ready to resume from.

    Those of another configuration, half-written ones and those of another number of ranks are removed, and the tracker
    names the newest that is left.

    Args:
        states: The run's directory of checkpoints.
        fingerprint: Of the run that asks (see `acpo.engines.runs.fingerprint`).
        ranks: Training processes.

    Returns:
        The rollout to resume after (0: start from the beginning), and a warning for each checkpoint passed over.
    """
    warnings = []
    named = states / FINGERPRINT
    if states.exists() and (not named.exists() or named.read_text(encoding="utf-8") != fingerprint):
        warnings.append(f"{states}: belongs to another configuration or version of the code; not resumed")
        shutil.rmtree(states)
    states.mkdir(parents=True, exist_ok=True)
    write_text(named, fingerprint)
    tracked = _tracked(states)
    whole = []
    for number, path in sorted(_steps(states).items()):
        fault = "written after the last one that was finished" if number > tracked else _fault(path, ranks)
        if fault:
            warnings.append(f"{path}: half-written or damaged ({fault}); not resumed")
            shutil.rmtree(path)
        else:
            whole.append(number)
    newest = whole[-1] if whole else 0
    for path in states.glob("best_*"):
        if int(path.name.removeprefix("best_")) > newest:
            shutil.rmtree(path)
    if newest:
        write_text(states / TRACKER, str(newest))
    else:
        (states / TRACKER).unlink(missing_ok=True)
    return newest, warnings


def newest_step(states: Path, ranks: int) -> int:
    """Return the rollout of the newest finished checkpoint; 0 if there is none or it is damaged."""
    tracked = _tracked(states)
    path = _steps(states).get(tracked)
    return 0 if path is None or _fault(path, ranks) else tracked


def keep_newest(states: Path, count: int) -> None:
    """Remove all but the newest finished checkpoints: verl forgets those of an earlier start."""
    tracked = _tracked(states)
    finished = [path for number, path in sorted(_steps(states).items()) if number <= tracked]
    for path in finished[:-count]:
        shutil.rmtree(path)


def keep_best(states: Path, validation: Mapping[int, float]) -> None:
    """Link the model of the best validated rollout where verl's rotation does not reach it.

    Args:
        states: The run's directory of checkpoints.
        validation: Accuracy by rollout, 0 being the base model, which needs no copy.
    """
    best = best_rollout(validation)
    source, target = states / f"global_step_{best}" / "actor", states / f"best_{best:06d}"
    if source.exists() and not target.exists():
        with atomic_directory(target) as temporary:
            for shard in sorted(source.glob("model_world_size_*_rank_*.pt")):
                os.link(shard, temporary / shard.name)
    for path in sorted(states.glob("best_*"))[:-KEPT_BEST]:
        shutil.rmtree(path)


def best_rollout(validation: Mapping[int, float]) -> int:
    """Return the rollout of the highest accuracy, the latest of equals."""
    return max(validation, key=lambda rollout: (validation[rollout], rollout))


def kept_validation(states: Path, validation: Mapping[int, float]) -> dict[int, float]:
    """Return the accuracies of the rollouts whose model is still there (0, the base model, always is)."""
    return {number: value for number, value in validation.items() if not number or shards_of(states, number)}


def shards_of(states: Path, rollout: int) -> list[Path]:
    """List the model's shards after a rollout, by rank; none where they are not kept."""
    for directory in (states / f"global_step_{rollout}" / "actor", states / f"best_{rollout:06d}"):
        shards = list(directory.glob("model_world_size_*_rank_*.pt"))
        if shards:
            return sorted(shards, key=lambda path: int(path.stem.rsplit("_", 1)[1]))
    return []


def export(shards: list[Path], base: Path, directory: Path) -> str:
    """Write a transformers checkpoint: the shards' weights in the base model's precision, with its other files.

    Args:
        shards: The model's shards, by rank.
        base: The base model's checkpoint; its weights say which tensors there are and of which type.
        directory: Where to write.

    Returns:
        The hash of the weights (see `acpo.provenance.weights_hash`).

    Raises:
        EngineError: the shards are not those of this model, or hold NaN or infinity.
    """
    from huggingface_hub import save_torch_state_dict

    with atomic_directory(directory) as temporary:
        _copy_description(base, temporary)
        save_torch_state_dict(_merged(shards, base), temporary)
    return weights_hash(directory)


def copy_checkpoint(source: Path, directory: Path) -> str:
    """Copy a transformers checkpoint with safetensors weights (returns as `export`)."""
    with atomic_directory(directory) as temporary:
        _copy_description(source, temporary)
        for file in [*source.glob("*.safetensors"), *source.glob("*.safetensors.index.json")]:
            shutil.copyfile(file, temporary / file.name)
    return weights_hash(directory)


def _copy_description(base: Path, directory: Path) -> None:
    """Copy config, tokenizer and chat template: whatever is neither weights nor code."""
    for pattern in ("*.json", "*.txt", "*.jinja", "*.model"):
        for file in sorted(base.glob(pattern)):
            if not file.name.endswith(".index.json"):
                shutil.copyfile(file, directory / file.name)


def _merged(shards: list[Path], base: Path) -> dict[str, Any]:
    """Put the ranks' parts of each tensor together, in the type that it has in the base model."""
    import torch
    from torch.distributed.tensor import DTensor, Shard  # lets `weights_only` read what FSDP wrote

    parts = [torch.load(path, map_location="cpu", mmap=True, weights_only=True) for path in shards]
    merged = {}
    for name, kind in _types(base).items():
        if any(name not in part for part in parts):
            raise EngineError(f"{shards[0].parent}: has no {name}, which {base} has: not a checkpoint of this model")
        pieces = [part.pop(name) for part in parts]
        tensor = pieces[0]
        if isinstance(tensor, DTensor):
            (placement,) = tensor.placements
            local = [piece.to_local() for piece in pieces]
            tensor = torch.cat(local, placement.dim) if isinstance(placement, Shard) else local[0]
        if not torch.isfinite(tensor).all():
            raise EngineError(f"{shards[0].parent}: {name} holds NaN or infinity: the run has diverged")
        merged[name] = tensor.to(kind).contiguous()
    return merged


def _types(base: Path) -> dict[str, Any]:
    """Return the torch type of each tensor of a checkpoint."""
    from safetensors import safe_open

    types: dict[str, Any] = {}
    for file in sorted(base.glob("*.safetensors")):
        with safe_open(file, "pt") as content:
            types |= {name: content.get_slice(name)[:0].dtype for name in content.keys()}  # noqa: SIM118
    if not types:
        raise StoreError(f"{base}: no safetensors file: make the base model again")
    return types


def _steps(states: Path) -> dict[int, Path]:
    found = ((STEP.fullmatch(path.name), path) for path in states.glob("global_step_*"))
    return {int(match[1]): path for match, path in found if match}


def _tracked(states: Path) -> int:
    try:
        return int((states / TRACKER).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return 0


def _fault(path: Path, ranks: int) -> str | None:
    """Say what a checkpoint lacks: a file that is cut off has no list of contents at its end."""
    kinds = ("model", "optim", "extra_state")
    files = [path / "actor" / f"{kind}_world_size_{ranks}_rank_{rank}.pt" for kind in kinds for rank in range(ranks)]
    for file in [*files, path / "data.pt"]:
        if not file.exists():
            return f"no {file.relative_to(path)}"
        if not zipfile.is_zipfile(file):
            return f"{file.relative_to(path)} is cut off"
    return None
