"""The whole pipeline, for real, on a study of half a minute: once undisturbed, then through faults."""

import json
import math
import os
import shutil
import signal
import subprocess
import time
import zipfile
from pathlib import Path

import pandas as pd
import pytest
import yaml

from acpo.report.table import percent
from acpo.results import CellResult, RunRecord
from acpo.stats.records import CHECKPOINTS_ONLY, StatisticsResult
from acpo.store import read_json
from tests.documented import documented_files
from tests.workflow.conftest import ROOT, SMALL, command, environment

pytestmark = pytest.mark.slow

CELLS = [f"mini_{method}_{regime}" for method in ("dapo", "acpo") for regime in ("nonp", "offp")]
# A data set is there, the base model is made, a run has a checkpoint, a run is sampled.
MOMENTS = ("data/*/train.parquet", "runs/mini_base/seed0/run.json", "runs/*/*/states/rollout_*", "runs/*/*/samples*")
TIMES = {"wall_seconds", "peak_memory_mb", "run_wall_seconds", "seconds", "data_hashes", "git_dirty", "git_commit"}


def run_study(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    line = command(directory, "--cores", "2", *arguments, "--configfile", str(directory / "small.yaml"))
    return subprocess.run(line, capture_output=True, text=True, env=environment(), timeout=900)


def new_study(directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "small.yaml").write_text(yaml.safe_dump(SMALL))
    return directory


def timeless(value: object) -> object:
    """Drop what two equal runs may differ in: times, memory, and hashes of files that hold them."""
    if isinstance(value, dict):
        return {key: timeless(item) for key, item in value.items() if key not in TIMES}
    return [timeless(item) for item in value] if isinstance(value, list) else value


def results_of(directory: Path) -> dict[str, object]:
    """Collect everything that must be equal in two runs of one study: bytes of stores and models, content of JSON."""
    results = directory / "results"
    timed = ("timings.parquet", "table9.tex", "table9.csv", "numbers.tex", "paper.tex")
    content: dict[str, object] = {}
    for path in sorted(results.rglob("*")):
        name = str(path.relative_to(results))
        if path.suffix == ".json" and (path.name == "run.json" or path.parent == results):
            content[name] = timeless(json.loads(path.read_text()))
        elif path.name == "ledger.tex":
            # Its heading counts verdicts, and Table 9's are on times.
            content[name] = [
                row for row in path.read_text().splitlines() if "Table 9" not in row and not row.startswith("%")
            ]
        elif path.suffix in (".parquet", ".safetensors", ".tex", ".csv") and path.name not in timed:
            content[name] = path.read_bytes()
    return content


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = new_study(tmp_path_factory.mktemp("finished"))
    done = run_study(directory)
    assert done.returncode == 0, done.stdout + done.stderr
    return directory


def test_every_cell_is_whole(finished: Path) -> None:
    for name in [*CELLS, "mini_base"]:
        cell = read_json(finished / "results" / f"{name}.json", CellResult)
        score = cell.benchmarks["countdown_mini"]
        assert (score.questions, score.k) == (512, 2)
        assert set(score.checkpoints) == ({"last"} if name == "mini_base" else {"last", "best"})
        assert cell.provenance.configuration_hash
        assert cell.provenance.packages["torch"].startswith("2.13.0")


def test_scores_follow_from_the_verdicts(finished: Path) -> None:
    run = finished / "results/runs/mini_dapo_offp/seed0"
    verdicts = pd.read_parquet(run / "verdicts.parquet")
    cell = read_json(finished / "results/mini_dapo_offp.json", CellResult)
    for checkpoint, score in cell.benchmarks["countdown_mini"].checkpoints.items():
        right = verdicts[verdicts["checkpoint"] == checkpoint]["correct"]
        assert len(right) == 1024
        assert score.avg_at_k == pytest.approx(right.sum() / 1024, abs=1e-12)


def test_updates_are_those_of_the_regime(finished: Path) -> None:
    for regime, updates_per_rollout, rollouts in (("nonp", 2, 4), ("offp", 16, 2)):
        run = finished / f"results/runs/mini_acpo_{regime}/seed0"
        record = read_json(run / "run.json", RunRecord)
        assert (record.rollouts, record.updates) == (rollouts, rollouts * updates_per_rollout)
        metrics = pd.read_parquet(run / "metrics.parquet")
        first = metrics.groupby("rollout")["update"].min()
        drift = (metrics.set_index("update")["ratio_max"] - 1).abs()
        assert (drift[first] < 1e-4).all()
        assert drift.drop(first).max() > 1e-3
        assert metrics["gradient_norm"].max() > 0


def test_run_leaves_event_files_and_a_transformers_checkpoint(finished: Path) -> None:
    run = finished / "results/runs/mini_acpo_offp/seed0"
    assert list((run / "tensorboard").glob("events.out.tfevents.*"))
    assert not (run / "states").exists()
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(run / "last")
    tokens = AutoTokenizer.from_pretrained(run / "last")("1 2 3 to 6 >", return_tensors="pt")
    assert tokens["input_ids"].shape == (1, 7)
    assert model(**tokens).logits.shape == (1, 7, 113)


def test_finished_study_has_nothing_to_do(finished: Path) -> None:
    done = run_study(finished, "--dry-run")
    assert "Nothing to be done" in done.stdout + done.stderr


def test_tables_figures_and_paper_are_made(finished: Path) -> None:
    results = finished / "results"
    cell = read_json(results / "mini_acpo_offp.json", CellResult).benchmarks["countdown_mini"]
    last = percent(cell.checkpoints["last"].avg_at_k)
    macros = (results / "tables/numbers.tex").read_text()
    assert rf"\acponum@define{{table1/mini_acpo_offp/countdown_mini/last}}{{{last}}}" in macros
    comparisons = read_json(results / "statistics/statistics.json", StatisticsResult).comparisons
    p = next(c for c in comparisons if (c.regime, c.baseline, c.checkpoint) == ("offp", "dapo", "last")).paper[0].p
    table10 = pd.read_csv(results / "tables/table10.csv").set_index(["cell", "item", "checkpoint"])["value"]
    found = table10["mini_acpo_offp", "countdown_mini/dapo/welch_p_seed0", "last"].tolist()
    assert found == pytest.approx([math.nan if p is None else p] * 2, rel=1e-12, nan_ok=True)
    for figure in ("figure1", "figure3"):
        assert (results / f"figures/{figure}.png").read_bytes().startswith(b"\x89PNG")
    assert last in (results / "paper.tex").read_text()
    assert "Not drawn" not in (results / "paper.tex").read_text()
    assert (results / "paper.pdf").exists() == (shutil.which("pdflatex") is not None)


def test_snakemakes_own_report_has_captions_and_categories(finished: Path, tmp_path: Path) -> None:
    done = run_study(finished, "--report", str(tmp_path / "report.zip"))
    assert done.returncode == 0, done.stdout + done.stderr
    with zipfile.ZipFile(tmp_path / "report.zip") as report:
        text = "".join(
            report.read(name).decode("utf-8", "replace") for name in report.namelist() if "report.html" in name
        )
        data = {Path(name).name for name in report.namelist()}
    for category in ("Tables", "Figures", "Report"):
        assert f'"{category}"' in text
    assert "with this study's numbers" in text.replace("&#x27;", "'").replace("’", "'")
    assert {"table1.html", "table10.html", "figure1.png", "learning_curves_mini.png"} <= data


def test_statistics_and_export(finished: Path, tmp_path: Path) -> None:
    directory = new_study(tmp_path / "compared")
    subprocess.run(["cp", "-a", f"{finished}/.", str(directory)], check=True)
    done = run_study(directory, "statistics", "export")
    assert done.returncode == 0, done.stdout + done.stderr
    found = read_json(directory / "results/statistics/statistics.json", StatisticsResult)
    assert found.missing == []
    assert len(found.comparisons) == 2 * 2 * 2  # regimes x (base, DAPO) x checkpoints
    assert {item.inference.note for item in found.comparisons} == {CHECKPOINTS_ONLY}
    numbers = pd.read_parquet(directory / "results/export/numbers.parquet")
    cell = read_json(directory / "results/mini_acpo_offp.json", CellResult).benchmarks["countdown_mini"]
    ours = numbers[(numbers["kind"] == "seed") & (numbers["method"] == "acpo") & (numbers["regime"] == "offp")]
    last = ours[(ours["name"] == "avg_at_k") & (ours["checkpoint"] == "last")]
    assert last["value"].tolist() == [cell.checkpoints["last"].avg_at_k]
    again = run_study(directory, "statistics", "--forcerun", "compare_methods")
    assert again.returncode == 0, again.stdout + again.stderr
    assert read_json(directory / "results/statistics/statistics.json", StatisticsResult) == found


def test_new_label_retrains_nothing(finished: Path) -> None:
    done = run_study(finished, "--dry-run", "--config", "methods={acpo: {label: Adaptive}}")
    assert "make_report" in done.stdout
    assert "train_policy" not in done.stdout
    assert "time_updates" not in done.stdout
    assert "sample_responses" not in done.stdout


def test_new_learning_rate_retrains_but_keeps_the_base(finished: Path) -> None:
    done = run_study(finished, "--dry-run", "--config", "suites={mini: {training: {learning_rate: 1.0e-4}}}")
    assert "train_policy" in done.stdout
    assert "rule make_base" not in done.stdout


def test_study_killed_at_several_moments_ends_with_the_same_bytes(finished: Path, tmp_path: Path) -> None:
    """Kill -9 Snakemake and all its jobs, unlock, go on, as `docs/run.md` says: results are the undisturbed ones."""
    directory = new_study(tmp_path / "killed")
    line = command(directory, "--cores", "2", "--rerun-incomplete", "--configfile", str(directory / "small.yaml"))
    for moment in (
        "data/*/train.parquet",
        "runs/mini_base/seed0/run.json",
        "runs/*/*/states/rollout_*",
        "runs/*/*/samples*",
    ):
        with (directory / "out.txt").open("a") as out:
            process = subprocess.Popen(line, env=environment(), start_new_session=True, stdout=out, stderr=out)
            deadline = time.monotonic() + 300
            while not list((directory / "results").glob(moment)) and time.monotonic() < deadline:
                time.sleep(0.02)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        assert list((directory / "results").glob(moment)), (directory / "out.txt").read_text()
        assert not (directory / "results/report.html").exists()
        assert run_study(directory, "--unlock").returncode == 0
    done = run_study(directory, "--rerun-incomplete")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "resumed mini_" in done.stdout + (directory / "out.txt").read_text()
    assert results_of(directory) == results_of(finished)


def test_two_snakemakes_at_once(tmp_path: Path) -> None:
    directory = new_study(tmp_path / "twice")
    line = command(directory, "--cores", "1", "results/mini_base.json", "--configfile", str(directory / "small.yaml"))
    first = subprocess.Popen(line, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while not list(directory.glob(".snakemake/locks/*")) and time.monotonic() < deadline:
            time.sleep(0.05)
        second = run_study(directory, "results/mini_base.json")
    finally:
        assert first.wait(timeout=200) == 0
    assert second.returncode != 0
    assert "cannot be locked" in second.stdout + second.stderr
    assert str(directory) in second.stdout + second.stderr


@pytest.mark.parametrize("store", ["samples.parquet", "verdicts.parquet"])
def test_truncated_store_is_refused_by_name(finished: Path, tmp_path: Path, store: str) -> None:
    directory = new_study(tmp_path / "truncated")
    subprocess.run(["cp", "-a", f"{finished}/.", str(directory)], check=True)
    path = directory / "results/runs/mini_dapo_nonp/seed0" / store
    path.write_bytes(path.read_bytes()[:-100])
    done = run_study(directory, "results/mini_dapo_nonp.json", "--forcerun", "score_cell")
    assert done.returncode != 0
    errors = [line for line in done.stdout.splitlines() if line.startswith("error:")]
    assert errors
    assert store in errors[0]
    assert "delete it" in errors[0]


def test_truncated_cell_is_refused_by_name(finished: Path, tmp_path: Path) -> None:
    directory = new_study(tmp_path / "cell")
    subprocess.run(["cp", "-a", f"{finished}/.", str(directory)], check=True)
    path = directory / "results/mini_dapo_nonp.json"
    path.write_text(path.read_text()[:200])
    done = run_study(directory, "results/report.html")
    assert done.returncode != 0
    assert "results/mini_dapo_nonp.json" in done.stdout
    assert "error:" in done.stdout


@pytest.mark.parametrize(
    ("page", "entry", "cell"),
    [
        ("add_a_method.md", "method.yaml", "mini_cautious_offp"),
        ("add_a_task.md", "task.yaml", "larger_dapo_nonp"),
    ],
)
def test_documented_method_and_task_work_as_one_file_and_one_entry(
    tmp_path: Path, page: str, entry: str, cell: str
) -> None:
    clone = tmp_path / "clone"
    clone.mkdir()
    for name in ("Snakefile", "config.yaml", "workflow", "scripts", "src"):
        subprocess.run(["cp", "-a", str(ROOT / name), str(clone)], check=True)
    new_study(clone)
    for name, content in documented_files(page).items():
        (clone / name).write_text(content)
    suite, method, regime = cell.split("_")
    grid = f"grid={{suites: [{suite}], methods: [{method}], regimes: [{regime}]}}"
    line = command(clone, "--cores", "2", "--configfile", "small.yaml", entry, "--config", grid)
    line[line.index("--snakefile") + 1] = str(clone / "Snakefile")
    variables = {**environment(), "PYTHONPATH": str(clone / "src")}
    done = subprocess.run(line, capture_output=True, text=True, cwd=clone, env=variables, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    assert read_json(clone / f"results/{cell}.json", CellResult).method == method
    assert f"results/{cell}.json" in (clone / "results/tables/table1.tex").read_text()
