"""scripts/show_verl_command.py works without verl."""

from pathlib import Path

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


def test_what_verl_does_not_train_is_refused(tmp_path: Path) -> None:
    for cell in ("mini_acpo_offp", "orz_base"):
        done = script("show_verl_command", cell, "--results", tmp_path)
        assert (done.returncode, done.stdout) == (1, "")
        assert f"error: {cell}: is not trained by verl" in done.stderr


def test_a_measured_parameter_needs_its_run(tmp_path: Path) -> None:
    done = script("show_verl_command", "orz_dapo_clip_max_offp", "--results", tmp_path)
    assert done.returncode == 1
    assert "runs/orz_acpo_offp/seed0/metrics.parquet: no such file" in done.stderr
