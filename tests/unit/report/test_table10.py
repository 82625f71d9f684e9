"""Table 10: both modes side by side, no dash where a number exists, a reason where none does."""

import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from report_fixtures import comparison, fill_statistics, study_values, welch, write_statistics

from acpo.config import Study, parse_study
from acpo.report import latex, registry
from acpo.report.macros import named_numbers
from acpo.report.quantities import Points, PValue
from acpo.report.sources import Results
from acpo.report.table import Table
from acpo.stats.families import declared_hypotheses
from acpo.stats.records import CHECKPOINTS_ONLY
from acpo.store import StoreError


def table10(study: Study, root: Path) -> Table:
    return registry.make_table("table10", Results(study, root))


def row(table: Table, baseline: str, panel: str, block: str = ": ACPO, p") -> pd.DataFrame:
    made = table.frame()
    return made[(made.row == baseline) & made.panel.str.startswith(panel) & made.block.str.endswith(block)]


@pytest.mark.parametrize(
    ("p", "printed"),
    [
        (0.04996, "0.0500"),
        (0.05, "0.0500"),
        (0.001, "0.0010"),
        (0.00099, "9.9e-04"),
        (3e-17, "3.0e-17"),
        (0.0, "<1e-300"),
        (1.0, "1.0000"),
        (None, "–"),
    ],
)
def test_a_p_value_is_never_rounded_to_nothing(p: float | None, printed: str) -> None:
    assert PValue("c", "s", "last", p).text == printed


@pytest.mark.parametrize(("value", "printed"), [(0.012345, "+1.23"), (-0.5, "−50.00"), (0.0, "+0.00"), (None, "–")])
def test_a_difference_has_its_sign(value: float | None, printed: str) -> None:
    assert Points("c", "s", "last", value).text == printed


def test_both_modes_side_by_side(study: Study, tmp_path: Path) -> None:
    fill_statistics(tmp_path, study)
    table = table10(study, tmp_path)
    made = row(table, "DAPO", "OffP., last")
    assert list(made.column) == ["points", "seed 0", "seed 1", "seed 2", "Paired", "Sign flips", "Holm"]
    assert list(made.printed) == ["+3.00", "0.0100", "0.0200", "0.0300", "0.0200", "0.0300", "0.0600"]
    assert list(made.best) == [False, True, True, True, True, True, False]
    assert made.source.iloc[1] == (
        "results/statistics/statistics.json comparisons, mini_acpo_offp against mini_dapo_offp on test, last: "
        "paper, training seed 0, p"
    )
    assert not (table.frame().printed == "–").any()
    assert any(
        "corrected together with the others of the family all (6 hypotheses)" in n for n in table.blocks[0].notes
    )


def test_bold_is_by_the_unrounded_p(study: Study, tmp_path: Path) -> None:
    declared = declared_hypotheses(study)
    tests = [welch(0, 0.04999999), welch(1, 0.05), welch(2, 0.9)]
    write_statistics(tmp_path, [comparison(declared[0], "last", tests)], len(declared))
    made = row(table10(study, tmp_path), "Base Model", "N-OnP., last")
    assert list(made.printed)[1:4] == ["0.0500", "0.0500", "0.9000"]
    assert list(made.best)[1:4] == [True, False, False]


def test_the_tests_in_full(study: Study, tmp_path: Path) -> None:
    fill_statistics(tmp_path, study)
    made = row(table10(study, tmp_path), "CISPO", "N-OnP., training seed 2", "tests in full, last checkpoint")
    assert list(made.printed) == ["1.23", "0.45", "8", "4", "2.500", "9.88", "0.0300"]
    assert list(made.column) == ["SD treatment", "SD baseline", "n treatment", "n baseline", "t", "df", "p"]


def test_the_effects_with_intervals(study: Study, tmp_path: Path) -> None:
    fill_statistics(tmp_path, study)
    table = table10(study, tmp_path)
    made = row(table, "CISPO", "N-OnP., best", ": effects")
    assert list(made.column) == ["points", "low", "high", "Cliff's delta", "P(better run)"]
    assert list(made.printed) == ["+3.00", "+1.00", "+5.00", "0.100", "0.55"]
    assert list(made.value) == [0.03, 0.01, 0.05, 0.1, 0.55]
    assert made.source.iloc[1].endswith("mini_acpo_nonp against mini_cispo_nonp on test, best: inference.interval.low")
    assert "95 % interval, points" in set(made.group)
    named = named_numbers(table)
    assert named["table10/mini_acpo_nonp/test/cispo/interval_low/best"] == "+1.00"
    assert named["table10/mini_acpo_nonp/test/cispo/cliffs_delta/best"] == "0.100"


def test_an_interval_that_is_not_there_is_a_dash_with_a_reason(study: Study, tmp_path: Path) -> None:
    declared = declared_hypotheses(study)
    write_statistics(tmp_path, [comparison(h, "last", [welch(0, 0.5)], interval=None) for h in declared], len(declared))
    table = table10(study, tmp_path)
    assert list(row(table, "DAPO", "OffP., last", ": effects").printed) == ["+3.00", "–", "–", "0.100", "0.55"]
    notes = next(block.notes for block in table.blocks if block.title.endswith(": effects"))
    assert any("no interval, the difference has no spread: mini_acpo_nonp against mini_base" in note for note in notes)


def test_what_a_comparison_can_find(study: Study, tmp_path: Path) -> None:
    fill_statistics(tmp_path, study)
    table = table10(study, tmp_path)
    made = row(table, "DAPO", "OffP., last", ": minimum detectable differences")
    assert list(made.column) == ["1", "2", "3", "5", "10", "20"]
    assert list(made.printed) == ["6.00", "3.00", "2.00", "1.20", "0.60", "0.30"]
    (note,) = table.blocks[-1].notes
    assert "with power 0.8 (two-tailed, level 0.05), in points, by training seeds a method" in note


def test_the_notes_say_what_bold_speaks_for_and_the_floor_of_sign_flips(study: Study, tmp_path: Path) -> None:
    """Paper mode is one-tailed for one seed: bold may stand beside a mean difference of the other sign."""
    declared = declared_hypotheses(study)
    made = [comparison(h, "last", [welch(0, 0.0286), welch(1, 0.99)], difference=-0.0129) for h in declared]
    write_statistics(tmp_path, made, len(declared))
    table = table10(study, tmp_path)
    found = row(table, "DAPO", "OffP., last")
    assert list(found.printed)[:2] == ["−1.29", "0.0286"]
    assert found.best.iloc[1]
    notes = " ".join(table.blocks[0].notes)
    assert "In paper mode it speaks for ACPO on that training seed, whatever the sign of the difference" in notes
    assert "in inference mode that sign says in favour of which side" in notes
    # 1000 flips: the fixture's settings, 2 / 1001.
    assert "never below 0.0020, the least that 1000 random flips can give" in notes


def test_what_is_not_compared_is_named(study: Study, tmp_path: Path) -> None:
    declared = declared_hypotheses(study)
    made = [comparison(h, "last", [welch(0, 0.01), welch(2, None)]) for h in declared[1:]]
    write_statistics(tmp_path, made, len(declared))
    table = table10(study, tmp_path)
    assert set(row(table, "Base Model", "N-OnP., last").printed) == {"–"}
    notes = " ".join(table.blocks[0].notes)
    assert f"–, last checkpoint: not compared: {declared[0]}." in notes
    assert f"undefined, neither side has any spread: {declared[1]}, training seed 2" in notes
    assert "last checkpoint: not every training seed has a test: " in notes
    assert list(row(table, "DAPO", "OffP., last").printed)[1:4] == ["0.0100", "–", "–"]


def test_no_statistics_yet(study: Study, tmp_path: Path) -> None:
    table = table10(study, tmp_path)
    assert set(table.frame().printed) == {"–"}
    assert "–: no statistics yet: snakemake --cores 2 statistics" in table.blocks[0].notes
    assert r"\begin{tabular}" in latex.render(table)


def test_damaged_statistics_are_refused(study: Study, tmp_path: Path) -> None:
    (tmp_path / "statistics").mkdir()
    (tmp_path / "statistics/statistics.json").write_text('{"cells": [')
    with pytest.raises(StoreError, match=r"statistics\.json.*delete it"):
        table10(study, tmp_path)


def test_one_training_seed_is_about_checkpoints(tmp_path: Path) -> None:
    values = study_values()
    values["seeds"] = [0]
    study = parse_study(values)
    declared = declared_hypotheses(study)
    made = [comparison(h, "last", [welch(0, 0.01)], note=CHECKPOINTS_ONLY, scope="checkpoints") for h in declared]
    write_statistics(tmp_path, made, len(declared))
    table = table10(study, tmp_path)
    for block in (table.blocks[0], table.blocks[3]):
        assert any(CHECKPOINTS_ONLY in note for note in block.notes)
    found = row(table, "DAPO", "OffP., last", ": minimum detectable differences")
    assert list(found.printed) == ["6.00", *["–"] * 5]
    assert any("no side has two training seeds" in note for note in table.blocks[-1].notes)


def test_a_study_without_families_in_its_grid(tmp_path: Path) -> None:
    values = study_values()
    values["grid"]["methods"] = ["dapo", "cispo"]
    table = table10(parse_study(values), tmp_path)
    assert (table.blocks, table.caption) == ((), "The study declares no comparison within its grid")


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed (texlive-latex-base)")
def test_its_sub_tables_fit_pages_that_may_break_between_them(study: Study, tmp_path: Path) -> None:
    fill_statistics(tmp_path, study)
    (tmp_path / "table10.tex").write_text(latex.render(table10(study, tmp_path)), encoding="utf-8")
    (tmp_path / "paper.tex").write_text(
        "\\documentclass{article}\n\\usepackage{booktabs}\n\\usepackage[margin=2cm]{geometry}\n"
        "\\begin{document}\n\\input{table10.tex}\\end{document}\n"
    )
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in done.stdout
