"""Figures 1 and 3: what is drawn, by hand, and what is said when it is missing."""

from pathlib import Path

import pytest
from matplotlib.container import BarContainer
from report_fixtures import comparison, fill, fill_statistics, study_values, welch, write_cell, write_statistics
from test_published_panels import math_values, paper_study  # noqa: F401

from acpo.cells import Cell
from acpo.config import Study, parse_study
from acpo.report import registry
from acpo.report.overviews import figure1, figure3
from acpo.report.sources import Results, extreme_regimes
from acpo.report.style import Drawing, bar_style
from acpo.stats.families import declared_hypotheses
from acpo.stats.records import CHECKPOINTS_ONLY


def draw(results: Results, name: str, methods: list[str] | None = None) -> Drawing:
    (drawing,) = registry.draw_figure(name, results, methods)
    assert drawing.stem == name
    return drawing


def bars(drawing: Drawing, panel: int) -> dict[str, list[float]]:
    return {
        container.get_label(): [bar.get_height() for bar in container]
        for container in drawing.figure.get_axes()[panel].containers
        if isinstance(container, BarContainer)
    }


def test_figure1_draws_differences_and_intervals_in_points(study: Study, tmp_path: Path) -> None:
    fill_statistics(tmp_path, study)
    drawing = draw(Results(study, tmp_path), "figure1")
    assert bars(drawing, 0) == bars(drawing, 1) == {
        "over DAPO": pytest.approx([3.0, 3.0]),
        "over CISPO": pytest.approx([3.0, 3.0]),
    }  # fmt: skip
    lines = [line for line in drawing.figure.get_axes()[0].lines if line.get_marker() == "_"]
    assert [list(line.get_ydata()) for line in lines] == [pytest.approx([1.0, 5.0])] * 4
    labels = [label.get_text() for label in drawing.figure.get_axes()[1].get_xticklabels()]
    assert labels == ["Mini-Countdown\nN-OnP.", "Mini-Countdown\nOffP."]
    assert "95 % intervals" in drawing.caption
    assert "The paper has no counterpart of Mini-Countdown." in drawing.caption


def test_figure1_draws_the_baselines_asked_for(study: Study, tmp_path: Path) -> None:
    fill_statistics(tmp_path, study)
    assert list(bars(draw(Results(study, tmp_path), "figure1", ["cispo", "acpo"]), 0)) == ["over CISPO"]


def test_figure1_names_what_is_not_compared(study: Study, tmp_path: Path) -> None:
    declared = declared_hypotheses(study)
    chosen = [h for h in declared if (h.baseline.method, h.treatment.regime) == ("dapo", "nonp")]
    made = [comparison(h, "last", [welch(0, 0.1)], note=CHECKPOINTS_ONLY, interval=None) for h in chosen]
    write_statistics(tmp_path, made, len(declared))
    drawing = draw(Results(study, tmp_path), "figure1")
    assert "Not compared: mini_acpo_nonp against cispo on test; " in drawing.caption
    assert "mini_acpo_nonp against dapo" not in drawing.caption
    assert f"One training seed: {CHECKPOINTS_ONLY}." in drawing.caption
    assert drawing.figure.get_axes()[0].texts[0].get_text() == "no data"
    assert bars(drawing, 1) == {"over DAPO": pytest.approx([3.0])}


def test_figure1_has_the_papers_differences(paper_study: Study, tmp_path: Path) -> None:  # noqa: F811
    best, last = draw(Results(paper_study, tmp_path), "figure1").figure.get_axes()
    (diamonds,) = [line for line in best.lines if line.get_label() == "published"]
    heights = list(diamonds.get_ydata())
    assert len(heights) == 2 * 18
    # Countdown: 75.74 - 73.27 and 76.27 - 74.38 over DAPO; 76.27 - 55.12 over CISPO.
    assert heights[:2] == pytest.approx([2.47, 1.89])
    assert heights[18:20] == pytest.approx([1.49, 21.15])
    assert not [line for line in last.lines if line.get_label() == "published"]


def test_stability_by_hand(tmp_path: Path) -> None:
    values = study_values()
    values["seeds"] = [0, 1]
    study = parse_study(values)
    write_cell(tmp_path, Cell("mini", "acpo", "nonp"), {0: 0.30, 1: 0.40})
    write_cell(tmp_path, Cell("mini", "acpo", "offp"), {0: 0.20, 1: 0.42})
    write_cell(tmp_path, Cell("mini", "dapo", "nonp"), {0: 0.30, 1: 0.40})
    write_cell(tmp_path, Cell("mini", "dapo", "offp"), {1: 0.36})
    results = Results(study, tmp_path)
    regimes = extreme_regimes(study)
    assert regimes == ("nonp", "offp")
    found = figure3.stability(results, "acpo", "last", regimes)
    assert found == {0: pytest.approx((25.0, -10.0)), 1: pytest.approx((41.0, 2.0))}
    assert figure3.stability(results, "dapo", "last", regimes) == {1: pytest.approx((38.0, -4.0))}
    assert figure3.stability(results, "cispo", "last", regimes) == {}
    drawing = draw(results, "figure3", ["acpo", "cispo"])
    means = [line.get_xydata()[0] for line in drawing.figure.get_axes()[0].lines if line.get_markersize() == 9]
    assert [list(point) for point in means] == [pytest.approx([33.0, -4.0])]
    assert "Missing: CISPO, best; CISPO, last." in drawing.caption


def test_published_drops_are_those_of_the_paper(paper_study: Study) -> None:  # noqa: F811
    regimes = extreme_regimes(paper_study)
    assert regimes
    drops = {
        method: figure3.published_stability(paper_study, method, regimes)[1]
        for method in ("acpo", "cispo", "ar_lopti", "dapo")
    }
    # Sec. 5.2: -0.8, -6.0, -5.0, -1.2.
    assert drops == {name: pytest.approx(value, abs=0.051) for name, value in
                     {"acpo": -0.8, "cispo": -6.0, "ar_lopti": -5.0, "dapo": -1.2}.items()}  # fmt: skip


def test_a_grid_of_one_regime_has_no_stability(tmp_path: Path) -> None:
    values = study_values()
    values["grid"]["regimes"] = ["offp"]
    results = fill(tmp_path, parse_study(values), logs=False)
    drawing = draw(results, "figure3")
    assert drawing.caption == "The grid has no two regimes that differ in updates a rollout."
    assert drawing.figure.get_axes()[0].texts[0].get_text() == "no data"


def test_benchmarks_of_a_suite_are_settings_of_their_own(tmp_path: Path) -> None:
    study = parse_study(math_values(("minerva", "amc")))
    fill_statistics(tmp_path, study)
    axes = draw(Results(study, tmp_path), "figure1").figure.get_axes()[1]
    assert [label.get_text() for label in axes.get_xticklabels()][:2] == ["ORZ\nMinerva\nN-OnP.", "ORZ\nMinerva\nOffP."]


def test_bars_differ_in_more_than_colour() -> None:
    assert len({bar_style(index)["hatch"] for index in range(7)}) == 7
    assert figure1.BASELINES == ("dapo", "cispo")
