"""scripts/show_verl_command.py works without verl."""

from pathlib import Path

import pytest
from small_study import script


def test_it_prints_environment_command_and_settings(tmp_path: Path) -> None:
    done = script("show_verl_command", "orz_acpo_offp", "--seed", "2", "--results", tmp_path)
    assert done.returncode == 0, done.stderr
    lines = [line.removesuffix(" \\").strip() for line in done.stdout.splitlines()]
    assert lines[:2] == ["env", "VERL_USE_EXTERNAL_MODULES=acpo.engines.verl.plugin"]
    assert any(line.endswith(".venv-gpu/bin/python -m verl.trainer.main_ppo") for line in lines)
    assert f"data.train_files={tmp_path}/data/math/orz57k.parquet" in lines
    assert f"actor_rollout_ref.model.path={tmp_path}/runs/orz_base/seed0/last" in lines
    assert f"trainer.default_local_dir={tmp_path}/runs/orz_acpo_offp/seed2/states" in lines


@pytest.mark.parametrize("cell", ["mini_acpo_offp", "mini_base"])
def test_a_cell_of_another_engine_is_refused(tmp_path: Path, cell: str) -> None:
    done = script("show_verl_command", cell, "--results", tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"error: {cell}: is not trained by verl (engine: tiny)" in done.stderr


@pytest.mark.parametrize("suite", ["orz", "mini_verl"])
def test_the_untrained_model_is_refused_for_a_cell_that_works(tmp_path: Path, suite: str) -> None:
    done = script("show_verl_command", f"{suite}_base", "--results", tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"error: {suite}_base: is the untrained model" in done.stderr
    named = done.stderr.split()[-1]
    assert named.startswith(f"{suite}_")
    assert script("show_verl_command", named, "--results", tmp_path).returncode == 0


def test_a_measured_parameter_needs_its_run(tmp_path: Path) -> None:
    done = script("show_verl_command", "orz_dapo_clip_max_offp", "--results", tmp_path)
    assert done.returncode == 1
    assert "runs/orz_acpo_offp/seed0/metrics.parquet: no such file" in done.stderr
