"""Dry-runs of the real workflow: what is planned, and how a wrong configuration is refused."""

import ast
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from tests.workflow.conftest import ROOT, Snakemake, command, environment


def planned(output: str) -> dict[str, int]:
    """Read Snakemake's table of jobs."""
    table = output.split("Job stats:")[1].split("total")[0]
    return {name: int(count) for name, count in re.findall(r"^(\w+) +(\d+)$", table, re.MULTILINE)}


def test_default_grid(snakemake: Snakemake) -> None:
    done = snakemake("--cores", "2", "--dry-run", small=False)
    assert done.returncode == 0, done.stderr
    jobs = planned(done.stdout)
    # 6 methods x 2 regimes x 3 seeds, and the base model
    assert (jobs["train_policy"], jobs["make_base"]) == (36, 1)
    assert (jobs["sample_responses"], jobs["grade_samples"], jobs["score_cell"]) == (37, 37, 13)
    assert jobs["format_dataset"] == 3


def test_slurm_profile_plans_the_paper_suites_without_slurm() -> None:
    line = [command(ROOT)[0], "-m", "snakemake", "--profile", "slurm", "--dry-run", "--forceall", "all"]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, env=environment(), timeout=120)
    assert done.returncode == 0, done.stderr
    jobs = planned(done.stdout)
    assert (jobs["train_policy"], jobs["link_base"], jobs["score_cell"]) == (4 * 6 * 2 * 3, 4, 4 * 13)
    assert jobs["fetch_model"] == 3
    assert "make_base" not in jobs
    assert jobs["format_dataset"] == 2 + 2 + 7  # countdown, hitab, and math with six benchmarks
    assert "slurm_partition=gpu" in done.stdout
    assert "results/mini" not in done.stdout


@pytest.mark.parametrize("suite", ["countdown", "hitab_3b", "hitab_7b", "orz", "mini"])
def test_any_cell_by_name(snakemake: Snakemake, suite: str) -> None:
    target = f"results/{suite}_acpo_offp.json"
    done = snakemake("--cores", "2", "--dry-run", target, small=False)
    assert done.returncode == 0, done.stderr
    assert planned(done.stdout)["train_policy"] == 3


def test_seeds_from_the_command_line(snakemake: Snakemake) -> None:
    done = snakemake("--cores", "2", "--dry-run", "results/mini_dapo_nonp.json", "--config", "seeds=[7]", small=False)
    assert planned(done.stdout)["train_policy"] == 1
    assert "seed=7" in done.stdout


def test_grid_from_the_command_line(snakemake: Snakemake) -> None:
    grid = "grid={suites: [mini, orz], methods: [acpo], regimes: [offp]}"
    done = snakemake("--cores", "2", "--dry-run", "--config", grid, "seeds=[0]", small=False)
    assert planned(done.stdout)["train_policy"] == 2


def test_statistics_and_export_wait_for_the_whole_grid(snakemake: Snakemake) -> None:
    done = snakemake("statistics", "export", "--cores", "2", "--dry-run")
    assert done.returncode == 0, done.stderr
    jobs = planned(done.stdout)
    assert (jobs["compare_methods"], jobs["export_numbers"]) == (1, 1)
    assert (jobs["score_cell"], jobs["grade_samples"]) == (5, 5)


def test_measured_method_waits_for_the_run_it_reads(snakemake: Snakemake) -> None:
    done = snakemake("--cores", "2", "--dry-run", "results/mini_dapo_clip_max_offp.json", small=False)
    assert planned(done.stdout)["train_policy"] == 6  # three seeds of it, three of ACPO
    assert "results/runs/mini_acpo_offp/seed2/run.json" in done.stdout


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("sedes=[0]", "unknown key 'sedes'; did you mean 'seeds'?"),
        ("grid={methods: [daop]}", "unknown name 'daop'; did you mean 'dapo'?"),
        ("suites={mini: {training: {lerning_rate: 1}}}", "unknown key 'lerning_rate'; did you mean 'learning_rate'?"),
        ("regimes={offp: {mini_batch_size: -4}}", "regimes.offp.mini_batch_size"),
        ("regimes={offp: {mini_batch_size: 48}}", "does not divide train_batch_size"),
    ],
)
def test_wrong_configuration_is_refused(snakemake: Snakemake, override: str, message: str) -> None:
    done = snakemake("--cores", "2", "--dry-run", "--config", override, small=False)
    assert done.returncode != 0
    assert message in done.stderr + done.stdout


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("results/mini_acpoo_offp.json", "unknown cell 'mini_acpoo_offp'; did you mean 'mini_acpo_offp'?"),
        (
            "results/hitab_3b_lopti_offp.json",
            "unknown cell 'hitab_3b_lopti_offp'; did you mean 'hitab_3b_ar_lopti_offp'?",
        ),
    ],
)
def test_unknown_cell_is_refused(snakemake: Snakemake, target: str, message: str) -> None:
    done = snakemake("--cores", "2", "--dry-run", target, small=False)
    assert done.returncode != 0
    assert message in done.stderr + done.stdout


def test_wrong_method_parameter_is_refused_before_anything_runs(snakemake: Snakemake, tmp_path) -> None:
    done = snakemake(
        "--cores", "2", "results/mini_base.json", "--config", "methods={dapo: {parameters: {clip_hihg: 1}}}"
    )
    assert done.returncode != 0
    assert "methods.dapo.parameters: clip_hihg" in done.stderr + done.stdout
    assert not (tmp_path / "results" / "runs").exists()


def test_limit_shortens_data_sets_for_a_trial(snakemake: Snakemake, tmp_path: Path) -> None:
    done = snakemake("--cores", "1", "results/data/countdown_mini/dev.parquet", "--config", "limit=5", small=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(pd.read_parquet(tmp_path / "results/data/countdown_mini/dev.parquet")) == 5
    manifest = json.loads((tmp_path / "results/data/countdown_mini/dev.manifest.json").read_text())
    assert (manifest["rows"], manifest["limit"]) == (5, 5)


def test_data_of_the_paper_suites_from_the_mirror(snakemake: Snakemake, mirror: Path, tmp_path: Path) -> None:
    done = snakemake("--cores", "2", "data", "--config", f"mirror={mirror}", small=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {path.stem: len(pd.read_parquet(path)) for path in (tmp_path / "results/data").glob("*/*.parquet")}
    assert rows == {
        "math500": 500, "aime24": 30, "aime24_released": 30, "aime25": 30, "amc": 83, "amc23": 40, "minerva": 272,
        "olympiad": 675, "test": 1584, "test_released": 1584, "test300": 300,
    }  # fmt: skip
    assert "not in the mirror, so not made: math/orz57k, hitab/train, hitab/dev, countdown/train" in done.stdout
    report = json.loads((tmp_path / "results/data/overlap/orz57k_prefix.json").read_text())
    exact = {name: found["exact"] for name, found in report["benchmarks"].items()}
    assert exact.pop("math/olympiad") == 2
    assert set(exact.values()) == {0}


RULES = "\n".join(path.read_text() for path in [ROOT / "Snakefile", *sorted((ROOT / "workflow/rules").glob("*.smk"))])
PROFILE = (ROOT / "workflow/profiles/slurm/config.yaml").read_text()
SHIPPED = [
    ROOT / "config.yaml",
    *(file for file in sorted(ROOT.glob("workflow/profiles/*/*.yaml")) if file.name != "config.yaml"),
]


@pytest.mark.parametrize("file", SHIPPED, ids=lambda path: path.name)
def test_every_shipped_configuration_can_be_planned(snakemake: Snakemake, file: Path) -> None:
    """Alone where it is a whole study, over config.yaml where it is a part of one."""
    done = snakemake("--cores", "2", "--dry-run", "--quiet", "rules", "--configfile", str(file), small=False)
    assert done.returncode == 0, done.stdout + done.stderr
    jobs = planned(done.stdout)
    assert jobs["train_policy"] >= 36
    assert jobs["all"] == 1


def test_jobs_ask_for_what_their_suite_says() -> None:
    line = [command(ROOT)[0], "-m", "snakemake", "--profile", "slurm", "--dry-run", "results/hitab_3b_acpo_offp.json"]
    line += ["--cores", "64"]  # a dry-run shows no more threads than this machine may use
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, env=environment(), timeout=120)
    assert done.returncode == 0, done.stderr
    told = {}
    for text in re.split(r"^(?:local)?rule ", done.stdout, flags=re.MULTILINE)[1:]:
        asked = dict(re.findall(r"(\w+)=([^,\n]+)", text.split("resources: ")[1].split("\n")[0]))
        told[text.split(":")[0]] = asked | {"threads": (re.findall(r"threads: (\d+)", text) or ["1"])[0]}
    train, sample, grade = (told[name] for name in ("train_policy", "sample_responses", "grade_samples"))
    keys = ("gpu", "nodes", "threads", "mem_mb", "runtime", "slurm_partition")
    assert [train[key] for key in keys] == ["4", "1", "32", "256000", "10080", "gpu"]
    assert [sample[key] for key in keys] == ["1", "1", "8", "64000", "1008", "gpu"]
    assert [grade.get(key) for key in keys] == [None, None, "1", "4000", "60", "cpu"]
    assert train["slurm_extra"] == "--signal=USR1@900"
    assert "slurm_extra" not in grade


def test_retries_live_in_the_profile_only() -> None:
    assert "retries:" not in RULES
    assert re.search(r"^retries: \d", PROFILE, re.MULTILINE)


def test_incomplete_files_are_never_kept() -> None:
    assert "keep-incomplete" not in RULES + PROFILE


def test_no_profile_is_called_default() -> None:
    assert not list(ROOT.glob("workflow/profiles/default*"))
    assert (ROOT / "slurm").is_symlink()
    assert (ROOT / "slurm/config.yaml").is_file()


def shell_prefix() -> str:
    """Return what stands before every shell command, as bash sees it."""
    text = (ROOT / "workflow/rules/common.smk").read_text().split("shell.prefix(")[1].split("\n)\n")[0]
    return ast.literal_eval(f"({text.strip()})").format()


def test_a_signal_is_for_the_script_and_so_is_the_last_word(tmp_path: Path) -> None:
    """Every process of a job gets the signal: the script saves and says 75, its log is whole, bash hands both on."""
    script = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.3), print('saved', flush=True), sys.exit(75)))\n"
        "print('up', flush=True)\ntime.sleep(30)\n"
    )
    (tmp_path / "script.py").write_text(script)
    line = f"{shell_prefix()}{sys.executable} script.py 2>&1 | tee log"
    process = subprocess.Popen(
        ["bash", "-c", line], cwd=tmp_path, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    os.killpg(process.pid, signal.SIGTERM)
    assert process.communicate(timeout=20)[0] == "saved\n"
    assert process.returncode == 75
    assert (tmp_path / "log").read_text() == "up\nsaved\n"


def test_snakemake_lets_the_warning_before_a_time_limit_pass(snakemake: Snakemake, tmp_path: Path) -> None:
    """It is ignored, and so it is by all that a job starts, unless a script asks for it."""
    (tmp_path / "probe.smk").write_text(
        f'include: "{ROOT}/workflow/rules/common.smk"\n'
        'rule probe:\n    default_target: True\n    shell: "grep SigIgn /proc/self/status > ignored"\n'
    )
    line = command(tmp_path, "--cores", "1", "--configfile", str(ROOT / "config.yaml"))
    line[line.index("--snakefile") + 1] = str(tmp_path / "probe.smk")
    done = subprocess.run(line, capture_output=True, text=True, env=environment(), timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    ignored = int((tmp_path / "ignored").read_text().split()[1], 16)
    assert ignored >> (signal.SIGUSR1 - 1) & 1


def test_every_rule_with_a_shell_has_a_log_and_a_benchmark() -> None:
    for rule in re.split(r"^rule ", RULES, flags=re.MULTILINE)[1:]:
        if "shell:" in rule:
            assert "log:" in rule, rule.split(":")[0]
            assert "benchmark:" in rule, rule.split(":")[0]


def test_probes_are_planned_for_every_run_of_the_grid(snakemake: Snakemake) -> None:
    done = snakemake("--cores", "2", "--dry-run", "probes", "--config", "seeds=[0, 1]", small=False)
    assert done.returncode == 0, done.stderr
    jobs = planned(done.stdout)
    assert (jobs["probe_tokens"], jobs["train_policy"]) == (24, 24)
    without = "suites={mini: {token_store: {rollouts: []}}}"
    assert (
        "probe_tokens" not in snakemake("--cores", "2", "--dry-run", "probes", "--config", without, small=False).stdout
    )


def test_the_theory_needs_no_run(snakemake: Snakemake) -> None:
    done = snakemake("--cores", "2", "--dry-run", "theory", small=False)
    assert planned(done.stdout) == {"check_theory": 1, "map_dominance": 1, "plot_sign_map": 1, "theory": 1}
