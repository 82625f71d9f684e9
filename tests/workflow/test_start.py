"""What is refused when a workflow starts, before its first job."""

from pathlib import Path

import pytest

from tests.workflow.conftest import Snakemake


def test_batches_that_do_not_divide_stop_the_workflow(snakemake: Snakemake, tmp_path: Path) -> None:
    done = snakemake(
        "--cores", "1", "results/data/countdown_mini/dev.parquet", "--config", "grid={suites: [mini_verl]}",
        "suites={mini_verl: {engine: {micro_batch_size: 7}}}", small=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "suites.mini_verl.engine.micro_batch_size: an update of regime 'nonp' has 128 responses" in done.stderr
    assert not (tmp_path / "results" / "data").exists()


def test_several_nodes_are_refused_where_jobs_are_submitted(snakemake: Snakemake, tmp_path: Path) -> None:
    """The job step of Snakemake's SLURM plugin is one task on one node: SLURM refuses it the GPUs of two."""
    done = snakemake(
        "--executor", "slurm", "--jobs", "1", "results/data/countdown_mini/dev.parquet",
        "--config", "suites={mini: {resources: {nodes: 2}}}",
    )  # fmt: skip
    assert done.returncode != 0
    assert "suites.mini.resources.nodes: a job that Snakemake submits runs on one node" in done.stderr
    assert not (tmp_path / "results" / "data").exists()


@pytest.mark.parametrize("limit", ["0", "-3", "abc", "1.5"])
def test_a_limit_that_is_no_number_of_rows_is_refused(snakemake: Snakemake, limit: str) -> None:
    done = snakemake("--cores", "1", "--dry-run", "results/mini_base.json", "--config", f"limit={limit}")
    assert done.returncode != 0
    assert "limit: give a positive number of rows (given: " in done.stdout + done.stderr
