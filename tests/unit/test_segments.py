"""Segments of a long run: signals are noted and acted on at safe points, and two without progress are enough."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from small_study import SmallStudy

from acpo import segments
from acpo.engines.tiny import trainer as trainer_module
from acpo.engines.tiny.engine import ENGINE
from acpo.segments import NoProgressError, Segment, SegmentEndedError, SegmentList
from acpo.store import StoreError, read_json

NAME = "mini_acpo_offp seed 0"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A clock that a test turns by hand."""
    made = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(segments.time, "monotonic", lambda: made.now)
    return made


def told(directory: Path) -> list[dict]:
    return json.loads((directory / "segments.json").read_text())["segments"]


def segment(directory: Path, fingerprint: str = "f") -> Segment:
    return Segment(directory, NAME, fingerprint)


def live(
    directory: Path, clock: SimpleNamespace, start: int, seconds: float, end: int | None = None, by: str = ""
) -> None:
    """One segment: it begins, saves a step perhaps, and ends by a signal or, without one, silently."""
    with pytest.raises((SegmentEndedError, SystemExit)), segment(directory) as part:
        part.begin(start)
        clock.now += seconds
        if end is not None:
            part.saved(end)
        if by:
            os.kill(os.getpid(), getattr(signal, by))
            part.end_if_signalled()
        part.alive()
        before = (directory / "segments.json").read_bytes()
        raise SystemExit
    if not by:  # a killed process does not write its end
        (directory / "segments.json").write_bytes(before)


class TestRecord:
    def test_by_hand(self, tmp_path: Path, clock: SimpleNamespace) -> None:
        live(tmp_path, clock, 0, 50, end=7, by="SIGUSR1")
        live(tmp_path, clock, 7, 45)
        with segment(tmp_path) as part:
            part.begin(7)
            clock.now += 3.25
            part.saved(20)
        keys = ("start", "end", "seconds", "ended_by")
        assert [tuple(each[key] for key in keys) for each in told(tmp_path)] == [
            (0, 7, 50.0, "SIGUSR1"), (7, 7, 45.0, None), (7, 20, 3.2, "done"),
        ]  # fmt: skip

    def test_the_slurm_job_is_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SLURM_JOB_ID", "4711")
        with segment(tmp_path) as part:
            part.begin(0)
        assert told(tmp_path)[0]["job"] == "4711"

    def test_an_error_is_told_apart_from_a_signal(self, tmp_path: Path) -> None:
        with pytest.raises(StoreError), segment(tmp_path) as part:
            part.begin(0)
            raise StoreError("no space")
        assert told(tmp_path)[0]["ended_by"] == "error"

    @pytest.mark.parametrize("change", ["fingerprint", "done"])
    def test_another_run_begins_anew(self, tmp_path: Path, change: str) -> None:
        with segment(tmp_path) as part:
            part.begin(0)
            part.saved(5)
            if change == "fingerprint":
                part._write(None)
        with segment(tmp_path, "other" if change == "fingerprint" else "f") as part:
            part.begin(0)
        assert [each["start"] for each in told(tmp_path)] == [0]

    def test_a_damaged_file_is_passed_over(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "segments.json").write_text('{"schema_version": 1, "segm')
        with segment(tmp_path) as part:
            part.begin(3)
        assert "segments.json" in capsys.readouterr().err
        assert len(told(tmp_path)) == 1
        read_json(tmp_path / "segments.json", SegmentList)


class TestSignals:
    @pytest.mark.parametrize("name", ["SIGUSR1", "SIGTERM", "SIGINT"])
    def test_noted_and_acted_on_at_a_safe_point(self, tmp_path: Path, clock: SimpleNamespace, name: str, capfd) -> None:
        with pytest.raises(SegmentEndedError) as end, segment(tmp_path) as part:
            part.begin(0)
            part.end_if_signalled()
            clock.now += 12
            os.kill(os.getpid(), getattr(signal, name))
            assert part.signalled
            assert told(tmp_path)[0] == {"start": 0, "end": 0, "seconds": 12.0, "ended_by": name, "job": None}
            part.saved(4)
            part.end_if_signalled()
        assert str(end.value) == (f"ended by {name}: {NAME} is saved after step 4: the same command goes on from there")
        assert capfd.readouterr().err == f"{name}: {NAME} ends at its next safe point\n"

    def test_before_anything_is_saved(self, tmp_path: Path) -> None:
        with pytest.raises(SegmentEndedError, match=f"{NAME} starts anew"), segment(tmp_path) as part:
            os.kill(os.getpid(), signal.SIGTERM)
            part.begin(0)
            part.end_if_signalled()

    def test_a_second_ctrl_c_ends_at_once(self, tmp_path: Path) -> None:
        with pytest.raises(KeyboardInterrupt), segment(tmp_path) as part:
            part.begin(0)
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)

    def test_the_handlers_from_before_come_back(self, tmp_path: Path) -> None:
        before = [signal.getsignal(number) for number in segments.SIGNALS]
        with segment(tmp_path):
            assert [signal.getsignal(number) for number in segments.SIGNALS] != before
        assert [signal.getsignal(number) for number in segments.SIGNALS] == before

    def test_an_engine_may_take_them_itself(self, tmp_path: Path) -> None:
        before = [signal.getsignal(number) for number in segments.SIGNALS]
        with pytest.raises(SegmentEndedError), Segment(tmp_path, NAME, "f", signals=()) as part:
            assert [signal.getsignal(number) for number in segments.SIGNALS] == before
            part.begin(0)
            part.saved(3)
            raise SegmentEndedError("stopped", signal.SIGTERM)
        assert (told(tmp_path)[0]["end"], told(tmp_path)[0]["ended_by"]) == (3, "SIGTERM")

    def test_the_warning_counts_not_the_end_of_the_slot_after_it(self, tmp_path: Path) -> None:
        with pytest.raises(SystemExit), segment(tmp_path) as part:
            part.begin(0)
            os.kill(os.getpid(), signal.SIGUSR1)
            os.kill(os.getpid(), signal.SIGTERM)
            assert told(tmp_path)[0]["ended_by"] == "SIGUSR1"
            raise SystemExit
        assert told(tmp_path)[0]["ended_by"] == "SIGUSR1"


class TestProgress:
    IDLE: tuple[Callable[[Path, SimpleNamespace], None], ...] = (
        lambda place, clock: live(place, clock, 5, 100, by="SIGUSR1"),
        lambda place, clock: live(place, clock, 5, 100),
    )
    OTHER: tuple[Callable[[Path, SimpleNamespace], None], ...] = (
        lambda place, clock: live(place, clock, 5, 29, by="SIGUSR1"),  # too short to tell
        lambda place, clock: live(place, clock, 5, 29),
        lambda place, clock: live(place, clock, 5, 100, by="SIGINT"),  # a person's doing
        lambda place, clock: live(place, clock, 5, 100, by="SIGTERM"),  # a person's, or another job's
    )

    @pytest.mark.parametrize("first", IDLE)
    @pytest.mark.parametrize("second", IDLE)
    def test_two_without_any_are_enough(self, tmp_path: Path, clock: SimpleNamespace, first, second) -> None:
        first(tmp_path, clock)
        second(tmp_path, clock)
        for _ in range(2):  # also when it is tried again
            with pytest.raises(NoProgressError) as error, segment(tmp_path) as part:
                part.begin(5)
            assert str(error.value).startswith(f"{NAME}: no progress after step 5 in two segments of 100 s and 100 s. ")
            assert f"delete {tmp_path}/segments.json" in str(error.value)
        assert len(told(tmp_path)) == 2
        (tmp_path / "segments.json").unlink()
        live(tmp_path, clock, 5, 1)

    @pytest.mark.parametrize("other", OTHER)
    def test_what_tells_nothing(self, tmp_path: Path, clock: SimpleNamespace, other) -> None:
        for _ in range(3):
            other(tmp_path, clock)
        self.IDLE[0](tmp_path, clock)
        other(tmp_path, clock)
        other(tmp_path, clock)
        self.IDLE[1](tmp_path, clock)  # the second one: it was still allowed to start
        with pytest.raises(NoProgressError), segment(tmp_path) as part:
            part.begin(5)

    def test_any_step_between_starts_the_count_again(self, tmp_path: Path, clock: SimpleNamespace) -> None:
        for _ in range(3):
            live(tmp_path, clock, 5, 100, by="SIGUSR1")
            live(tmp_path, clock, 5, 10, end=6, by="SIGUSR1")
        live(tmp_path, clock, 6, 100, by="SIGUSR1")


class TestTraining:
    """The embedded engine: a signal in the middle of a rollout, and the bytes of a run that had none."""

    def test_saved_after_the_rollout_and_resumed(
        self, small: SmallStudy, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        small.change(training={"checkpoint_every": 100})
        whole = small.root / "whole"
        ENGINE.train(small.job("mini_dapo_nonp", whole))
        run, real = small.run("mini_dapo_nonp"), trainer_module.collect

        def signalling(*arguments):
            if arguments[-1] == 1:
                os.kill(os.getpid(), signal.SIGUSR1)
            return real(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(trainer_module, "collect", signalling)
            with pytest.raises(SegmentEndedError, match="mini_dapo_nonp seed 0 is saved after step 2"):
                ENGINE.train(small.job("mini_dapo_nonp"))
        assert not (run / "run.json").exists()
        assert [path.name for path in (run / "states").iterdir()] == ["rollout_000002"]
        ENGINE.train(small.job("mini_dapo_nonp"))
        assert "resumed mini_dapo_nonp seed 0 after rollout 2" in capsys.readouterr().err
        for name in ("metrics.parquet", "rollouts.parquet", "last/model.safetensors", "best/model.safetensors"):
            assert (run / name).read_bytes() == (whole / name).read_bytes()
        assert [(each["start"], each["end"], each["ended_by"]) for each in told(run)] == [
            (0, 2, "SIGUSR1"), (2, 4, "done"),
        ]  # fmt: skip

    def test_a_signal_in_the_last_rollout_changes_nothing(
        self, small: SmallStudy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real = trainer_module.Trainer._validate_if_due

        def signalling(self, learner, state):
            if state.rollout == 4:
                os.kill(os.getpid(), signal.SIGTERM)
            return real(self, learner, state)

        monkeypatch.setattr(trainer_module.Trainer, "_validate_if_due", signalling)
        ENGINE.train(small.job("mini_dapo_nonp"))
        assert (small.run("mini_dapo_nonp") / "run.json").exists()
        assert told(small.run("mini_dapo_nonp"))[0]["ended_by"] == "done"
