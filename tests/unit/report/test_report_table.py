"""Table 1 worked by hand: means, bold, ties, rounding, missing cells, and equal numbers in every form."""

import io
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from report_fixtures import METHODS, cell_values, fill, study_values, suite_values, write_cell

from acpo.cells import BASE, Cell
from acpo.config import Study, parse_study
from acpo.errors import ConfigError
from acpo.report import html, latex, registry
from acpo.report.sources import Results
from acpo.report.table import Number, Row, Table, mark_best, percent
from acpo.results import CellResult
from acpo.store import StoreError, write_json


def table1(results: Results) -> Table:
    return registry.make_table("table1", results)


def entry(table: Table, row: str, column: str, panel: str) -> pd.Series:
    frame = table.frame()
    chosen = frame[(frame.row == row) & (frame.column == column) & frame.panel.str.startswith(panel)]
    assert len(chosen) == 1
    return chosen.iloc[0]


def two_methods(seeds: list[int] | None = None) -> Study:
    values = study_values()
    values["grid"]["methods"] = ["dapo", "acpo"]
    values["seeds"] = seeds or [0, 1, 2]
    return parse_study(values)


@pytest.mark.parametrize(
    ("fraction", "printed"),
    [
        (0.7574, "75.74"),
        (0.12345, "12.35"),
        (0.123449, "12.34"),
        (0.0, "0.00"),
        (1.0, "100.00"),
        (1 / 3, "33.33"),
        (1e-7, "0.00"),
    ],
)
def test_percent(fraction: float, printed: str) -> None:
    assert percent(fraction) == printed


def test_mean_and_spread_by_hand(tmp_path: Path) -> None:
    study = two_methods()
    write_cell(tmp_path, Cell("mini", "acpo", "offp"), {0: 0.30, 1: 0.32, 2: 0.37}, {0: 0.29, 1: 0.30, 2: 0.31})
    table = table1(Results(study, tmp_path))
    best = entry(table, "ACPO", "OffP.", "Best")
    assert (best.printed, best.printed_seed_sd, best.seeds, best.k, best.questions) == (
        "33.00",
        "3.61",
        3,
        4,
        1000,
    )
    last = entry(table, "ACPO", "OffP.", "Last")
    assert (last.printed, last.printed_seed_sd) == ("30.00", "1.00")
    assert last.source == "results/mini_acpo_offp.json benchmarks.test.checkpoints.last.avg_at_k"


def test_note_names_the_grader_and_counts_what_it_left_undecided(tmp_path: Path) -> None:
    study = two_methods([0])
    cell = Cell("mini", "dapo", "nonp")
    values = cell_values(cell, {0: 0.3}, {0: 0.3})
    values["benchmarks"]["test"]["checkpoints"]["last"]["seeds"][0]["undecided"] = 7
    write_json(tmp_path / f"{cell}.json", CellResult.model_validate(values))
    note = table1(Results(study, tmp_path)).blocks[0].notes[0]
    assert "percent, graded by 1." in note
    assert note.endswith("The grader stopped at a limit on 7 responses, counted as wrong.")


def test_note_says_how_many_optimizer_steps_each_method_makes(tmp_path: Path) -> None:
    values = study_values()
    values["grid"]["methods"] = ["ar_lopti", "dapo", "acpo"]
    study = parse_study(values)
    for method in ("ar_lopti", "acpo"):
        for regime in ("nonp", "offp"):
            write_cell(tmp_path, Cell("mini", method, regime), {0: 0.3})
    notes = " ".join(table1(Results(study, tmp_path)).blocks[0].notes)
    assert "Optimizer steps a rollout, N-OnP./OffP.: 4/32 (AR-Lopti); 2/16 (ACPO)." in notes


def test_bold_by_unrounded_number(tmp_path: Path) -> None:
    study = two_methods([0])
    write_cell(tmp_path, Cell("mini", "dapo", "nonp"), {0: 0.30001}, questions=100_000)
    write_cell(tmp_path, Cell("mini", "acpo", "nonp"), {0: 0.30002}, questions=100_000)
    table = table1(Results(study, tmp_path))
    dapo, acpo = (entry(table, label, "N-OnP.", "Best") for label in ("DAPO", "ACPO"))
    assert dapo.printed == acpo.printed == "30.00"
    assert not dapo.best
    assert acpo.best


def test_ties_are_bold_together_whatever_the_order_of_the_sum() -> None:
    def row(value: float | None) -> Row:
        return Row("m", (Number("c", "s", "best", value),))

    marked = mark_best([row(0.1 + 0.2), row(0.3), row(0.29999999), row(None)])
    assert [row.numbers[0].best for row in marked] == [True, True, False, False]


def test_missing_is_a_dash_with_a_note_and_never_bold(tmp_path: Path, study: Study) -> None:
    table = table1(fill(tmp_path, study, leave_out=("mini_cispo_offp",), logs=False))
    gone = entry(table, "CISPO", "OffP.", "Best")
    assert gone.printed == "–"
    assert pd.isna(gone.value)
    assert not gone.best
    assert "–: no result in mini_cispo_offp." in table.blocks[0].notes
    line = next(line for line in latex.render(table).splitlines() if line.startswith("CISPO"))
    assert line.endswith(r"& -- \\")


def test_no_results_at_all(tmp_path: Path, study: Study) -> None:
    table = table1(Results(study, tmp_path))
    assert set(table.frame().printed) == {"–"}
    assert not table.frame().best.any()
    assert "–: no result yet in any cell." in table.blocks[0].notes
    assert "training seeds" not in " ".join(table.blocks[0].notes)


def test_one_seed_has_no_spread_and_says_so(tmp_path: Path) -> None:
    study = two_methods([0])
    table = table1(fill(tmp_path, study, logs=False))
    assert set(table.frame().printed_seed_sd) == {""}
    assert any(note.startswith("One training seed per cell") for note in table.blocks[0].notes)
    assert "pm" not in latex.render(table)


def test_fewer_seeds_than_asked_for_are_marked(tmp_path: Path) -> None:
    study = two_methods()
    write_cell(tmp_path, Cell("mini", "acpo", "offp"), {0: 0.30, 2: 0.32})
    table = table1(Results(study, tmp_path))
    assert "†: fewer training seeds than the study asks for: mini_acpo_offp 2 of 3." in table.blocks[0].notes
    assert r"31.00}$^\dagger$" in latex.render(table)


def test_base_spans_the_regimes(results: Results) -> None:
    table = table1(results)
    row = table.blocks[0].panels[0].rows[0]
    assert row.label == "Base Model"
    assert [number.span for number in row.numbers] == [2]
    assert r"Base Model & \multicolumn{2}{c}{16.00} \\" in latex.render(table)
    assert '<td colspan="2" class="number" data-cell="mini_base"' in html.render_table(table)


def test_rows_and_columns_follow_the_config(tmp_path: Path) -> None:
    values = study_values()
    values["methods"]["mine"] = {"label": "Mine", "objective": "mine", "parameters": {}}
    values["grid"]["methods"] = ["acpo", "mine", "dapo"]
    values["grid"]["regimes"] = ["offp", "nonp"]
    block = table1(Results(parse_study(values), tmp_path)).blocks[0]
    assert [row.label for row in block.panels[1].rows] == ["ACPO", "Mine", "DAPO"]
    assert block.groups[0].columns == ("OffP.", "N-OnP.")


def test_suites_of_both_families_with_notes(tmp_path: Path) -> None:
    values = study_values()
    values["suites"]["wide_a"] = suite_values("HiTab A", "hitab", note="unpublished & estimated")
    values["suites"]["wide_b"] = suite_values("HiTab B", "hitab", note="unpublished & estimated")
    values["suites"]["sums"] = suite_values("Sums", "math")
    values["grid"]["suites"] = ["mini", "wide_a", "sums", "wide_b"]
    study = parse_study(values)
    write_cell(tmp_path, Cell("wide_b", BASE, None), {0: 0.3125}, questions=10_000)
    table = table1(Results(study, tmp_path))
    assert [block.title for block in table.blocks] == ["Countdown", "HiTab"]
    hitab = table.blocks[1]
    assert [(group.label, group.mark) for group in hitab.groups] == [("HiTab A", "a"), ("HiTab B", "a")]
    assert hitab.notes.count("(a) unpublished & estimated") == 1
    assert r"\cmidrule(lr){2-3}\cmidrule(lr){4-5}" in latex.render(table)
    assert "31.25" in latex.render(table)


def test_a_grid_without_the_families_still_renders(tmp_path: Path) -> None:
    values = study_values()
    values["suites"]["mini"] = suite_values("Sums", "math")
    table = table1(Results(parse_study(values), tmp_path))
    assert table.blocks == ()
    assert "No Countdown" in latex.render(table)
    assert "No Countdown" in html.render_table(table)


def test_all_forms_print_the_same_numbers(results: Results) -> None:
    table = table1(results)
    frame = pd.read_csv(io.StringIO(table.frame().to_csv(index=False)), dtype={"printed": str})
    in_latex = re.findall(r"(?<![.\d])\d+\.\d\d(?!\d)", _body(latex.render(table)))
    in_html = re.findall(r">(\d+\.\d\d)<", re.sub(r"<small>.*?</small>|\s+", "", html.render_table(table)))
    printed = list(frame.printed)
    assert len(printed) == 1 + 2 * 2 * len(METHODS)
    assert in_html == printed
    spreads = [f"{spread:.2f}" for spread in frame.printed_seed_sd.dropna()]
    assert sorted(in_latex) == sorted(printed + spreads)


def _body(text: str) -> str:
    tabular = text[text.index(r"\toprule") : text.index(r"\bottomrule")]
    return "\n".join(line for line in tabular.splitlines() if not line.startswith("%"))


def test_every_number_names_its_file(results: Results) -> None:
    table = table1(results)
    tex, page = latex.render(table), html.render_table(table)
    for _, number in table.frame().iterrows():
        assert f"{number.printed} <- {number.source}" in tex
        assert f'data-cell="{number.cell}" data-source="{number.source}"' in page


def test_the_note_says_when_a_checkpoint_is_chosen_on_the_reported_set(tmp_path: Path) -> None:
    values = study_values()
    assert "Chosen on" not in _notes(values, tmp_path)
    values["suites"]["mini"]["validation"]["split"] = "test"
    assert "Chosen on the reported questions themselves: Mini-Countdown." in _notes(values, tmp_path)


def _notes(values: dict[str, Any], root: Path) -> str:
    return " ".join(table1(Results(parse_study(values), root)).blocks[0].notes)


def test_escape() -> None:
    assert latex.escape("50% & a_b #1 {x} ~ ^ \\ $") == (
        r"50\% \& a\_b \#1 \{x\} \textasciitilde{} \textasciicircum{} \textbackslash{} \$"
    )
    assert latex.escape("--cores – 2") == "-{}-cores -- 2"


def test_only_long_words_may_break_after_their_marks() -> None:
    assert latex.breakable("a/b results/probes_x/c") == (
        r"a/b results/\allowbreak{}probes\_\allowbreak{}x/\allowbreak{}c"
    )


def test_a_cell_under_another_name_is_refused(tmp_path: Path, study: Study) -> None:
    write_cell(tmp_path, Cell("mini", "dapo", "nonp"), {0: 0.3})
    (tmp_path / "mini_dapo_nonp.json").rename(tmp_path / "mini_acpo_nonp.json")
    with pytest.raises(StoreError, match=r"mini_acpo_nonp\.json: cell: expected 'mini_acpo_nonp'"):
        table1(Results(study, tmp_path))


def test_unknown_names_give_the_nearest(results: Results) -> None:
    with pytest.raises(ConfigError, match="unknown table 'tabel1'; did you mean 'table1'"):
        registry.make_table("tabel1", results)
    with pytest.raises(ConfigError, match="unknown figure 'figure8'; did you mean 'figure7'"):
        list(registry.draw_figure("figure8", results))


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed (texlive-latex-base)")
def test_latex_compiles(tmp_path: Path) -> None:
    values = study_values()
    note = "costs 5 % & more_ than ε ≤ 0.2 ± 1 – or α × β"
    values["suites"]["mini"]["note"] = note
    values["suites"]["wide"] = suite_values("HiTab", "hitab", note="unpublished #hyperparameters")
    values["grid"]["suites"] = ["mini", "wide"]
    table = table1(fill(tmp_path, parse_study(values), leave_out=("wide_dapo_nonp",), logs=False))
    (tmp_path / "table1.tex").write_text(latex.render(table), encoding="utf-8")
    (tmp_path / "paper.tex").write_text(
        "\\documentclass{article}\n\\usepackage{booktabs}\n\\begin{document}\n"
        "\\begin{table}\\caption{Results.}\\input{table1.tex}\\end{table}\n\\end{document}\n"
    )
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in done.stdout
