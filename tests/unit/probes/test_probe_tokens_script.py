"""scripts/probe_tokens.py: on a foreign store, on a run, and on bad input."""

import json
import runpy
import sys
from pathlib import Path

import pandas as pd
import pytest
from made_up_store import made_up_tokens, write_store
from small_study import ROOT, SmallStudy

from acpo.engines.tiny.engine import ENGINE
from acpo.probes.records import TokenProbe
from acpo.store import read_json


def call(*arguments: str | Path) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["probe_tokens", *map(str, arguments)])
        patch.chdir(ROOT)
        try:
            runpy.run_path(str(ROOT / "scripts/probe_tokens.py"), run_name="__main__")
        except SystemExit as end:
            return int(end.code or 0)
    return 0


def told(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    assert call(*arguments) == 1
    (line,) = capsys.readouterr().err.splitlines()
    return line.removeprefix("error: ")


def test_a_foreign_store(tmp_path: Path) -> None:
    store = write_store(tmp_path / "tokens.parquet", made_up_tokens())
    options = ("--clip-low", "0.2", "--clip-high", "0.2", "--vocabulary", "50")
    assert call("--tokens", store, "--output", tmp_path / "out", *options) == 0
    probe = read_json(tmp_path / "out/tokens.json", TokenProbe)
    assert probe.pooled.exponent.exponent.value == pytest.approx(2, abs=0.03)
    assert probe.pooled.entropy.clip_rule == "fixed widths, lower 0.2, upper 0.2"
    assert probe.clip_dynamics.note == "no metrics given"
    assert list(probe.provenance.data_hashes) == ["tokens.parquet"]


def test_without_options_nothing_is_guessed(tmp_path: Path) -> None:
    store = write_store(tmp_path / "tokens.parquet", made_up_tokens())
    assert call("--tokens", store, "--output", tmp_path) == 0
    probe = json.loads((tmp_path / "tokens.json").read_text())
    assert probe["pooled"]["entropy"]["clipped_counts"] is None
    assert probe["pooled"]["entropy"]["bounds"]["above"] is None


def test_a_run_says_the_rest_itself(small: SmallStudy, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = small.run("mini_acpo_offp")
    ENGINE.train(small.job("mini_acpo_offp"))
    common = ("--config", small.config, "--cell", "mini_acpo_offp", "--run-directory", run, "--output", tmp_path)
    assert call(*common) == 0
    capsys.readouterr()
    probe = read_json(tmp_path / "tokens.json", TokenProbe)
    assert probe.name == "mini_acpo_offp/seed0"
    assert probe.pooled.entropy.clip_rule == "the objective of acpo"
    assert probe.pooled.entropy.bounds.vocabulary == json.loads((run / "last/config.json").read_text())["vocab_size"]
    assert (probe.pooled.entropy.bounds.below, probe.pooled.entropy.bounds.above) == (0, 0)
    assert list(probe.rollouts) == [1, 2]
    stores = [f"tokens/rollout_{number:06d}.parquet" for number in (1, 2)]
    assert list(probe.provenance.data_hashes) == [*stores, "metrics.parquet"]
    assert len(probe.clip_dynamics.bins) == 5

    metrics = pd.read_parquet(run / "metrics.parquet")
    metrics.drop(columns="bin3/clip_fraction").to_parquet(run / "metrics.parquet")
    assert "metrics.parquet: column bin3/clip_fraction: expected double, found no such column" in told(capsys, *common)
    (run / "last/config.json").write_text("{}")
    assert "last/config.json: cannot read vocab_size" in told(capsys, *common)
    for store in (run / "tokens").iterdir():
        store.unlink()
    assert "/tokens: no token store. Name rollouts" in told(capsys, *common)


def test_bad_options(tmp_path: Path, small: SmallStudy, capsys: pytest.CaptureFixture[str]) -> None:
    store = write_store(tmp_path / "tokens.parquet", made_up_tokens(questions=2, tokens=4))
    common = ("--tokens", store, "--output", tmp_path / "out")
    assert told(capsys, *common, "--clip-low", "0.2") == "--clip-low and --clip-high belong together"
    assert "widths of at least 0" in told(capsys, *common, "--clip-low", "-1", "--clip-high", "0.2")
    assert told(capsys, *common, "--vocabulary", "1") == "--vocabulary: expected at least 2, got 1"
    assert told(capsys, *common, "--cell", "mini_dapo_offp") == "--cell and --run-directory belong together"
    assert "absent.parquet: no such file" in told(capsys, *common, "--metrics", tmp_path / "absent.parquet")
    run = ("--config", small.config, "--run-directory", small.run("mini_base"), "--output", tmp_path / "out")
    assert told(capsys, *run, "--cell", "mini_dapo").startswith("unknown cell 'mini_dapo'")
    assert told(capsys, *run, "--cell", "mini_base") == "mini_base: the base model has no updates to probe"
    assert told(capsys, "--output", tmp_path / "out").startswith("no token store given")
    assert not (tmp_path / "out").exists()
