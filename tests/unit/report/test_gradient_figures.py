"""Figures 2b and 6: what they draw from gradient probes, and what they say when some are missing."""

from pathlib import Path

import pytest
from report_fixtures import provenance

from acpo.cells import Cell
from acpo.config import Study
from acpo.probes.records import DominancePoint, GradientReport, MatrixAngles, VariantGradient
from acpo.report import registry
from acpo.report.figures.figure6 import mean_angles
from acpo.report.sources import Results
from acpo.report.style import Drawing, save
from acpo.results import Provenance
from acpo.store import StoreError, write_json

CELL = Cell("mini", "dapo", "offp")


def gradient(name: str, norm: float, *angles: float) -> VariantGradient:
    matrices = [
        MatrixAngles(name=f"m{i}", rows=64, columns=64, rank=31, angle=angle, split_half_angle=30.0 + i)
        for i, angle in enumerate(angles)
    ]
    return VariantGradient(
        name=name, policy="current", denominator="all", tokens=9, norm=norm, norm_percent=100 * norm, cosine=0.5,
        matrices=matrices,
    )  # fmt: skip


def write_report(root: Path, seed: int, name: str | None = None) -> None:
    sides = [f"{side}_probability_{kind}" for side in ("low", "high") for kind in ("all", "selected")]
    report = GradientReport(
        name=name or f"{CELL}/seed{seed}", responses=64, rank=128, reference="dapo",
        variants=[
            gradient("reference", 1.0, 0.0, 0.0),
            gradient("no_clip", 12.5, 40.0, 50.0),
            gradient("on_policy", 0.0),
        ],
        random_angle=55.0, additivity=2e-7,
        dominance=[
            DominancePoint(updates=updates, ratio_std=0.1 * updates, gradients=[gradient(s, updates) for s in sides])
            for updates in (1, 4)
        ],
        provenance=Provenance.model_validate(provenance(CELL)),
    )  # fmt: skip
    write_json(root / f"probes/{CELL}/seed{seed}/gradients.json", report)


def draw(root: Path, study: Study, name: str) -> Drawing:
    (drawing,) = registry.draw_figure(name, Results(study, root))
    return drawing


@pytest.mark.parametrize("name", ["figure2b", "figure6"])
def test_gaps_are_named_and_files_written(tmp_path: Path, study: Study, name: str) -> None:
    write_report(tmp_path, 0)
    drawing = draw(tmp_path, study, name)
    near, _ = drawing.figure.get_axes()
    assert near.texts[0].get_text() == "no data"
    assert "mini_dapo_nonp (0 of 3 seeds), mini_dapo_offp (1 of 3 seeds)" in drawing.caption
    assert [path.name for path in save(drawing, tmp_path)] == [f"{name}_mini.pdf", f"{name}_mini.png"]


def test_figure_2b_draws_the_norms_by_updates(tmp_path: Path, study: Study) -> None:
    write_report(tmp_path, 0)
    axes = draw(tmp_path, study, "figure2b").figure.get_axes()[1]
    assert len(axes.lines) == 4
    assert all(line.get_xydata().tolist() == [[1, 1], [4, 4]] for line in axes.lines)


def test_figure_6_draws_the_mean_angle_over_matrices_and_says_what_has_none(tmp_path: Path, study: Study) -> None:
    write_report(tmp_path, 0)
    drawing = draw(tmp_path, study, "figure6")
    texts = [text.get_text() for text in drawing.figure.get_axes()[1].texts]
    assert "1,250 %" in texts
    assert "no tokens" in texts
    assert mean_angles(gradient("no_clip", 12.5, 40.0, 50.0)) == (45.0, 30.5)
    assert "subspace rank 31 (wanted 128)" in drawing.caption
    assert "2.0e-07" in drawing.caption


def test_a_probe_of_another_run_is_refused(tmp_path: Path, study: Study) -> None:
    write_report(tmp_path, 0, name="mini_acpo_offp/seed0")
    with pytest.raises(StoreError, match="expected 'mini_dapo_offp/seed0', found 'mini_acpo_offp/seed0'"):
        draw(tmp_path, study, "figure6")
