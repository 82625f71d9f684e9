"""Which checkpoint of verl's a run resumes from, which are kept, and what becomes a transformers checkpoint."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from acpo.engines import EngineError
from acpo.engines.verl.checkpoints import (
    TRACKER,
    best_rollout,
    copy_checkpoint,
    export,
    keep_best,
    keep_newest,
    kept_validation,
    newest_step,
    prepare,
    shards_of,
)

KINDS = ("model", "optim", "extra_state")


def write_step(states: Path, step: int, ranks: int = 1, track: bool = True) -> Path:
    """Write what verl writes at a step; every tensor is filled with the step's number."""
    path = states / f"global_step_{step}"
    (path / "actor").mkdir(parents=True)
    for kind in KINDS:
        for rank in range(ranks):
            content = {"a": torch.full((2, 3), float(step)), "b": torch.full((4,), float(step))}
            torch.save(content, path / "actor" / f"{kind}_world_size_{ranks}_rank_{rank}.pt")
    torch.save({}, path / "data.pt")
    if track:
        (states / TRACKER).write_text(str(step))
    return path


def write_base(directory: Path) -> Path:
    directory.mkdir()
    (directory / "config.json").write_text("{}")
    (directory / "tokenizer.json").write_text("{}")
    (directory / "modeling_evil.py").write_text("raise SystemExit")
    save_file({"a": torch.zeros(2, 3, dtype=torch.bfloat16), "b": torch.zeros(4)}, directory / "model.safetensors")
    return directory


def steps(states: Path) -> list[str]:
    return sorted(path.name for path in states.glob("global_step_*"))


class TestPrepare:
    def test_nothing_there(self, tmp_path: Path) -> None:
        assert prepare(tmp_path / "states", "f", 1) == (0, [])
        assert prepare(tmp_path / "states", "f", 1) == (0, [])

    def test_resumes_from_the_newest(self, tmp_path: Path) -> None:
        prepare(tmp_path, "f", 1)
        write_step(tmp_path, 8)
        write_step(tmp_path, 16)
        assert prepare(tmp_path, "f", 1) == (16, [])
        assert newest_step(tmp_path, 1) == 16

    @pytest.mark.parametrize("name", [f"actor/{kind}_world_size_1_rank_0.pt" for kind in KINDS] + ["data.pt"])
    @pytest.mark.parametrize("fault", ["missing", "cut off"])
    def test_half_written_is_passed_over(self, tmp_path: Path, name: str, fault: str) -> None:
        prepare(tmp_path, "f", 1)
        write_step(tmp_path, 8)
        damaged = write_step(tmp_path, 16) / name
        if fault == "missing":
            damaged.unlink()
        else:
            damaged.write_bytes(damaged.read_bytes()[: damaged.stat().st_size // 2])
        done, warnings = prepare(tmp_path, "f", 1)
        assert done == 8
        assert steps(tmp_path) == ["global_step_8"]
        assert (tmp_path / TRACKER).read_text() == "8"
        assert len(warnings) == 1
        assert f"{name} is cut off" in warnings[0] or f"no {name}" in warnings[0]

    def test_one_that_the_tracker_does_not_name_yet(self, tmp_path: Path) -> None:
        prepare(tmp_path, "f", 1)
        write_step(tmp_path, 8)
        write_step(tmp_path, 16, track=False)
        done, warnings = prepare(tmp_path, "f", 1)
        assert (done, steps(tmp_path)) == (8, ["global_step_8"])
        assert "global_step_16: half-written" in warnings[0]

    def test_all_damaged_starts_afresh(self, tmp_path: Path) -> None:
        prepare(tmp_path, "f", 1)
        (write_step(tmp_path, 8) / "data.pt").unlink()
        assert prepare(tmp_path, "f", 1)[0] == 0
        assert not (tmp_path / TRACKER).exists()

    def test_another_configuration_is_not_resumed(self, tmp_path: Path) -> None:
        prepare(tmp_path, "f", 1)
        write_step(tmp_path, 8)
        done, warnings = prepare(tmp_path, "g", 1)
        assert (done, steps(tmp_path)) == (0, [])
        assert "belongs to another configuration" in warnings[0]

    def test_another_number_of_ranks_is_not_resumed(self, tmp_path: Path) -> None:
        prepare(tmp_path, "f", 2)
        write_step(tmp_path, 8, ranks=1)
        assert prepare(tmp_path, "f", 2)[0] == 0

    def test_a_best_model_from_beyond_is_forgotten(self, tmp_path: Path) -> None:
        prepare(tmp_path, "f", 1)
        for step in (8, 16):
            write_step(tmp_path, step)
            keep_best(tmp_path, {0: 0.0, step: 0.5 + step / 100})
        (tmp_path / "global_step_16" / "data.pt").unlink()
        prepare(tmp_path, "f", 1)
        assert shards_of(tmp_path, 16) == []
        assert shards_of(tmp_path, 8) != []


class TestKeeping:
    def test_the_best_survives_rotation(self, tmp_path: Path) -> None:
        validation: dict[int, float] = {0: 0.1}
        for step, accuracy in ((8, 0.9), (16, 0.2), (24, 0.3)):
            write_step(tmp_path, step)
            keep_newest(tmp_path, 1)
            validation[step] = accuracy
            keep_best(tmp_path, validation)
        assert steps(tmp_path) == ["global_step_24"]
        assert best_rollout(kept_validation(tmp_path, validation)) == 8
        assert torch.load(shards_of(tmp_path, 8)[0], weights_only=True)["b"].tolist() == [8.0] * 4

    def test_of_equals_the_latest_is_best(self) -> None:
        assert best_rollout({0: 0.5, 8: 0.5, 16: 0.4}) == 8

    def test_the_base_model_can_be_best(self, tmp_path: Path) -> None:
        write_step(tmp_path, 8)
        keep_best(tmp_path, {0: 0.5, 8: 0.4})
        assert list(tmp_path.glob("best_*")) == []
        assert best_rollout(kept_validation(tmp_path, {0: 0.5, 8: 0.4})) == 0


class TestExport:
    def test_weights_in_the_base_models_types(self, tmp_path: Path) -> None:
        write_step(tmp_path / "states", 8)
        base = write_base(tmp_path / "base")
        sha256 = export(shards_of(tmp_path / "states", 8), base, tmp_path / "last")
        made = load_file(tmp_path / "last" / "model.safetensors")
        assert {name: tensor.dtype for name, tensor in made.items()} == {"a": torch.bfloat16, "b": torch.float32}
        assert made["b"].tolist() == [8.0] * 4
        names = sorted(path.name for path in (tmp_path / "last").iterdir())
        assert names == ["config.json", "model.safetensors", "tokenizer.json"]
        assert len(sha256) == 64

    def test_a_tensor_the_base_does_not_have_is_left_out(self, tmp_path: Path) -> None:
        shard = tmp_path / "model_world_size_1_rank_0.pt"
        torch.save({"a": torch.ones(2, 3), "b": torch.ones(4), "lm_head.weight": torch.ones(4)}, shard)
        export([shard], write_base(tmp_path / "base"), tmp_path / "last")
        assert sorted(load_file(tmp_path / "last" / "model.safetensors")) == ["a", "b"]

    def test_another_model_is_refused(self, tmp_path: Path) -> None:
        shard = tmp_path / "model_world_size_1_rank_0.pt"
        torch.save({"a": torch.ones(2, 3)}, shard)
        with pytest.raises(EngineError, match="has no b"):
            export([shard], write_base(tmp_path / "base"), tmp_path / "last")
        assert not (tmp_path / "last").exists()

    def test_nan_is_refused(self, tmp_path: Path) -> None:
        shard = tmp_path / "model_world_size_1_rank_0.pt"
        torch.save({"a": torch.full((2, 3), float("nan")), "b": torch.ones(4)}, shard)
        with pytest.raises(EngineError, match="a holds NaN or infinity"):
            export([shard], write_base(tmp_path / "base"), tmp_path / "last")

    def test_copy(self, tmp_path: Path) -> None:
        base = write_base(tmp_path / "base")
        (base / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {}}))
        copy_checkpoint(base, tmp_path / "best")
        names = sorted(path.name for path in (tmp_path / "best").iterdir())
        assert names == ["config.json", "model.safetensors", "model.safetensors.index.json", "tokenizer.json"]
