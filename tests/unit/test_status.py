"""What `scripts/cluster_status.py` says of runs in every state, and how the queue is read."""

import json
import os
import runpy
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from acpo import slurm, status
from acpo.cells import Cell
from acpo.config import Study
from acpo.slurm import Job, SlurmError, queued_jobs, unrecorded_outputs
from acpo.status import run_status, study_status

ROOT = Path(__file__).parents[2]
CELL = Cell("mini", "acpo", "offp")
TRAIN = Job("12", "RUNNING", "None", "train_policy", "mini_acpo_offp_1")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    made = tmp_path / "results/runs/mini_acpo_offp/seed1"
    made.mkdir(parents=True)
    return made


def describe(run: Path, *jobs: Job) -> status.RunStatus:
    return run_status(CELL, 1, run.parents[2], jobs)


def write_progress(run: Path, **changes: object) -> None:
    content = {
        "step": 5, "steps": 22, "tokens_per_second": 812.5, "seconds_left": 93.0, "updated": time.time(),
        "host": "elsewhere", "process": 1, "job": "12",
    }  # fmt: skip
    (run / "progress.json").write_text(json.dumps(content | changes))


def write_segments(run: Path, *ends: str | None) -> None:
    part = {"start": 0, "end": 4, "seconds": 60.0, "job": None}
    content = {"schema_version": 1, "fingerprint": "f", "segments": [part | {"ended_by": end} for end in ends]}
    (run / "segments.json").write_text(json.dumps(content))


def write_log(run: Path, name: str, text: str) -> None:
    path = run.parents[2] / "logs/mini_acpo_offp/seed1" / name
    path.parent.mkdir(parents=True)
    path.write_text(text)


class TestStates:
    def test_waiting(self, run: Path) -> None:
        found = describe(run)
        assert (found.stage, found.state, found.step, found.job) == ("train", "waiting", None, None)

    @pytest.mark.parametrize("state", ["PENDING", "CONFIGURING", "REQUEUED"])
    def test_queued(self, run: Path, state: str) -> None:
        write_progress(run)  # of an earlier slot
        found = describe(run, Job("12", state, "Priority", "train_policy", "mini_acpo_offp_1"))
        assert (found.state, found.job, found.detail, found.step) == ("queued", "12", "Priority", 5)
        assert found.tokens_per_second is None

    def test_running(self, run: Path) -> None:
        write_progress(run)
        write_segments(run, "SIGUSR1", None)
        found = describe(run, TRAIN)
        assert (found.state, found.job, found.step, found.steps) == ("running", "12", 5, 22)
        assert (found.tokens_per_second, found.seconds_left, found.segments) == (812.5, 93.0, 2)

    def test_another_run_of_the_queue_is_not_this_one(self, run: Path) -> None:
        other = Job("13", "RUNNING", "None", "train_policy", "mini_acpo_offp_11")
        assert describe(run, other).state == "waiting"
        assert describe(run, Job("14", "RUNNING", "None", "grade_samples", "mini_acpo_offp_1")).state == "waiting"

    def test_running_without_a_queue(self, run: Path) -> None:
        write_progress(run)
        assert describe(run).state == "running"
        write_progress(run, updated=time.time() - status.SILENT_SECONDS - 5)
        assert describe(run).state == "waiting"
        write_progress(run, host=os.uname().nodename, process=os.getpid())  # alive, but no training process
        assert describe(run).state == "waiting"
        line = [sys.executable, "-c", "import time; time.sleep(60)", "train_policy.py"]
        with subprocess.Popen(line) as process:
            write_progress(run, host=os.uname().nodename, process=process.pid)
            deadline = time.monotonic() + 10
            while describe(run).state != "running" and time.monotonic() < deadline:
                time.sleep(0.01)
            assert describe(run).state == "running"
            process.kill()
        assert describe(run).state == "waiting"

    def test_stopped_by_a_signal(self, run: Path) -> None:
        write_segments(run, "SIGTERM")
        write_log(run, "train.log", "ended by SIGTERM\n")
        found = describe(run)
        assert (found.state, found.detail) == ("stopped", "SIGTERM at step 4: the next slot goes on from there")

    def test_failed_with_the_last_lines_of_its_log(self, run: Path) -> None:
        write_segments(run, "error")
        write_log(run, "train.log", "x" * 10_000 + "\none\ntwo\n\nerror: no space [red]\n")
        found = describe(run)
        assert (found.state, found.detail) == ("failed", "two\nerror: no space [red]")

    def test_later_stages(self, run: Path) -> None:
        (run / "run.json").write_text("{}")
        assert (describe(run).stage, describe(run).state) == ("sample", "waiting")
        (run / "samples.parquet").write_text("")
        write_log(run, "grade.log", "error: bad\n")
        assert (describe(run).stage, describe(run).state) == ("grade", "failed")
        (run / "verdicts.parquet").write_text("")
        assert (describe(run).stage, describe(run).state) == ("", "done")

    def test_a_log_of_an_earlier_time_is_no_failure(self, run: Path) -> None:
        write_log(run, "sample.log", "")
        (run / "run.json").write_text("{}")
        os.utime(run / "run.json", (time.time() + 60, time.time() + 60))
        assert (describe(run).stage, describe(run).state) == ("sample", "waiting")

    def test_damaged_records_only_hide_how_far_it_is(self, run: Path) -> None:
        (run / "progress.json").write_text('{"step": 5')
        (run / "segments.json").write_text("[]")
        found = describe(run, TRAIN)
        assert (found.state, found.step, found.segments) == ("running", None, 0)

    def test_a_study_has_one_line_a_run(self, shipped: Study, tmp_path: Path) -> None:
        found = study_status(shipped, tmp_path, [Job("3", "RUNNING", "None", "make_base", "mini")])
        assert len(found) == 1 + 6 * 2 * 3
        assert [(each.cell, each.state) for each in found if each.state != "waiting"] == [("mini_base", "running")]

    def test_cells_outside_the_grid_are_listed_once_they_were_started(self, shipped: Study, tmp_path: Path) -> None:
        (tmp_path / "runs/mini_acpo_bins4_nonp").mkdir(parents=True)
        (tmp_path / "runs/no_cell").mkdir()
        queue = [
            Job("1", "PENDING", "Priority", "train_policy", "mini_acpo_bins6_offp_1"),
            Job("2", "RUNNING", "None", "make_base", "mini_verl"),
            Job("3", "RUNNING", "None", "format_dataset", "countdown_mini_dev"),
        ]
        found = study_status(shipped, tmp_path, queue)
        others = sorted(found[37:], key=lambda each: (each.cell, each.seed))
        assert [(each.cell, each.seed, each.state) for each in others] == [
            ("mini_acpo_bins4_nonp", 0, "waiting"), ("mini_acpo_bins4_nonp", 1, "waiting"),
            ("mini_acpo_bins4_nonp", 2, "waiting"), ("mini_acpo_bins6_offp", 0, "waiting"),
            ("mini_acpo_bins6_offp", 1, "queued"), ("mini_acpo_bins6_offp", 2, "waiting"),
            ("mini_verl_base", 0, "running"),
        ]  # fmt: skip


@pytest.fixture
def squeue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A squeue that prints a file."""
    place = tmp_path / "bin"
    place.mkdir()
    tool = place / "squeue"
    tool.write_text(f"#!/bin/sh\ncat {tmp_path}/queue\n")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(place), prepend=os.pathsep)
    (tmp_path / "queue").write_text(
        f"7|RUNNING|None|rule_train_policy_wildcards_mini_acpo_offp_1|{tmp_path}\n"
        f"8|PENDING|Resources|rule_make_base_wildcards_mini|{tmp_path}\n"
        f"9|PENDING|Resources|rule_make_base_wildcards_mini|/another/study\n"
        f"10|RUNNING|None|(null)|{tmp_path}\n"
    )
    return tmp_path


class TestQueue:
    def test_jobs_of_this_directory(self, squeue: Path) -> None:
        assert queued_jobs(squeue) == [
            Job("7", "RUNNING", "None", "train_policy", "mini_acpo_offp_1"),
            Job("8", "PENDING", "Resources", "make_base", "mini"),
        ]

    def test_no_slurm(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(SlurmError, match="no squeue here: run this on the cluster's login node"):
            queued_jobs(tmp_path)

    def test_a_controller_that_does_not_answer(self, squeue: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (squeue / "bin/squeue").write_text("#!/bin/sh\necho 'slurm_load_jobs error: timed out' >&2\nexit 1\n")
        with pytest.raises(SlurmError, match="slurm_load_jobs error: timed out"):
            queued_jobs(squeue)
        (squeue / "bin/squeue").write_text("#!/bin/sh\nexec sleep 5\n")
        monkeypatch.setattr(slurm, "TIMEOUT_SECONDS", 0.2)
        with pytest.raises(SlurmError, match="squeue does not answer"):
            queued_jobs(squeue)


def test_outputs_without_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("results/mini_base.json", "results/runs/mini_base/seed0/run.json", "results/config/1.json"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("{}")
    assert unrecorded_outputs(Path("results")) == [
        Path("results/mini_base.json"), Path("results/runs/mini_base/seed0/run.json"),
    ]  # fmt: skip
    record = Path(".snakemake/metadata/cmVzdWx0cy9taW5pX2Jhc2UuanNvbg==")
    record.parent.mkdir(parents=True)
    written = Path("results/mini_base.json").stat().st_mtime
    record.write_text(json.dumps({"endtime": written}))
    assert unrecorded_outputs(Path("results")) == [Path("results/runs/mini_base/seed0/run.json")]
    record.write_text(json.dumps({"endtime": written - 60}))  # of the file that was there before
    assert len(unrecorded_outputs(Path("results"))) == 2
    record.write_text("{")
    assert len(unrecorded_outputs(Path("results"))) == 2


class TestScript:
    def call(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple:
        monkeypatch.setattr(sys, "argv", ["cluster_status", *arguments])
        code = 0
        try:
            runpy.run_path(str(ROOT / "scripts/cluster_status.py"), run_name="__main__")
        except SystemExit as end:
            code = end.code
        told = capsys.readouterr()
        return code, told.out, told.err

    def test_table_and_json(
        self, run: Path, squeue: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(squeue)
        monkeypatch.setenv("COLUMNS", "140")
        write_progress(run)
        config = ("--config", str(ROOT / "config.yaml"))
        code, out, err = self.call(monkeypatch, capsys, *config)
        (line,) = [each for each in out.splitlines() if each.split()[:2] == ["mini_acpo_offp", "1"]]
        assert line.split() == ["mini_acpo_offp", "1", "train", "running", "5/22", "812", "0:01:33", "7"]
        assert out.splitlines()[-1] == "37 runs: 1 running, 1 queued, 35 waiting"
        assert (code, err) == (0, "")
        code, out, _ = self.call(monkeypatch, capsys, *config, "--json")
        (found,) = [each for each in json.loads(out) if each["state"] == "running"]
        assert (found["cell"], found["seed"], found["step"], found["seconds_left"]) == ("mini_acpo_offp", 1, 5, 93.0)

    def test_nothing_started(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(tmp_path)
        code, out, err = self.call(monkeypatch, capsys)
        assert (code, out) == (1, "")
        assert err.startswith("error: results/config: nothing was started here yet")
