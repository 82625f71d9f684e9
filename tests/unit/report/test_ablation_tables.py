"""Tables 5 to 8 worked by hand: rows of the paper, averages, bold, ties, gaps, and the paper's numbers."""

import copy
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from report_fixtures import cell_values, provenance, study_values, suite_values, write_cell

from acpo.cells import Cell, ablation_cells
from acpo.config import Study, parse_study
from acpo.errors import ConfigError
from acpo.report import html, latex, registry
from acpo.report.sources import Results
from acpo.report.table import Block, Table
from acpo.results import CellResult, RunRecord
from acpo.store import write_json

REGIMES = ["nonp", "offp"]
SETTINGS = {"acpo_a2_e00": (2.0, 0.0), "acpo_a2_e01": (2.0, 0.1), "acpo": (3.0, 0.2)}
CLIPS = ["dapo", "dapo_clip_max", "grpo_clip_avg", "acpo"]
BINS = {"acpo_bins4": 4, "acpo": 5, "acpo_bins6": 6}
BENCHMARKS = {"minerva": "Minerva", "aime24": "AIME24"}


def ablated_values(suites: list[str]) -> dict[str, Any]:
    """Return a study with the methods and grids of Tables 5 to 8, and two suites of the paper beside `mini`."""
    values = study_values()
    methods = values["methods"]
    for name, (alpha, base) in SETTINGS.items():
        parameters = {"alpha": alpha, "clip_base": base, "bins": 5}
        methods[name] = {"label": f"ACPO {name}", "objective": "acpo", "parameters": parameters}
    for name, bins in BINS.items():
        parameters = {"alpha": 3.0, "clip_base": 0.2, "bins": bins}
        methods[name] = {"label": "ACPO", "objective": "acpo", "parameters": parameters}
    for name, label, parameter, statistic in (
        ("dapo_clip_max", "DAPO (Clip-High=Max)", "clip_high", "clip_width_max"),
        ("grpo_clip_avg", "GRPO (Clip=Avg)", "clip", "clip_width_mean"),
    ):
        measured = {parameter: {"method": "acpo", "statistic": statistic}}
        methods[name] = {"label": label, "objective": "grpo", "parameters": {}, "measured": measured}
    values["suites"]["orz"] = suite_values("ORZ-57K", "math", benchmarks=benchmarks(*BENCHMARKS))
    values["suites"]["countdown"] = suite_values("Countdown", benchmarks=benchmarks("countdown"), note="sizes unknown")
    lists = {"table5": list(SETTINGS), "table6": CLIPS, "table7": list(BINS), "table8": list(BINS)}
    values["ablations"] = {
        name: {"suites": suites, "methods": chosen, "regimes": REGIMES} for name, chosen in lists.items()
    }
    return values


def benchmarks(*names: str) -> dict[str, Any]:
    return {
        name: {"label": BENCHMARKS.get(name, "Countdown"), "task": "math", "split": name, "samples": 4}
        for name in names
    }


def study(*suites: str) -> Study:
    return parse_study(ablated_values(list(suites)))


def write(root: Path, name: str, **scores: dict[int, float]) -> None:
    """Write a cell with the scores of each benchmark's best checkpoint by seed; the last ones are 0.1 lower."""
    suite, _, rest = name.partition("_")
    method, _, regime = rest.rpartition("_")
    cell = Cell(suite, method, regime)
    values: dict[str, Any] = {}
    for key, best in scores.items():
        made = cell_values(cell, best, {seed: score - 0.1 for seed, score in best.items()})
        values = values or made | {"benchmarks": {}}
        values["benchmarks"][key] = copy.deepcopy(made["benchmarks"]["test"])
    write_json(root / f"{cell}.json", CellResult.model_validate(values))


def write_record(root: Path, cell: Cell, seed: int, **measured: float) -> None:
    record = {
        "cell": str(cell), "seed": seed, "rollouts": 1, "updates": 1, "response_tokens": 1, "checkpoints": {},
        "measured_parameters": measured, "provenance": provenance(cell),
    }  # fmt: skip
    write_json(root / "runs" / str(cell) / f"seed{seed}" / "run.json", RunRecord.model_validate(record))


def printed(block: Block, panel: str) -> dict[str, list[str]]:
    """Return the numbers of a panel by row label; bold ones have a star."""
    found = [each for each in block.panels if each.title == panel]
    assert len(found) == 1, [each.title for each in block.panels]
    return {row.label: [n.text + "*" * n.best + n.mark for n in row.numbers] for row in found[0].rows}


def build(name: str, root: Path, *suites: str) -> Table:
    return registry.make_table(name, Results(study(*suites), root))


def test_table_6_has_regimes_as_columns_and_both_checkpoints(tmp_path: Path) -> None:
    for method, (near, off) in {"dapo": (0.30, 0.31), "dapo_clip_max": (0.32, 0.36), "acpo": (0.35, 0.34)}.items():
        write_cell(tmp_path, Cell("mini", method, "nonp"), dict.fromkeys(range(3), near), dict.fromkeys(range(3), 0.2))
        write_cell(tmp_path, Cell("mini", method, "offp"), dict.fromkeys(range(3), off), dict.fromkeys(range(3), off))
    table = build("table6", tmp_path, "mini")
    (block,) = table.blocks
    assert (table.title, block.title, block.corner) == ("Table 6", "Mini-Countdown", "Method")
    assert [(group.label, group.columns) for group in block.groups] == [("Mini-Countdown", ("N-OnP.", "OffP."))]
    assert printed(block, "Best checkpoint (by validation)") == {
        "DAPO (Baseline)": ["30.00", "31.00"],
        "DAPO (Clip-High=Max)": ["32.00", "36.00*"],
        "GRPO (Clip=Avg)": ["–", "–"],
        "ACPO": ["35.00*", "34.00"],
    }
    # Ties are all bold.
    assert printed(block, "Last checkpoint")["DAPO (Baseline)"] == ["20.00*", "31.00"]
    assert printed(block, "Last checkpoint")["ACPO"] == ["20.00*", "34.00"]
    assert [panel.title for panel in block.panels] == ["Best checkpoint (by validation)", "Last checkpoint"]


def test_bold_is_by_unrounded_numbers(tmp_path: Path) -> None:
    write_cell(tmp_path, Cell("mini", "acpo_bins4", "offp"), {0: 0.300001}, questions=1_000_000)
    write_cell(tmp_path, Cell("mini", "acpo_bins6", "offp"), {0: 0.300002}, questions=1_000_000)
    best = printed(build("table8", tmp_path, "mini").blocks[0], "Best checkpoint (by validation)")
    assert best == {"4": ["–", "30.00†"], "5": ["–", "–"], "6": ["–", "30.00*†"]}


def test_gaps_are_named_with_the_command_that_fills_them(tmp_path: Path) -> None:
    notes = build("table8", tmp_path, "mini").blocks[0].notes
    assert "–: no result yet in any cell." in notes
    command = "What is missing is made by: snakemake --cores 2 results/tables/table8.tex"
    assert command in notes
    for cell in ablation_cells(study("mini"), "table8"):
        write_cell(tmp_path, cell, {0: 0.3, 1: 0.3, 2: 0.3})
    assert command not in build("table8", tmp_path, "mini").blocks[0].notes
    (tmp_path / "mini_acpo_bins6_offp.json").unlink()
    notes = build("table8", tmp_path, "mini").blocks[0].notes
    assert "–: no result in mini_acpo_bins6_offp." in notes
    assert command in notes


def test_steps_of_a_rollout_are_said_once_where_all_agree(tmp_path: Path) -> None:
    for method in ("dapo", "acpo"):
        write_cell(tmp_path, Cell("mini", method, "offp"), {0: 0.3})
    assert "Optimizer steps a rollout, N-OnP./OffP.: –/16." in build("table6", tmp_path, "mini").blocks[0].notes
    write_cell(tmp_path, Cell("mini", "acpo", "nonp"), {0: 0.3})
    notes = build("table6", tmp_path, "mini").blocks[0].notes
    assert "Optimizer steps a rollout, N-OnP./OffP.: –/16 (DAPO); 2/16 (ACPO)." in notes


def test_the_base_model_has_no_row_and_is_not_missed(tmp_path: Path) -> None:
    table = build("table6", tmp_path, "mini")
    assert not any("base" in number for number in table.frame().cell)
    assert not any("mini_base" in note for note in table.blocks[0].notes)


def test_table_5_averages_benchmarks_in_each_regime(tmp_path: Path) -> None:
    write(tmp_path, "orz_acpo_a2_e00_nonp", minerva={0: 0.30, 1: 0.32, 2: 0.34}, aime24={0: 0.20, 1: 0.10, 2: 0.30})
    write(tmp_path, "orz_acpo_nonp", minerva={0: 0.31, 1: 0.31, 2: 0.31}, aime24={0: 0.24, 1: 0.24, 2: 0.24})
    write(tmp_path, "orz_acpo_a2_e01_offp", minerva={0: 0.4, 1: 0.4, 2: 0.4}, aime24={0: 0.5, 1: 0.5, 2: 0.5})
    block = build("table5", tmp_path, "orz").blocks[0]
    columns = ("Minerva", "AIME24", "Avg.")
    assert [(group.label, group.columns) for group in block.groups] == [
        ("Best checkpoint (by validation)", columns), ("Last checkpoint", columns),
    ]  # fmt: skip
    assert block.corner == "α ε"
    assert printed(block, "N-OnP.") == {
        "2 0.0": ["32.00*", "20.00", "26.00", "22.00*", "10.00", "16.00"],
        "2 0.1": ["–"] * 6,
        "3 0.2": ["31.00", "24.00*", "27.50*", "21.00", "14.00*", "17.50*"],
    }
    assert printed(block, "OffP.")["2 0.1"] == ["40.00*", "50.00*", "45.00*", "30.00*", "40.00*", "35.00*"]
    # The seeds' averages are 25, 21 and 32: their standard deviation is the root of 31.
    average = block.panels[0].rows[0].numbers[2]
    assert average.value == pytest.approx(0.26)
    assert average.spread == pytest.approx(0.31**0.5 / 10)
    assert average.cell == "orz_acpo_a2_e00_nonp"


def test_an_average_needs_every_benchmark(tmp_path: Path) -> None:
    write(tmp_path, "orz_acpo_nonp", minerva={0: 0.31})
    block = build("table7", tmp_path, "orz").blocks[0]
    assert printed(block, "N-OnP.")["5"][:3] == ["31.00*†", "–", "–"]


def test_a_suite_of_one_benchmark_has_no_average(tmp_path: Path) -> None:
    (block,) = build("table7", tmp_path, "mini").blocks
    assert [group.columns for group in block.groups] == [("Test",), ("Test",)]
    assert [row.label for row in block.panels[0].rows] == ["4", "5", "6"]
    assert "Table 7 of the paper has no counterpart of this suite." in block.notes


@pytest.mark.parametrize(
    ("name", "panel", "expected"),
    [
        (
            "table5", "N-OnP.",
            {"2 0.0": ["29.97", "19.02", "38.10"], "2 0.1": ["30.55", "19.51", "39.02"],
             "3 0.2": ["31.02*", "20.80*", "40.36*"]},
        ),
        (
            "table7", "OffP.",
            {"4": ["30.65", "17.08*", "38.30"], "5": ["31.66*", "16.35", "38.66*"], "6": ["30.10", "16.67", "38.28"]},
        ),
    ],
)  # fmt: skip
def test_published_numbers_of_the_math_suite(
    tmp_path: Path, name: str, panel: str, expected: dict[str, list[str]]
) -> None:
    ours, theirs = build(name, tmp_path, "orz").blocks
    assert printed(theirs, panel) == expected
    place = name.replace("table", "Table ")
    assert theirs.groups[0].label == f"Published ({place})"
    assert theirs.groups[0].columns == ("Minerva", "AIME24", "Avg.")
    assert theirs.notes[0].startswith(f"Published: {place}, as printed there: ")
    assert all("no counterpart" not in note for note in ours.notes)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "table6",
            {"DAPO (Baseline)": ["73.27", "74.38"], "DAPO (Clip-High=Max)": ["74.65", "75.86"],
             "GRPO (Clip=Avg)": ["72.55", "74.16"], "ACPO": ["75.74*", "76.27*"]},
        ),
        ("table8", {"4": ["75.20", "75.90"], "5": ["75.74*", "76.27*"], "6": ["75.43", "75.65"]}),
    ],
)  # fmt: skip
def test_published_numbers_of_countdown(tmp_path: Path, name: str, expected: dict[str, list[str]]) -> None:
    theirs, ours = build(name, tmp_path, "countdown", "mini").blocks
    place = name.replace("table", "Table ")
    assert printed(theirs, f"Published ({place})") == expected
    assert "sizes unknown" in theirs.notes
    assert not any(panel.title.startswith("Published") for panel in ours.panels)


def test_what_the_paper_lacks_is_a_dash(tmp_path: Path) -> None:
    values = ablated_values(["countdown"])
    values["ablations"]["table8"]["methods"].append("cispo")
    values["methods"]["acpo_bins4"]["parameters"]["bins"] = 7
    values["regimes"]["far"] = {"label": "Far", "train_batch_size": 128, "mini_batch_size": 4}
    values["ablations"]["table8"]["regimes"] = ["offp", "far"]
    block = registry.make_table("table8", Results(parse_study(values), tmp_path)).blocks[0]
    theirs = printed(block, "Published (Table 8)")
    assert theirs == {"7": ["–", "–"], "5": ["76.27*", "–"], "6": ["75.65", "–"], "CISPO": ["–", "–"]}


def test_measured_widths_are_said(tmp_path: Path) -> None:
    for seed, width in enumerate((0.24, 0.26, 0.25)):
        write_record(tmp_path, Cell("mini", "grpo_clip_avg", "offp"), seed, clip=width)
    write_record(tmp_path, Cell("mini", "dapo_clip_max", "nonp"), 0, clip_high=1.23456)
    notes = build("table6", tmp_path, "mini").blocks[0].notes
    run = "in its run of the same regime and training seed."
    assert f"GRPO (Clip=Avg): clip is 0.2400 to 0.2600 (OffP.), clip_width_mean of ACPO {run}" in notes
    assert f"DAPO (Clip-High=Max): clip_high is 1.2346 (N-OnP.), clip_width_max of ACPO {run}" in notes
    assert not any("clip_width" in note for note in build("table8", tmp_path, "mini").blocks[0].notes)


def test_the_grid_of_the_study_does_not_matter(tmp_path: Path) -> None:
    values = ablated_values(["mini"])
    before = registry.make_table("table6", Results(parse_study(values), tmp_path))
    values["grid"] = {"suites": ["orz"], "methods": ["cispo"], "regimes": ["offp"]}
    assert registry.make_table("table6", Results(parse_study(values), tmp_path)) == before


def test_a_study_without_the_ablation_is_refused(tmp_path: Path) -> None:
    values = ablated_values(["mini"])
    del values["ablations"]["table8"]
    with pytest.raises(ConfigError, match=r"ablations: no grid 'table8'; did you mean 'table7'\?"):
        registry.make_table("table8", Results(parse_study(values), tmp_path))


def test_tables_of_ablations_are_not_among_those_of_the_grid() -> None:
    assert registry.ablation_names() == ["table5", "table6", "table7", "table8"]
    assert not set(registry.ablation_names()) & set(registry.table_names())


def test_report_and_paper_show_those_that_have_been_made(tmp_path: Path) -> None:
    results = Results(study("mini"), tmp_path)
    grid = [table.name for table in registry.made_tables(results)]
    assert grid == registry.table_names()
    (tmp_path / "tables").mkdir()
    for name in ("table6", "table8", "table20"):
        (tmp_path / "tables" / f"{name}.tex").touch()
    assert [table.name for table in registry.made_tables(results)] == sorted(
        [*grid, "table6", "table8"], key=lambda name: int(name.removeprefix("table"))
    )


def test_the_shipped_ablations_are_the_tables_that_exist(shipped: Study) -> None:
    assert list(shipped.ablations) == registry.ablation_names()


@pytest.mark.parametrize("name", registry.ablation_names())
def test_all_forms_print_the_same_numbers(tmp_path: Path, name: str) -> None:
    made = study("mini")
    for index, cell in enumerate(ablation_cells(made, name)):
        write_cell(tmp_path, cell, {seed: 0.2 + 0.01 * index + 0.001 * seed for seed in range(3)})
    table = registry.make_table(name, Results(made, tmp_path))
    tex, page = latex.render(table), html.render_table(table)
    assert len(table.frame()) == 2 * len(ablation_cells(made, name))
    for number in table.frame().itertuples():
        assert f"{number.printed} <- {number.source}" in tex
        assert f'data-cell="{number.cell}" data-source="{number.source}"' in page


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed (texlive-latex-base)")
def test_latex_compiles(tmp_path: Path) -> None:
    suites = {"table5": "orz", "table6": "countdown", "table7": "orz", "table8": "mini"}
    floats = []
    for name, suite in suites.items():
        table = registry.make_table(name, Results(study(suite), tmp_path))
        (tmp_path / f"{name}.tex").write_text(latex.render(table), encoding="utf-8")
        floats.append(rf"\begin{{table}}\caption{{Results.}}\input{{{name}.tex}}\end{{table}}")
    (tmp_path / "paper.tex").write_text(
        "\\documentclass{article}\n\\usepackage{booktabs}\n\\begin{document}\n"
        + "\n".join(floats)
        + "\n\\end{document}\n"
    )
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]


def test_the_script_writes_a_table_of_an_ablation(tmp_path: Path) -> None:
    from small_study import script

    config = tmp_path / "config.json"
    config.write_text(json.dumps(ablated_values(["mini"])))
    options = ["--config", config, "--results", tmp_path, "--output-dir", tmp_path / "tables"]
    done = script("make_table", *options, "--table", "table6")
    assert done.returncode == 0, done.stderr
    assert {path.name for path in (tmp_path / "tables").iterdir()} == {"table6.csv", "table6.html", "table6.tex"}
