"""Figures 2a, 4 and 5: what they draw from token probes, and what they say when some are missing."""

from pathlib import Path

import pytest
from made_up_store import made_up_tokens, write_store
from report_fixtures import provenance

from acpo.cells import Cell
from acpo.config import Study
from acpo.probes.clipping import fixed_widths
from acpo.probes.records import ClipDynamics, TokenProbe
from acpo.probes.token_store import read_tokens
from acpo.probes.tokens import Setup, probe_all
from acpo.report import registry
from acpo.report.sources import Results
from acpo.report.style import Drawing, save
from acpo.results import Provenance
from acpo.store import StoreError, write_json

CELL = Cell("mini", "dapo", "offp")
FIGURES = ["figure2a", "figure4", "figure5"]


def write_probe(root: Path, seed: int, name: str | None = None, **options: int) -> None:
    tokens = read_tokens([write_store(root / "tokens.parquet", made_up_tokens(seed=seed, scale=0.3, **options))])
    pooled, rollouts = probe_all(tokens, Setup(fixed_widths(0.2, 0.3), 50, 0))
    probe = TokenProbe(
        name=name or f"{CELL}/seed{seed}", pooled=pooled, rollouts=rollouts,
        clip_dynamics=ClipDynamics(bins=[], note="none"), provenance=Provenance.model_validate(provenance(CELL)),
    )  # fmt: skip
    write_json(root / f"probes/{CELL}/seed{seed}/tokens.json", probe)


def draw(root: Path, study: Study, name: str) -> Drawing:
    (drawing,) = registry.draw_figure(name, Results(study, root))
    return drawing


@pytest.mark.parametrize("name", FIGURES)
def test_probes_are_drawn_and_gaps_are_named(tmp_path: Path, study: Study, name: str) -> None:
    for seed in (0, 2):
        write_probe(tmp_path, seed)
    drawing = draw(tmp_path, study, name)
    near, off = drawing.figure.get_axes()
    assert near.texts[0].get_text() == "no data"
    assert not [text for text in off.texts if text.get_text() == "no data"]
    assert "Missing runs: mini_dapo_nonp (0 of 3 seeds), mini_dapo_offp (2 of 3 seeds)." in drawing.caption
    assert "(seed 0)" in drawing.caption
    assert "(seed 2)" in drawing.caption
    assert [path.name for path in save(drawing, tmp_path)] == [f"{name}_mini.pdf", f"{name}_mini.png"]


def test_figure_4_says_the_exponent(tmp_path: Path, study: Study) -> None:
    write_probe(tmp_path, 0)
    probe = Results(study, tmp_path).token_probes(CELL)[0]
    fit = probe.pooled.exponent
    assert f"{fit.exponent.value:.2f} ± {fit.standard_error:.2f} ({fit.r_squared:.2f})" in (
        draw(tmp_path, study, "figure4").caption
    )


def test_figure_5_counts_every_clipped_token(tmp_path: Path, study: Study) -> None:
    write_probe(tmp_path, 0)
    (first, *_) = Results(study, tmp_path).token_probes(CELL)[0].pooled.entropy.quadrants
    assert f"{first.clipped} of {first.tokens}" in draw(tmp_path, study, "figure5").caption


@pytest.mark.parametrize("name", FIGURES)
def test_too_little_data_is_drawn_as_far_as_it_goes(tmp_path: Path, study: Study, name: str) -> None:
    write_probe(tmp_path, 0, questions=2, tokens=3)
    drawing = draw(tmp_path, study, name)
    save(drawing, tmp_path)
    if name == "figure4":
        assert "not enough data: 0 usable bins" in drawing.caption
        assert drawing.figure.get_axes()[1].texts[0].get_text() == "no data"


def test_a_probe_of_another_run_is_refused(tmp_path: Path, study: Study) -> None:
    write_probe(tmp_path, 0, name="mini_acpo_offp/seed0")
    with pytest.raises(StoreError, match="expected 'mini_dapo_offp/seed0', found 'mini_acpo_offp/seed0'"):
        draw(tmp_path, study, "figure2a")
