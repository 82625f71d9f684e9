"""The audit as a target: alone on an empty folder, and again when there is more to judge."""

import json
import re
import resource
from pathlib import Path

import pytest

from tests.workflow.conftest import Snakemake
from tests.workflow.test_dag import planned


def test_audit_plans_no_study(snakemake: Snakemake) -> None:
    done = snakemake("--cores", "2", "--dry-run", "audit", small=False)
    assert done.returncode == 0, done.stderr
    assert planned(done.stdout) == {"audit": 1, "audit_claims": 1}


@pytest.mark.parametrize("target", [(), ("all",), ("results/report.html",)])
def test_report_waits_for_the_audit_and_the_audit_for_the_study(snakemake: Snakemake, target: tuple[str, ...]) -> None:
    done = snakemake(*target, "--cores", "2", "--dry-run")
    assert done.returncode == 0, done.stderr
    jobs = planned(done.stdout)
    assert (jobs["make_report"], jobs["audit_claims"], jobs["compare_methods"]) == (1, 1, 1)
    inputs = dict(re.findall(r"rule (\w+):\n    input: (.*)", done.stdout))
    assert "results/mini_acpo_offp.json" in inputs["audit_claims"]
    assert "results/runs/mini_acpo_offp/seed0/run.json" in inputs["audit_claims"]
    assert "results/probes/mini_dapo_offp/seed0/tokens.json" in inputs["audit_claims"]
    for needed in ("audit/ledger.json", "statistics/statistics.json", "runs/mini_acpo_offp/seed0/verdicts.parquet"):
        assert f"results/{needed}" in inputs["make_report"]


@pytest.mark.slow
def test_audit_runs_alone_and_again_when_evidence_comes(snakemake: Snakemake, tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = snakemake("--cores", "2", "audit", small=False)
    assert done.returncode == 0, done.stdout + done.stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 60
    rows = json.loads((tmp_path / "results/audit/ledger.json").read_text())["rows"]
    assert any("needs results/mini_acpo_nonp.json; make it with" in row["why"] for row in rows)
    assert not (tmp_path / "results/runs").exists()
    again = snakemake("--cores", "2", "--dry-run", "audit", small=False)
    assert "Nothing to be done" in again.stdout + again.stderr
    (tmp_path / "results/theory").mkdir()
    (tmp_path / "results/theory/statements.json").write_text(json.dumps({"statements": []}))
    more = snakemake("--cores", "2", "--dry-run", "audit", small=False)
    assert planned(more.stdout)["audit_claims"] == 1


def test_suites_of_another_engine_plan_no_timing(snakemake: Snakemake) -> None:
    done = snakemake("--cores", "2", "--dry-run", "--config", "grid={suites: [orz]}", small=False)
    assert done.returncode == 0, done.stderr
    assert "time_updates" not in planned(done.stdout)


def test_default_study_times_its_updates_once(snakemake: Snakemake) -> None:
    done = snakemake("--cores", "2", "--dry-run", small=False)
    assert planned(done.stdout)["time_updates"] == 1
