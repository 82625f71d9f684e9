"""The paper: complete, honest about what is missing, compiled for real, and faults said in one line."""

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from report_fixtures import fill, fill_statistics, study_values
from test_published_panels import paper_study  # noqa: F401

from acpo.config import Study, digest, parse_study
from acpo.errors import ConfigError
from acpo.report import pdf, registry
from acpo.report.paper import render_paper
from acpo.report.pdf import compile_pdf, first_errors
from acpo.report.sources import Results
from acpo.report.style import save
from acpo.report.text_table import TextTable, render_latex
from acpo.store import StoreError

SCRIPTS = Path(__file__).parents[3] / "scripts"
needs_latex = pytest.mark.skipif(
    shutil.which("pdflatex") is None, reason="pdflatex is not installed (texlive-latex-base)"
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder with cells, statistics, one figure and an audit; and its paper."""
    study = parse_study(study_values())
    root = tmp_path_factory.mktemp("paper")
    fill_statistics(root, study)
    results = fill(root, study, leave_out=("mini_cispo_offp",), logs=False)
    for drawing in registry.draw_figure("figure3", results):
        save(drawing, root / "figures")
    (root / "audit").mkdir()
    long = "snakemake --cores 2 results/probes/mini_dapo_nonp/seed0/gradients.json_and_something_very_long"
    table = TextTable("Ledger", "claims", ("Claim", "Command"), (0.1, 0.1), [("a & b_c ≤ 5 %", long)] * 30)
    (root / "audit/ledger.tex").write_text(render_latex(table), encoding="utf-8")
    (root / "paper.tex").write_text(render_paper(results), encoding="utf-8")
    return root


def test_every_table_and_figure_is_in_it(root: Path) -> None:
    text = (root / "paper.tex").read_text()
    for name in ("Table 1", "Table 9", "Table 10"):
        assert rf"\section{{{name}: " in text
    assert "Table 2: No suite of the math family in the grid." in text
    assert r"{figures/figure3.pdf}" in text
    assert "Not drawn: results/figures/figure7\\_" in text.replace("\\allowbreak{}", "")
    assert text.count(r"\begin{figure}") == len(registry.figure_names())
    assert r"\input{audit/ledger.tex}" in text
    assert "Not made: The paper's published numbers" in text
    assert r"\input{audit/published.tex}" not in text
    assert "mini\\_\\allowbreak{}cispo\\_\\allowbreak{}offp" in text.split(r"\subsection*{Missing}")[1]


def test_it_says_where_the_numbers_come_from(root: Path) -> None:
    text = (root / "paper.tex").read_text()
    assert digest(parse_study(study_values())) in text
    for origin in ("c0ffee0123456789", "deadbeef01234567", "0123456789ab ", "2.13.0"):
        assert origin in text
    assert "33.80 <- results/mini_acpo_offp.json benchmarks.test.checkpoints.last.avg_at_k" in text


@needs_latex
def test_it_compiles_twice_to_the_same_bytes(root: Path) -> None:
    before = sorted(file.name for file in root.iterdir())
    first = compile_pdf(root / "paper.tex", 120)
    assert first.startswith(b"%PDF")
    assert b"/CreationDate" not in first
    assert sorted(file.name for file in root.iterdir()) == before
    time.sleep(1.1)
    assert compile_pdf(root / "paper.tex", 120) == first


def too_large(source: Path, folder: Path) -> list[str]:
    """Compile a paper, and list what LaTeX finds wider or higher than a page."""
    line = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", f"-output-directory={folder}", source.name]
    done = subprocess.run(line, cwd=source.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    return [text for text in done.stdout.splitlines() if "Float too large" in text or "Overfull" in text]


@needs_latex
def test_results_fit_its_pages(root: Path, tmp_path: Path) -> None:
    assert too_large(root / "paper.tex", tmp_path) == []


@pytest.mark.slow
@needs_latex
def test_the_papers_suites_fit_its_pages(paper_study: Study, tmp_path: Path) -> None:  # noqa: F811
    """Eighteen settings with fourteen columns in one table."""
    (tmp_path / "paper.tex").write_text(render_paper(Results(paper_study, tmp_path)), encoding="utf-8")
    assert too_large(tmp_path / "paper.tex", tmp_path) == []


@needs_latex
def test_an_error_shows_its_first_lines(tmp_path: Path) -> None:
    source = tmp_path / "paper.tex"
    source.write_text("\\documentclass{article}\n\\begin{document}\n\\nosuchmacro\n\\end{document}\n")
    with pytest.raises(StoreError, match=r"paper\.tex:3: Undefined control sequence.*nosuchmacro") as caught:
        compile_pdf(source, 60)
    assert "\n" not in str(caught.value)
    done = subprocess.run(
        [sys.executable, str(SCRIPTS / "compile_paper.py"), "--source", str(source), "--output",
         str(tmp_path / "paper.pdf"), "--seconds", "60"], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert done.stderr.startswith("error: ")
    assert not (tmp_path / "paper.pdf").exists()


@needs_latex
def test_an_endless_document_is_ended(tmp_path: Path) -> None:
    source = tmp_path / "paper.tex"
    source.write_text("\\documentclass{article}\\begin{document}\\loop\\iftrue\\repeat\\end{document}")
    with pytest.raises(StoreError, match="LaTeX took longer than it may"):
        compile_pdf(source, 2)


@needs_latex
def test_no_shell_and_no_files_outside(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    source = folder / "paper.tex"
    escaping = rf"\immediate\write18{{touch {tmp_path}/made}}\immediate\openout3={tmp_path}/written.tex "
    source.write_text(r"\documentclass{article}\begin{document}" + escaping + r"x\end{document}")
    with pytest.raises(StoreError):
        compile_pdf(source, 60)
    assert not (tmp_path / "made").exists()
    assert not (tmp_path / "written.tex").exists()


def test_without_latex_the_packages_are_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(ConfigError, match="apt-get install texlive-latex-base texlive-latex-recommended"):
        compile_pdf(root / "paper.tex", 10)
    assert pdf.PACKAGES == "texlive-latex-base texlive-latex-recommended"


def test_the_first_error_of_a_log() -> None:
    log = [
        "This is pdfTeX",
        "(./paper.tex",
        "./paper.tex:12: Undefined control sequence.",
        "l.12 \\x",
        "",
        "  y",
        "! z",
    ]
    assert first_errors(log) == ["./paper.tex:12: Undefined control sequence.", "l.12 \\x", "y", "! z"]
    assert first_errors(["fine", "note: 3: x"]) == []


def test_an_empty_results_folder_is_a_paper_too(study: Study, tmp_path: Path) -> None:
    text = render_paper(Results(study, tmp_path))
    assert "0 of 13 cells" in text
    assert "Not made: The paper's claims" in text
