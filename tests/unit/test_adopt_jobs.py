"""What becomes of jobs that a killed Snakemake left: how they are ended, and which of their files are adopted."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

from acpo.slurm import Job

ROOT = Path(__file__).parents[2]
TRAINING = Job("1", "RUNNING", "None", "train_policy", "mini_acpo_offp_0")
WAITING = Job("2", "PENDING", "Priority", "train_policy", "mini_acpo_offp_1")
SAMPLING = Job("3", "RUNNING", "None", "sample_responses", "mini_dapo_offp_0")


@pytest.fixture
def script() -> SimpleNamespace:
    return SimpleNamespace(**runpy.run_path(str(ROOT / "scripts/adopt_jobs.py")))


@pytest.fixture
def commands(script: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    told: list[tuple[str, ...]] = []
    monkeypatch.setitem(script.end_jobs.__globals__, "command", lambda *words: told.append(words))
    return told


def test_training_is_warned_once_and_the_rest_cancelled(script: SimpleNamespace, commands: list) -> None:
    warned: set[str] = set()
    script.end_jobs([TRAINING, WAITING, SAMPLING], warned, patient=True)
    assert commands == [("scancel", "--signal=USR1", "1"), ("scancel", "2", "3")]
    script.end_jobs([TRAINING], warned, patient=True)
    assert len(commands) == 2
    script.end_jobs([TRAINING], warned, patient=False)
    assert commands[2:] == [("scancel", "1")]


def test_training_that_starts_meanwhile_is_warned_too(script: SimpleNamespace, commands: list) -> None:
    warned = {"7"}
    script.end_jobs([TRAINING], warned, patient=True)
    assert (commands, warned) == ([("scancel", "--signal=USR1", "1")], {"1", "7"})


def test_what_a_file_rests_on(script: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first, second, other = (
        Path(f"results/runs/{run}/run.json") for run in ("mini_a_offp/seed0", "mini_a_offp/seed1", "mini_b_offp/seed0")
    )
    for run in (first, second, other):
        run.parent.mkdir(parents=True)
        run.touch()
    for file, runs in {
        "data/countdown_mini/dev.parquet": [],
        "runs/mini_a_offp/seed1/run.json": [second],
        "runs/mini_a_offp/seed1/verdicts.parquet": [second],
        "probes/mini_a_offp/seed0/drift/drift.json": [first],
        "mini_a_offp.json": [first, second],
        "timing.json": [first, second, other],
        "statistics/statistics.json": [first, second, other],
    }.items():
        assert script.runs_behind(Path("results") / file) == runs, file


def test_nothing_of_an_outdated_run_is_adopted(
    script: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Snakemake takes the run behind an adopted file for made now: its code may be older."""
    monkeypatch.chdir(tmp_path)
    Path("snapshot.json").write_text("{}")
    files = [Path(f"results/runs/mini_{method}_offp/seed0/verdicts.parquet") for method in ("dapo", "acpo")]
    calls: list[list[str]] = []

    def call_snakemake(arguments: list[str]) -> str:
        calls.append(arguments)
        return "python x.py --config snapshot.json"

    for name, stand_in in {
        "call_snakemake": call_snakemake,
        "load_study": lambda path: path,
        "fits": lambda study, run: "acpo" in str(run),
    }.items():
        monkeypatch.setitem(script.record.__globals__, name, stand_in)
    script.record(files, ["--profile", "slurm"])
    assert calls[1:] == [["--profile", "slurm", "--touch", "--force", str(files[1])]]
    assert capsys.readouterr().out.splitlines() == [
        f"{files[0]} is not of the present configuration and code: delete it",
        f"adopted {files[1]}",
    ]


def test_a_run_that_is_not_there_does_not_fit(script: SimpleNamespace, tmp_path: Path) -> None:
    assert not script.fits(None, tmp_path / "run.json")
