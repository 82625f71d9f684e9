"""Numbers as macros: a name for each, the text of the tables, and a visible error for an unknown name."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from report_fixtures import fill, fill_statistics, study_values, suite_values

from acpo.config import Study, parse_study
from acpo.report import registry
from acpo.report.latex import escape
from acpo.report.macros import named_numbers, render_macros
from acpo.report.sources import Results
from acpo.report.table import Block, Group, Number, Panel, Row, Table

needs_latex = pytest.mark.skipif(
    shutil.which("pdflatex") is None, reason="pdflatex is not installed (texlive-latex-base)"
)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> list[Table]:
    """All tables of a study with several suites, complete and with statistics."""
    values = study_values()
    two = {name: {"label": name, "task": "countdown_mini", "split": name, "samples": 4} for name in ("a", "b")}
    values["suites"]["orz"] = suite_values("ORZ", "math", benchmarks=two)
    values["suites"]["countdown"] = suite_values("Countdown")
    values["grid"]["suites"] = ["mini", "countdown", "orz"]
    study = parse_study(values)
    root = tmp_path_factory.mktemp("macros")
    fill_statistics(root, study)
    results = fill(root, study, logs=False)
    return [registry.make_table(name, results) for name in registry.table_names()]


def test_a_name_says_table_cell_benchmark_and_checkpoint(results: Results) -> None:
    named = named_numbers(registry.make_table("table1", results))
    # ACPO off-policy is the last of 12 trained cells: .25 + .007 * 12 = .334 for seed 0, .338, .342 for the others.
    assert named["table1/mini_acpo_offp/test/last"] == "33.80"
    assert named["table1/mini_acpo_offp/test/last/sd"] == "0.40"
    assert named["table1/mini_base/test/last"] == "16.00"


def test_every_printed_number_has_a_name(tables: list[Table]) -> None:
    for table in tables:
        named = named_numbers(table)
        texts = list(named.values())
        for place in table.places():
            assert place.number.text in texts
            assert not place.number.spread_text or place.number.spread_text in texts
        assert all(re.fullmatch(r"[a-z0-9_/-]+", name) for name in named), table.name


def test_names_are_the_same_for_the_same_number_only(tables: list[Table]) -> None:
    names = [name for table in tables for name in named_numbers(table)]
    assert len(names) == len(set(names))
    assert not [name for name in names if "checkpoint" in name]  # no name needed its headings


def test_two_numbers_of_one_name_are_told_apart_by_their_headings() -> None:
    rows = (Row("A (x)", (Number("c", "s", "last", 0.1), Number("c", "s", "last", 0.2))),)
    table = Table("t", "T", "", (Block("B", "M", (Group("G", ("one", "two")),), (Panel("P", rows),), ()),))
    assert named_numbers(table) == {"t/c/last/b-p-a-x-g-one": "10.00", "t/c/last/b-p-a-x-g-two": "20.00"}


def test_a_missing_number_is_a_dash(study: Study, tmp_path: Path) -> None:
    named = named_numbers(registry.make_table("table1", Results(study, tmp_path)))
    assert set(named.values()) == {"–"}


def typeset(folder: Path, body: str) -> subprocess.CompletedProcess[str]:
    (folder / "paper.tex").write_text(
        "\\documentclass{article}\n\\input{numbers.tex}\n\\begin{document}\n" + body + "\n\\end{document}\n"
    )
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@needs_latex
def test_all_macros_print_their_numbers(tables: list[Table], tmp_path: Path) -> None:
    (tmp_path / "numbers.tex").write_text(render_macros(tables), encoding="utf-8")
    named = {name: text for table in tables for name, text in named_numbers(table).items()}
    # LaTeX itself compares: a macro that prints anything else than its number is a message in the log.
    checks = "\n".join(
        rf"\sbox0{{\acponum{{{name}}}}}\sbox2{{{escape(text)}}}\ifdim\wd0=\wd2\else\typeout{{WRONG {name}}}\fi"
        for name, text in named.items()
    )
    done = typeset(tmp_path, checks + r"\acponum{table1/mini_acpo_offp/test/last}")
    assert done.returncode == 0, done.stdout[-2000:]
    assert "WRONG" not in done.stdout
    assert len(named) > 300


@needs_latex
def test_an_unknown_name_is_an_error_that_names_it(tables: list[Table], tmp_path: Path) -> None:
    (tmp_path / "numbers.tex").write_text(render_macros(tables), encoding="utf-8")
    done = typeset(tmp_path, r"\acponum{table1/mini_acpo_offp/test/lst}")
    assert done.returncode != 0
    assert "No number is called 'table1/mini_acpo_offp/test/lst'" in done.stdout.replace("\n", "")
