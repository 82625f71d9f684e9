"""Dry-runs of the ablations: their cells and tables are planned when asked for, and `all` plans none of them."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.workflow.conftest import ROOT, Snakemake, command, environment
from tests.workflow.test_dag import planned


def trained(output: str) -> set[str]:
    """Return the cells of the runs that are planned."""
    return set(re.findall(r"^    output: results/runs/(\w+)/seed\d+/run\.json$", output, re.MULTILINE)) - {"mini_base"}


def in_both(methods: set[str]) -> set[str]:
    return {f"mini_{method}_{regime}" for method in methods for regime in ("nonp", "offp")}


SETTINGS = {f"acpo_a{alpha}_e0{base}" for alpha in (2, 3, 4) for base in range(4)} - {"acpo_a3_e02"} | {"acpo"}
CLIPS = {"dapo", "dapo_clip_max", "grpo_clip_avg", "acpo"}
BINS = {"acpo_bins4", "acpo", "acpo_bins6"}


def test_ablations_plan_their_cells_and_tables(snakemake: Snakemake) -> None:
    done = snakemake("--cores", "2", "--dry-run", "ablations", "--config", "seeds=[0]", small=False)
    assert done.returncode == 0, done.stderr
    cells = in_both(SETTINGS | CLIPS | BINS)
    assert trained(done.stdout) == cells
    jobs = planned(done.stdout)
    assert (jobs["train_policy"], jobs["score_cell"]) == (len(cells), len(cells)) == (34, 34)
    assert (jobs["make_table"], jobs["make_base"]) == (4, 1)
    assert not {"make_report", "plot_figure", "time_updates", "probe_tokens"} & set(jobs)
    # What it costs stands under the table of jobs.
    assert re.search(r"^mini +34 ", done.stdout.rsplit("Training to be done", 1)[1], re.MULTILINE)


@pytest.mark.parametrize(
    ("table", "methods"), [("table5", SETTINGS), ("table6", CLIPS), ("table7", BINS), ("table8", BINS)]
)
def test_one_table_plans_its_own_cells(snakemake: Snakemake, table: str, methods: set[str]) -> None:
    target = f"results/tables/{table}.tex"
    done = snakemake("--cores", "2", "--dry-run", target, "--config", "seeds=[0]", small=False)
    assert done.returncode == 0, done.stderr
    assert trained(done.stdout) == in_both(methods)
    assert planned(done.stdout)["make_table"] == 1


def test_all_plans_none_of_them(snakemake: Snakemake) -> None:
    done = snakemake("--cores", "2", "--dry-run", "all", small=False)
    assert done.returncode == 0, done.stderr
    methods = {"ar_lopti", "high_entropy", "low_entropy", "dapo", "cispo", "acpo"}
    assert trained(done.stdout) == in_both(methods)
    assert "results/tables/table1.tex" in done.stdout
    assert not re.search(r"results/tables/table[5678]\.", done.stdout)


@pytest.mark.parametrize(("asked", "shown"), [(["all"], []), (["all", "ablations"], ["table5", "table8"])])
def test_report_and_paper_wait_for_those_of_the_same_command(
    snakemake: Snakemake, tmp_path: Path, asked: list[str], shown: list[str]
) -> None:
    earlier = tmp_path / "results/tables/table6.tex"
    earlier.parent.mkdir(parents=True)
    earlier.touch()
    done = snakemake("--cores", "2", "--dry-run", *asked, "--config", "seeds=[0]", small=False)
    assert done.returncode == 0, done.stderr
    for rule in ("make_report", "write_paper", "write_macros"):
        job = done.stdout.split(f"rule {rule}:\n", 1)[1].split("\n\n", 1)[0]
        inputs = re.search(r"^    input: (.*)$", job, re.MULTILINE)[1]
        assert [table for table in ("table5", "table8") if f"results/tables/{table}.tex" in inputs] == shown


def test_an_ablation_from_the_command_line(snakemake: Snakemake) -> None:
    grid = "ablations={table6: {suites: [countdown], regimes: [offp]}}"
    done = snakemake(
        "--cores", "2", "--dry-run", "results/tables/table6.html", "--config", grid, "seeds=[1]", small=False
    )
    assert done.returncode == 0, done.stderr
    assert trained(done.stdout) == {f"countdown_{method}_offp" for method in CLIPS} | {"countdown_base"}


def test_slurm_profile_plans_the_paper_suites() -> None:
    line = [command(ROOT)[0], "-m", "snakemake", "--profile", "slurm", "--dry-run", "--forceall", "ablations"]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, env=environment(), timeout=120)
    assert done.returncode == 0, done.stderr
    cells = {cell for cell in trained(done.stdout) if not cell.endswith("_base")}
    expected = {("orz", method) for method in SETTINGS | BINS} | {("countdown", method) for method in CLIPS | BINS}
    assert cells == {f"{suite}_{method}_{regime}" for suite, method in expected for regime in ("nonp", "offp")}


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("ablations={table6: {methods: [dapo_clipmax]}}", "ablations.table6.methods: unknown name 'dapo_clipmax'"),
        ("ablations={table6: {methods: []}}", "ablations.table6.methods: give at least one, each once"),
        ("ablations={tabel6: {suites: [mini], methods: [acpo], regimes: [offp]}}", "did you mean 'table6'?"),
    ],
)
def test_a_wrong_ablation_is_refused(snakemake: Snakemake, override: str, message: str) -> None:
    done = snakemake("--cores", "2", "--dry-run", "ablations", "--config", override, small=False)
    assert done.returncode != 0
    assert message in done.stderr + done.stdout


def test_an_unknown_table_is_refused(snakemake: Snakemake) -> None:
    done = snakemake("--cores", "2", "--dry-run", "results/tables/table55.tex", small=False)
    assert done.returncode != 0
    assert "unknown table 'table55'; did you mean 'table5'?" in done.stderr + done.stdout
