"""Figures: what is averaged, what is said when data are missing, and equal bytes."""

import math
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest
from report_fixtures import fill

from acpo.cells import Cell
from acpo.config import Study
from acpo.errors import ConfigError
from acpo.report import registry
from acpo.report.series import by_rollout, over_seeds, smooth
from acpo.report.sources import Results
from acpo.report.style import Drawing, encode, line_style, save


def draw(results: Results, name: str, methods: list[str] | None = None) -> Drawing:
    (drawing,) = registry.draw_figure(name, results, methods)
    return drawing


def test_over_seeds_by_hand() -> None:
    logs = {
        0: pd.DataFrame({"rollout": [1, 2, 3], "validation": [0.1, math.nan, 0.3]}),
        1: pd.DataFrame({"rollout": [1, 2, 3], "validation": [0.2, math.nan, 0.5]}),
    }
    curve = over_seeds(logs, "validation")
    assert list(curve.index) == [1, 3]
    assert list(curve["mean"]) == pytest.approx([0.15, 0.4])
    assert list(curve["low"]) == [0.1, 0.3]
    assert list(curve["high"]) == [0.2, 0.5]


def test_over_seeds_without_data() -> None:
    assert over_seeds({}, "validation").empty
    assert over_seeds({0: pd.DataFrame({"rollout": [1]})}, "validation").empty


def test_by_rollout_weighs_by_tokens_and_leaves_out_empty_bins() -> None:
    updates = pd.DataFrame(
        {
            "rollout": [1, 1, 1, 2],
            "clip": [0.1, 0.4, math.nan, math.nan],
            "count": [30, 10, 0, 0],
        }
    )
    clip = by_rollout(updates, "clip", "count").set_index("rollout")["clip"]
    assert clip[1] == pytest.approx((0.1 * 30 + 0.4 * 10) / 40)
    assert math.isnan(clip[2])


def test_smooth_is_a_centred_mean() -> None:
    curve = pd.DataFrame({"mean": [0.0, 3.0, 6.0, 0.0]})
    assert list(smooth(curve, 3)["mean"]) == [1.5, 3.0, 3.0, 3.0]


def test_styles_differ_in_more_than_colour() -> None:
    styles = [line_style(index) for index in range(7)]
    assert len({style["color"] for style in styles}) == 7
    assert all(a["linestyle"] != b["linestyle"] for a, b in pairwise(styles))
    assert len({style["marker"] for style in styles}) == 7


@pytest.mark.parametrize("name", ["learning_curves", "figure7"])
def test_a_figure_is_named_after_its_module_and_suite(results: Results, name: str) -> None:
    assert draw(results, name).stem == f"{name}_mini"


def test_figures_have_the_same_bytes_twice(results: Results) -> None:
    first, second = (draw(results, "learning_curves") for _ in range(2))
    for ending in ("pdf", "png", "svg"):
        assert encode(first, ending) == encode(second, ending), ending


def test_figures_are_saved_as_pdf_and_png(results: Results, tmp_path: Path) -> None:
    paths = save(draw(results, "learning_curves"), tmp_path / "figures")
    assert [path.name for path in paths] == ["learning_curves_mini.pdf", "learning_curves_mini.png"]
    assert paths[0].read_bytes().startswith(b"%PDF")
    assert b"CreationDate" not in paths[0].read_bytes()


def test_learning_curves_show_every_method_of_the_grid(results: Results) -> None:
    legend = draw(results, "learning_curves").figure.legends[0]
    assert [text.get_text() for text in legend.get_texts()] == [
        results.study.methods[method].label for method in results.study.grid.methods
    ]


def test_figure7_draws_the_methods_asked_for(results: Results) -> None:
    def shown(methods: list[str] | None) -> list[str]:
        legend = draw(results, "figure7", methods).figure.legends[0]
        return [text.get_text() for text in legend.get_texts()]

    assert shown(None) == ["DAPO", "ACPO"]
    assert shown(["cispo", "acpo", "dapo"]) == ["CISPO", "ACPO", "DAPO"]
    with pytest.raises(ConfigError, match="unknown method 'dap'; did you mean 'dapo'"):
        draw(results, "figure7", ["dap"])


def test_an_unfinished_run_is_left_out(tmp_path: Path, study: Study) -> None:
    results = fill(tmp_path, study)
    (tmp_path / "runs/mini_acpo_offp/seed1/run.json").unlink()
    assert list(results.rollouts(Cell("mini", "acpo", "offp"))) == [0, 2]
    assert "Missing runs: mini_acpo_offp (2 of 3 seeds)." in draw(results, "figure7").caption


def test_missing_logs_are_named_and_panels_say_no_data(tmp_path: Path, study: Study) -> None:
    partly = draw(fill(tmp_path / "a", study, leave_out=("mini_dapo_offp",)), "figure7")
    assert "Missing runs: mini_dapo_offp (0 of 3 seeds)." in partly.caption
    for name in registry.figure_names():
        nothing = draw(Results(study, tmp_path / "b"), name).figure
        panels = [axes for axes in nothing.get_axes() if axes.get_title() or axes.get_xlabel()]
        assert panels
        assert all(axes.texts[0].get_text() == "no data" for axes in panels)
