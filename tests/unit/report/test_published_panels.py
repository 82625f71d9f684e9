"""Tables 1, 2, 9 and 10 beside the paper's own numbers, and Table 2's averages by hand."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from report_fixtures import cell_values, checkpoint_values, study_values, suite_values, write_cell

from acpo.audit.published import Number, published
from acpo.cells import Cell
from acpo.config import Study, parse_study
from acpo.report import registry
from acpo.report.published import MATH
from acpo.report.sources import Results
from acpo.report.table import Table
from acpo.results import CellResult
from acpo.store import write_json

PANELS = {"Countdown": "table1a", "HiTab": "table1b", "ORZ": "table2"}


def math_values(benchmarks: tuple[str, ...] = tuple(MATH)) -> dict[str, Any]:
    values = study_values()
    named = {name: {"label": MATH[name], "task": "countdown_mini", "split": name, "samples": 8} for name in benchmarks}
    values["suites"]["orz"] = suite_values("ORZ", "math", benchmarks=named)
    values["grid"]["suites"] = ["orz"]
    return values


@pytest.fixture
def paper_study() -> Study:
    """The paper's four suites."""
    values = math_values()
    one = {"task": "countdown_mini", "split": "test", "samples": 4}
    for name, family, key in (
        ("countdown", "countdown", "countdown"),
        ("hitab_3b", "hitab", "hitab"),
        ("hitab_7b", "hitab", "hitab"),
    ):
        values["suites"][name] = suite_values(name, family, benchmarks={key: {"label": key, **one}})
    values["grid"]["suites"] = ["countdown", "hitab_3b", "hitab_7b", "orz"]
    values["statistics"]["families"]["all"]["baselines"] = ["base", *list(values["methods"])[:-1]]
    return parse_study(values)


def frame(table: Table, block: str, panel: str) -> pd.DataFrame:
    made = table.frame()
    return made[(made.block == block) & made.panel.str.startswith(panel)]


@pytest.mark.parametrize("block", PANELS)
def test_published_panels_are_the_transcription(paper_study: Study, tmp_path: Path, block: str) -> None:
    table = registry.make_table("table2" if block == "ORZ" else "table1", Results(paper_study, tmp_path))
    made = frame(table, block, "Published")
    theirs = published().tables[PANELS[block]]
    printed = [cell for cells in theirs.panels[""].values() for cell in cells if cell != ""]
    assert list(made.printed) == printed
    assert list(made.value) == pytest.approx([Number.parse(cell).value / 100 for cell in printed])
    assert made.source.str.startswith("src/acpo/audit/published.yaml ").all()
    assert made.source.str.contains(theirs.place, regex=False).all()
    assert set(made.checkpoint) == {"published"}


def test_published_ties_are_bold_together_and_the_base_never(paper_study: Study, tmp_path: Path) -> None:
    made = frame(registry.make_table("table1", Results(paper_study, tmp_path)), "HiTab", "Published")
    bold = made[made.best].groupby("cell").row.first()
    assert list(made[made.cell == "hitab_3b_acpo_nonp"].best) == [True]
    assert list(made[made.cell == "hitab_3b_ar_lopti_nonp"].best) == [True]  # both 45.50
    assert "hitab_3b_base" not in bold


def test_published_table9_is_the_transcription(paper_study: Study, tmp_path: Path) -> None:
    table = registry.make_table("table9", Results(paper_study, tmp_path))
    made = table.frame()
    made = made[made.block == "Published"]
    assert list(made.printed) == [cell for cells in published().tables["table9"].panels[""].values() for cell in cells]
    relative = made[(made.row == "CISPO") & (made.group == "OffP.") & (made.column == "Update Rel.")].iloc[0]
    assert (relative.printed, relative.value, relative.cell) == ("+3.8%", pytest.approx(0.038), "countdown_cispo_offp")


def test_published_table10_is_the_transcription(paper_study: Study, tmp_path: Path) -> None:
    made = registry.make_table("table10", Results(paper_study, tmp_path)).frame()
    made = made[(made.group == "Published") & made.panel.str.endswith("best checkpoint (by validation)")]
    theirs = published().tables["table10"]
    for regime, rows in theirs.panels.items():
        for cells, row in zip(rows.values(), ("Base Model", *list(METHOD_LABELS.values())), strict=True):
            ours = made[(made.row == row) & made.panel.str.startswith(regime)]
            assert list(ours.printed) == cells
            assert list(ours.best) == [cell != "–" and Number.parse(cell).value < 0.05 for cell in cells]
    assert made[made.row == "DAPO"].value.isna().sum() == 2  # AIME24 in both regimes


METHOD_LABELS = {
    "AR-Lopti": "AR-Lopti",
    "Top-20": "High-Entropy",
    "Bottom-80": "Low-Entropy",
    "DAPO": "DAPO",
    "CISPO": "CISPO",
}


def test_a_suite_without_counterpart_says_so(tmp_path: Path) -> None:
    results = Results(parse_study(study_values()), tmp_path)
    for name in ("table1", "table9"):
        table = registry.make_table(name, results)
        assert "The paper has no counterpart of Mini-Countdown." in table.blocks[0].notes
        assert not table.frame().panel.str.startswith("Published").any()
    notes = registry.make_table("table10", results).blocks[0].notes
    assert "The paper's Table 10 has no counterpart of Mini-Countdown." in notes


def write_math(root: Path, cell: Cell, scores: dict[str, dict[int, float]]) -> None:
    values = cell_values(cell, {0: 0.5}, {0: 0.5})
    values["benchmarks"] = {
        name: {
            "task": "countdown_mini", "questions": 100_000, "k": 8, "grader_version": "1",
            "checkpoints": {kind: checkpoint_values(seeds, 30, k=8) for kind in ("best", "last")},
        }
        for name, seeds in scores.items()
    }  # fmt: skip
    write_json(root / f"{cell}.json", CellResult.model_validate(values))


def average(root: Path, study: Study, cell: str) -> pd.Series:
    made = registry.make_table("table2", Results(study, root)).frame()
    chosen = made[(made.cell == cell) & (made.checkpoint == "last") & (made.group == "Avg.")]
    assert len(chosen) == 1
    return chosen.iloc[0]


def test_the_average_is_of_unrounded_scores_by_hand(tmp_path: Path) -> None:
    study = parse_study(math_values(("minerva", "math500", "amc")))
    # Seed 0: (.10004 + .20004 + .30004) / 3 = .20004; seed 1: (.12004 + .22004 + .32004) / 3 = .22004. Their mean is
    # .21004 and their standard deviation .02 / sqrt(2).
    scores = {
        name: {0: 0.1 * n + 0.00004, 1: 0.1 * n + 0.02004} for n, name in enumerate(("minerva", "math500", "amc"), 1)
    }
    write_math(tmp_path, Cell("orz", "acpo", "offp"), scores)
    found = average(tmp_path, study, "orz_acpo_offp")
    assert found.value == pytest.approx(0.21004, abs=1e-12)
    assert found.seed_sd == pytest.approx(0.02 / 2**0.5)
    assert (found.printed, found.printed_seed_sd, found.seeds, found.questions) == ("21.00", "1.41", 2, 300_000)
    assert found.source == "mean of results/orz_acpo_offp.json benchmarks.*.checkpoints.last.avg_at_k"


def test_rounding_before_averaging_would_print_another_number(tmp_path: Path) -> None:
    study = parse_study(math_values(("minerva", "math500")))
    # Printed, the parts are 10.00 and 20.01, whose mean prints 15.01; unrounded, .10004 and .20005 give 15.0045.
    write_math(tmp_path, Cell("orz", "acpo", "offp"), {"minerva": {0: 0.10004}, "math500": {0: 0.20005}})
    assert average(tmp_path, study, "orz_acpo_offp").printed == "15.00"


def test_an_average_without_one_of_its_parts_is_missing(tmp_path: Path) -> None:
    study = parse_study(math_values(("minerva", "math500")))
    write_math(tmp_path, Cell("orz", "acpo", "offp"), {"minerva": {0: 0.3}})
    made = registry.make_table("table2", Results(study, tmp_path))
    found = average(tmp_path, study, "orz_acpo_offp")
    assert (found.printed, pd.isna(found.value), bool(found.best)) == ("–", True, False)
    assert any(note.startswith("–: no result in") and "orz_acpo_offp" in note for note in made.blocks[0].notes)


def test_one_benchmark_has_no_average(tmp_path: Path) -> None:
    table = registry.make_table("table2", Results(parse_study(math_values(("minerva",))), tmp_path))
    assert [group.label for group in table.blocks[0].groups] == ["ORZ"]


def test_table2_of_a_grid_without_math(tmp_path: Path) -> None:
    write_cell(tmp_path, Cell("mini", "acpo", "offp"), {0: 0.3})
    table = registry.make_table("table2", Results(parse_study(study_values()), tmp_path))
    assert (table.blocks, table.caption) == ((), "No suite of the math family in the grid")
