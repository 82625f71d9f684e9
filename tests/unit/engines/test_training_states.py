"""What a training run resumes from, in one process; tests/workflow kills real ones."""

from pathlib import Path
from typing import Any

import pytest
from small_study import SmallStudy

from acpo.engines.tiny import trainer as trainer_module
from acpo.engines.tiny.engine import ENGINE


@pytest.fixture(scope="module")
def whole(small_base: SmallStudy, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An undisturbed run of mini_dapo_nonp."""
    run = tmp_path_factory.mktemp("whole") / "run"
    ENGINE.train(small_base.job("mini_dapo_nonp", run))
    return run


class StopError(Exception):
    """Breaks a run off."""


class TestStates:
    """States that are kept, damaged, of another run, or gone."""

    def stopped(
        self, small: SmallStudy, monkeypatch: pytest.MonkeyPatch, after: int, cell: str = "mini_dapo_nonp"
    ) -> Path:
        """Train up to the state of rollout `after`, then break off."""
        real = trainer_module.save_state

        def save_and_stop(directory: Path, state: Any, fingerprint: str) -> None:
            real(directory, state, fingerprint)
            if state.rollout == after:
                raise StopError

        monkeypatch.setattr(trainer_module, "save_state", save_and_stop)
        with pytest.raises(StopError):
            ENGINE.train(small.job("mini_dapo_nonp"))
        monkeypatch.setattr(trainer_module, "save_state", real)
        return small.run("mini_dapo_nonp")

    def same(self, one: Path, other: Path) -> None:
        names = ["metrics.parquet", "rollouts.parquet", "last/model.safetensors", "best/model.safetensors"]
        names += [f"tokens/rollout_{i:06d}.parquet" for i in (1, 2)]
        for name in names:
            assert (one / name).read_bytes() == (other / name).read_bytes(), name

    def test_only_two_are_kept_and_none_at_the_end(
        self, small: SmallStudy, monkeypatch: pytest.MonkeyPatch, whole: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        run = self.stopped(small, monkeypatch, after=3)
        assert sorted(path.name for path in (run / "states").iterdir()) == ["rollout_000002", "rollout_000003"]
        assert not (run / "run.json").exists()
        ENGINE.train(small.job("mini_dapo_nonp"))
        assert "resumed mini_dapo_nonp seed 0 after rollout 3" in capsys.readouterr().err
        assert not (run / "states").exists()
        self.same(run, whole)

    @pytest.mark.parametrize("file", ["state.safetensors", "updates.parquet", "rollouts.parquet", "manifest.json"])
    @pytest.mark.parametrize("damage", ["truncated", "flipped", "absent"])
    def test_a_damaged_one_is_passed_over(
        self, small: SmallStudy, monkeypatch: pytest.MonkeyPatch, whole: Path, capsys: pytest.CaptureFixture[str],
        file: str, damage: str,
    ) -> None:  # fmt: skip
        run = self.stopped(small, monkeypatch, after=3)
        path = run / "states/rollout_000003" / file
        content = path.read_bytes()
        middle = len(content) // 2
        if damage == "absent":
            path.unlink()
        elif damage == "truncated":
            path.write_bytes(content[:middle])
        else:
            path.write_bytes(content[:middle] + bytes([content[middle] ^ 0xFF]) + content[middle + 1 :])
        ENGINE.train(small.job("mini_dapo_nonp"))
        told = capsys.readouterr().err
        assert "warning: " in told
        assert "rollout_000003" in told
        assert "not resumed" in told
        assert "resumed mini_dapo_nonp seed 0 after rollout 2" in told
        self.same(run, whole)

    def test_both_damaged_begins_anew(
        self, small: SmallStudy, monkeypatch: pytest.MonkeyPatch, whole: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        run = self.stopped(small, monkeypatch, after=2)
        for state in (run / "states").iterdir():
            (state / "manifest.json").write_text("[]")
        ENGINE.train(small.job("mini_dapo_nonp"))
        told = capsys.readouterr().err
        assert told.count("warning: ") == 2
        assert "resumed" not in told.replace("not resumed", "")
        self.same(run, whole)

    @pytest.mark.parametrize("change", ["configuration", "seed", "data", "base"])
    def test_one_of_another_run_is_not_resumed(
        self, small: SmallStudy, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], change: str
    ) -> None:
        run = self.stopped(small, monkeypatch, after=3)
        options: dict[str, Any] = {}
        if change == "configuration":
            small.change(training={"learning_rate": 1e-3})
        elif change == "seed":
            options["seed"] = 1
        elif change == "data":
            options["data_hashes"] = {"train": "0"}
        else:
            ENGINE.train(small.job("mini_grpo_nonp"))
            options["base_directory"] = small.run("mini_grpo_nonp") / "last"
        ENGINE.train(small.job("mini_dapo_nonp", **options))
        assert "belongs to another configuration or version of the code; not resumed" in capsys.readouterr().err
        ENGINE.train(small.job("mini_dapo_nonp", small.root / "clean", **options))
        self.same(run, small.root / "clean")

    def test_a_stale_one_does_not_displace_new_ones(self, small: SmallStudy, monkeypatch: pytest.MonkeyPatch) -> None:
        run = self.stopped(small, monkeypatch, after=3)
        small.change(training={"learning_rate": 1e-3})
        self.stopped(small, monkeypatch, after=1)
        assert [path.name for path in (run / "states").iterdir()] == ["rollout_000001"]

    def test_leftovers_of_a_killed_writer_go(self, small: SmallStudy) -> None:
        run = small.run("mini_dapo_offp")
        for name in (".last.x1.tmp", "states/.rollout_000001.x2.tmp"):
            (run / name).mkdir(parents=True)
        (run / "tokens").mkdir()
        (run / "tokens/.rollout_000001.parquet.x3.tmp").write_text("half")
        ENGINE.train(small.job("mini_dapo_offp"))
        assert not list(run.rglob("*.tmp"))

    def test_an_old_completion_file_does_not_outlive_the_start(
        self, small: SmallStudy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run = small.run("mini_dapo_nonp")
        run.mkdir(parents=True)
        (run / "run.json").write_text("{}")
        self.stopped(small, monkeypatch, after=1)
        assert not (run / "run.json").exists()
