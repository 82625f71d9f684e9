"""The paper as a target: planned with its parts, left out with a line where there is no LaTeX."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.workflow.conftest import Snakemake, command, environment
from tests.workflow.test_dag import planned

NAMED = "apt-get install texlive-latex-base texlive-latex-recommended"


@pytest.fixture
def without_latex(tmp_path: Path) -> dict[str, str]:
    """An environment with every program of this machine but pdflatex."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for folder in environment()["PATH"].split(":"):
        for program in Path(folder).glob("*"):
            if program.name != "pdflatex" and not (tools / program.name).exists():
                (tools / program.name).symlink_to(program)
    return {**environment(), "PATH": str(tools)}


def run(directory: Path, variables: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    line = command(directory, "--cores", "1", *arguments)
    return subprocess.run(line, capture_output=True, text=True, env=variables, timeout=120)


def test_all_makes_the_paper_and_every_macro(snakemake: Snakemake) -> None:
    done = snakemake("--cores", "2", "--dry-run", small=False)
    assert done.returncode == 0, done.stderr
    jobs = planned(done.stdout)
    assert (jobs["write_paper"], jobs["write_macros"], jobs["plot_overview"], jobs["compare_methods"]) == (1, 1, 2, 1)
    assert jobs.get("compile_paper", 0) == (shutil.which("pdflatex") is not None)
    assert (jobs["audit_claims"], jobs["check_theory"]) == (1, 1)


def test_the_paper_waits_for_audit_and_theory(snakemake: Snakemake) -> None:
    done = snakemake("--cores", "2", "--dry-run", "results/paper.tex")
    assert done.returncode == 0, done.stderr
    (job,) = [text for text in re.split(r"\n(?:local)?rule ", done.stdout) if text.startswith("write_paper:")]
    for file in ("results/audit/ledger.tex", "results/audit/published.tex", "results/theory/statements.tex"):
        assert file in job.split("output:")[0]


def test_without_latex_all_leaves_the_pdf_out(without_latex: dict[str, str], tmp_path: Path) -> None:
    done = run(tmp_path, without_latex, "--dry-run")
    assert done.returncode == 0, done.stderr
    jobs = planned(done.stdout)
    assert jobs["write_paper"] == 1
    assert "compile_paper" not in jobs


def test_without_latex_one_line_says_what_is_left_out(without_latex: dict[str, str], tmp_path: Path) -> None:
    done = run(tmp_path, without_latex, "results/data/countdown_mini/dev.parquet")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for line in (done.stdout + done.stderr).splitlines() if "pdflatex" in line]
    assert len(lines) == 1
    assert "results/paper.pdf is left out" in lines[0]
    assert NAMED in lines[0]


def test_without_latex_the_pdf_itself_is_refused_at_once(without_latex: dict[str, str], tmp_path: Path) -> None:
    done = run(tmp_path, without_latex, "results/paper.pdf")
    assert done.returncode != 0
    assert f"results/paper.pdf needs pdflatex: {NAMED}" in done.stdout + done.stderr
    assert not (tmp_path / "results/data").exists()
