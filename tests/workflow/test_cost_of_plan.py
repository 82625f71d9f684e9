"""The cost of a plan under Snakemake's table of jobs."""

from tests.workflow.conftest import Snakemake

HEADING = "Training to be done"


def test_a_dry_run_ends_with_the_cost_of_what_is_to_be_trained(snakemake: Snakemake) -> None:
    done = snakemake(
        "--cores", "2", "--dry-run", "results/orz_acpo_offp.json", "results/mini_dapo_nonp.json", small=False
    )
    assert done.returncode == 0, done.stderr
    tail = done.stdout.rsplit(HEADING, 1)[1]
    # three seeds of 14 days on 4 GPUs
    assert "4,032" in tail
    assert [line.split()[:2] for line in tail.splitlines()[3:6]] == [["mini", "3"], ["orz", "3"], ["total", "6"]]


def test_no_cost_without_training(snakemake: Snakemake) -> None:
    done = snakemake("--cores", "2", "--dry-run", "results/mini_base.json")
    assert done.returncode == 0, done.stderr
    assert HEADING not in done.stdout


def test_quiet_stays_quiet(snakemake: Snakemake) -> None:
    done = snakemake("--cores", "2", "--dry-run", "results/mini_acpo_offp.json", "--quiet", small=False)
    assert done.returncode == 0, done.stderr
    assert HEADING not in done.stdout + done.stderr
