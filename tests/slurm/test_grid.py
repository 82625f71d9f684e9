"""The small study through a real SLURM: what runs where, with which GPUs, and equal to a local run byte for byte."""

import os
from collections import Counter
from pathlib import Path

import yaml

from tests.slurm.cluster import Cluster, output
from tests.slurm.conftest import STUDY, TARGET, Clone, Fault, wait_until
from tests.workflow.test_small_study import results_of

CELLS = 3  # DAPO, ACPO and the base model, one seed each
SUBMITTED = {
    "format_dataset": 3, "make_base": 1, "train_policy": CELLS - 1, "sample_responses": CELLS, "grade_samples": CELLS,
    "score_cell": CELLS, "probe_tokens": 1, "drift_policy": 1, "probe_gradients": 1, "time_updates": 1,
    "compare_methods": 1,
}  # fmt: skip


def rules_of(comments: list[str]) -> dict[str, int]:
    """Count jobs by rule, as the comments tell that Snakemake gives them."""
    return Counter(comment.removeprefix("rule_").split("_wildcards")[0] for comment in comments)


def test_whole_grid(clone: Clone, reference: Clone, cluster: Cluster, fault: Fault) -> None:
    before = Counter(cluster.described_jobs("%k"))
    clone.snakemake("all")
    made = Counter(cluster.described_jobs("%k")) - before
    assert rules_of(list(made.elements())) == SUBMITTED  # and the table, the figures and the report on this machine
    wanted = results_of(reference.directory)
    found = results_of(clone.directory)
    assert {name for name in wanted | found if found.get(name) != wanted.get(name)} == set()
    assert len(wanted) > 20
    assert clone.attempts == "", "a job reached for a network"
    fault.outcome, fault.equal = f"{sum(SUBMITTED.values())} jobs", "all results equal a local run's, no network used"


def test_gpus_are_those_asked_for(untrained: Clone, cluster: Cluster, fault: Fault) -> None:
    study = {**STUDY, "suites": {"mini": {**STUDY["suites"]["mini"], "resources": {"gpus": 2, "cpus": 3}}}}
    (untrained.directory / "small.yaml").write_text(yaml.safe_dump(study))
    process = untrained.start(TARGET)
    wait_until(lambda: untrained.training() or process.poll() is not None, told=lambda: untrained.log)
    (trainer,) = untrained.training()
    variables = dict(
        pair.split("=", 1) for pair in Path(f"/proc/{trainer}/environ").read_text().split("\0") if "=" in pair
    )
    assert variables["CUDA_VISIBLE_DEVICES"] == "0,1"
    (job,) = cluster.jobs()
    told = dict(pair.split("=", 1) for pair in output("scontrol", "show", "job", job).split() if "=" in pair)
    assert (told["Partition"], told["NumCPUs"], told["MinMemoryNode"]) == ("gpu", "3", "1500M")
    assert (told["TimeLimit"], told["Requeue"]) == ("00:30:00", "1")
    fault.outcome = "CUDA_VISIBLE_DEVICES=0,1 for 2 GPUs, 3 cores and 1500 MB, 30 minutes, partition gpu"
    os.killpg(process.pid, 9)
