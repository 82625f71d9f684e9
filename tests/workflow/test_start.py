"""What is refused when a workflow starts, before its first job."""

from pathlib import Path

from tests.workflow.conftest import Snakemake


def test_batches_that_do_not_divide_stop_the_workflow(snakemake: Snakemake, tmp_path: Path) -> None:
    done = snakemake(
        "--cores", "1", "results/data/countdown_mini/dev.parquet", "--config", "grid={suites: [mini_verl]}",
        "suites={mini_verl: {engine: {micro_batch_size: 7}}}", small=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "suites.mini_verl.engine.micro_batch_size: an update of regime 'nonp' has 128 responses" in done.stderr
    assert not (tmp_path / "results" / "data").exists()
