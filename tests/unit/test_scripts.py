"""The command lines: what goes wrong ends in exit status 1 and one line that begins with `error:`."""

import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from small_study import ROOT, SmallStudy, script

from acpo.data.format import DataManifest
from acpo.store import read_json

Capture = pytest.CaptureFixture[str]
Fails = Callable[..., str]


def call(monkeypatch: pytest.MonkeyPatch, capsys: Capture, name: str, *arguments: str | Path) -> tuple[int, str, str]:
    """Run a script in this process (a new one takes seconds to import torch)."""
    monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
    try:
        runpy.run_path(str(ROOT / "scripts" / f"{name}.py"), run_name="__main__")
    except SystemExit as end:
        code = end.code
    else:
        code = 0
    told = capsys.readouterr()
    return int(code or 0), told.out, told.err


@pytest.fixture
def fails(monkeypatch: pytest.MonkeyPatch, capsys: Capture):
    def check(name: str, *arguments: str | Path) -> str:
        code, _, errors = call(monkeypatch, capsys, name, *arguments)
        lines = errors.splitlines()
        assert code == 1
        assert [line.startswith("error: ") for line in lines].count(True) == 1
        assert len(lines) == 1, errors
        return lines[0].removeprefix("error: ")

    return check


def train(small: SmallStudy, cell: str = "mini_dapo_offp", **changes: str | Path | None) -> list[str]:
    arguments = small.train_arguments(cell, small.run(cell))
    given = dict(zip(arguments[::2], arguments[1::2], strict=True))
    for name, value in changes.items():
        option = f"--{name.replace('_', '-')}"
        if value is None:
            del given[option]
        else:
            given[option] = str(value)
    return [part for pair in given.items() for part in pair]


class TestTrainPolicy:
    def test_an_unknown_cell(self, small: SmallStudy, fails: Fails) -> None:
        assert (
            fails("train_policy", *train(small, cell="mini_dapo_of"))
            == "unknown cell 'mini_dapo_of'; did you mean 'mini_dapo_offp'?"
        )

    def test_an_environment_that_is_not_there(self, small: SmallStudy, fails: Fails) -> None:
        values = yaml.safe_load(small.config.read_text())
        values["suites"]["orz"]["engine"]["environment"] = "nowhere"
        small.config.write_text(yaml.safe_dump(values))
        for name, arguments in (
            ("train_policy", train(small, cell="orz_acpo_offp")),
            ("sample_responses", ["--config", small.config, "--cell", "orz_base", "--run-directory", small.root,
                                  "--data", small.data, "--output", small.root / "out"]),
        ):  # fmt: skip
            told = fails(name, *arguments)
            assert told.startswith("no environment at ")
            assert told.endswith(f"/.venv-nowhere: make venv-nowhere in {ROOT} sets it up")

    def test_missing_files(self, small: SmallStudy, fails: Fails) -> None:
        absent = small.root / "absent.parquet"
        assert fails("train_policy", *train(small, train_data=absent)) == f"{absent}: no such file"
        assert fails("train_policy", *train(small, validation_data=absent)) == f"{absent}: no such file"
        assert fails("train_policy", *train(small, config=absent)) == f"{absent}: no such file"
        assert f"{absent}/config.json" in fails("train_policy", *train(small, base=absent))
        assert "needs the suite's base model" in fails("train_policy", *train(small, base=None))
        assert "needs validation data" in fails("train_policy", *train(small, validation_data=None))

    def test_damaged_files(self, small: SmallStudy, fails: Fails) -> None:
        for path in (small.split("train"), small.base / "model.safetensors"):
            content = path.read_bytes()
            path.write_bytes(content[: len(content) // 2])
            assert f"{path}: cannot be read" in fails("train_policy", *train(small))
            path.write_bytes(content)

    def test_a_bad_parameter(self, small: SmallStudy, fails: Fails) -> None:
        values = yaml.safe_load(small.config.read_text())
        values["methods"]["dapo"]["parameters"]["clip_low"] = -0.2
        small.config.write_text(yaml.safe_dump(values))
        told = fails("train_policy", *train(small))
        assert told == "methods.dapo.parameters: clip_low: Input should be greater than or equal to 0"

    def test_a_bad_batch_size(self, small: SmallStudy, fails: Fails) -> None:
        small.change(regimes={"offp": {"label": "OffP.", "train_batch_size": 16, "mini_batch_size": 5}})
        assert "mini_batch_size 5 does not divide train_batch_size 16" in fails("train_policy", *train(small))

    def test_broken_yaml(self, small: SmallStudy, fails: Fails) -> None:
        small.config.write_text("suites: [mini\nseeds: 0\n")
        assert "config.yaml: not valid YAML: " in fails("train_policy", *train(small))

    def test_a_measured_parameter_without_its_run(self, small: SmallStudy, fails: Fails) -> None:
        arguments = train(small, cell="mini_grpo_clip_avg_offp")
        assert (
            fails("train_policy", *arguments) == "methods.grpo_clip_avg.measured.clip: needs a finished run of 'acpo'"
        )
        assert "expected METHOD=DIRECTORY" in fails("train_policy", *arguments, "--measured-run", "acpo")
        told = fails("train_policy", *arguments, "--measured-run", f"acpo={small.root}/absent")
        assert told == f"{small.root}/absent/metrics.parquet: no such file"

    def test_nothing_is_left_behind(self, small: SmallStudy, fails: Fails) -> None:
        fails("train_policy", *train(small, base=small.root))
        assert not (small.run("mini_dapo_offp") / "run.json").exists()


class TestOtherScripts:
    def common(self, small: SmallStudy, cell: str = "mini_base") -> list[str | Path]:
        return ["--config", small.config, "--cell", cell, "--data", small.data, "--output", small.root / "out"]

    @pytest.mark.parametrize(
        ("name", "option"),
        [("sample_responses", "--run-directory"), ("grade_samples", "--samples"), ("score_cell", "--runs")],
    )
    def test_unknown_cells_and_missing_files(self, small: SmallStudy, fails: Fails, name: str, option: str) -> None:
        absent = small.root / "absent"
        assert fails(name, *self.common(small, "mini_bse"), option, absent).startswith(
            "unknown cell 'mini_bse'; did you mean"
        )
        assert "absent" in fails(name, *self.common(small), option, absent)
        empty = [*self.common(small), "--data", small.root / "empty"]
        assert fails(name, *empty, option, absent).endswith(".parquet: no such file")
        assert not (small.root / "out").exists()

    def test_a_damaged_data_set(self, small: SmallStudy, fails: Fails) -> None:
        small.split("test").write_bytes(b"PAR1 nothing PAR1")
        told = fails("score_cell", *self.common(small), "--runs", small.root / "runs/mini_base")
        assert told.startswith(f"{small.split('test')}: cannot be read")

    def test_format_dataset(
        self, small: SmallStudy, fails: Fails, monkeypatch: pytest.MonkeyPatch, capsys: Capture
    ) -> None:
        output = small.root / "new/test.parquet"
        common = ("--config", small.config, "--output", output)
        assert "countdown_mini has no split 'tset'" in fails(
            "format_dataset", *common, "--task", "countdown_mini", "--split", "tset"
        )
        assert "'sums'" in fails("format_dataset", *common, "--task", "sums", "--split", "amc")
        assert "fetch it first" in fails("format_dataset", *common, "--task", "math", "--split", "amc")
        assert not output.exists()
        (small.root / "file").write_text("")
        blocked = ("--config", small.config, "--output", small.root / "file/x.parquet")
        told = fails("format_dataset", *blocked, "--task", "countdown_mini", "--split", "test")
        assert told.startswith(f"cannot write {small.root}/file/x.parquet: ")
        done = call(monkeypatch, capsys, "format_dataset", *common, "--task", "countdown_mini", "--split", "test")
        assert done == (0, f"{output}: 512 problems\n", "")
        # verl's suites use the split too, but no estimate of tokens is made where words are counted
        manifest = read_json(output.with_suffix(".manifest.json"), DataManifest)
        assert (manifest.longest_prompt, manifest.notes) == (None, {})

    def test_the_chain_from_samples_to_scores(
        self, small: SmallStudy, monkeypatch: pytest.MonkeyPatch, capsys: Capture
    ) -> None:
        run = small.run("mini_base")
        base = ("--config", small.config, "--cell", "mini_base", "--data", small.data)
        steps = [
            ("sample_responses", "--run-directory", run, "--output", run / "samples.parquet"),
            ("grade_samples", "--samples", run / "samples.parquet", "--output", run / "verdicts.parquet"),
            ("score_cell", "--runs", run.parent, "--output", small.root / "mini_base.json"),
        ]
        for name, *arguments in steps:
            code, _, errors = call(monkeypatch, capsys, str(name), *base, *arguments)
            assert (code, "error" in errors) == (0, False), errors
        result = yaml.safe_load((small.root / "mini_base.json").read_text())
        assert result["cell"] == "mini_base"
        assert result["benchmarks"]["countdown_mini"]["k"] == 4
        assert set(result["provenance"]["data_hashes"]) >= {
            "seed0/run.json",
            "seed0/samples.parquet",
            "seed0/verdicts.parquet",
        }


def test_a_real_process_too(small: SmallStudy) -> None:
    done = script("train_policy", *train(small, cell="mini_dapo"))
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.splitlines() == ["error: unknown cell 'mini_dapo'; did you mean 'mini_dapo_offp'?"]
    assert [path.name for path in (small.root / "runs").iterdir()] == ["mini_base"]
