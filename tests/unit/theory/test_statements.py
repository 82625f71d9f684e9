"""The statements: which agree, with which numbers, and that both sides reach JSON, LaTeX and HTML."""

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from acpo.store import StoreError, read_json
from acpo.theory.dominance import turning_points
from acpo.theory.expected_gradient import trust_factor
from acpo.theory.sign_map import (
    CLIP_WIDTHS,
    GROUPS,
    LISTED_CORRELATIONS,
    LISTED_EXPONENTS,
    Reversals,
    Setting,
    find_reversal,
)
from acpo.theory.statement import Statement
from acpo.theory.statements import Statements, text_rows
from acpo.theory.statements_ratio import ratio_statements

ROOT = Path(__file__).parents[3]

AGREES = {
    "first_order_ratio": True, "ratio_variance": True, "remainder_order": False, "band": True, "mean_ratio": False,
    "entropy_bounds": True, "closed_form": True, "small_tau": True, "unimodal": False, "polynomial_suppression": True,
    "gaussian_form": True, "small_step_sign": False, "reversal_lognormal": False, "reversal_gaussian": False,
    "insensitive": False,
}  # fmt: skip


def run(name: str, *arguments: str | Path) -> None:
    """Run a script in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [name, *map(str, arguments)])
        patch.chdir(ROOT)
        runpy.run_path(str(ROOT / "scripts" / f"{name}.py"), run_name="__main__")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `scripts/check_theory.py` writes."""
    directory = tmp_path_factory.mktemp("theory")
    run("check_theory", "--output", directory / "statements.json")
    return directory


@pytest.fixture(scope="module")
def statements(made: Path) -> dict[str, Statement]:
    return {each.id: each for each in read_json(made / "statements.json", Statements).statements}


def test_which_statements_agree(statements: dict[str, Statement]) -> None:
    assert {name: statement.agrees for name, statement in statements.items()} == AGREES


def test_another_root_seed_says_the_same() -> None:
    for statement in ratio_statements(7):
        assert statement.agrees == AGREES[statement.id], statement.id


def test_numbers(statements: dict[str, Statement]) -> None:
    numbers = {name: statement.numbers for name, statement in statements.items()}
    assert numbers["reversal_lognormal"]["crossings"] == 0
    assert numbers["reversal_lognormal"]["smallest_slope_0.2_0.2"] == pytest.approx(0.688, abs=5e-4)
    assert numbers["unimodal"] == {
        "turning_points_0.2_0.2": 3, "turning_points_0.28_0.2": 1, "turning_points_0.3_0.2": 1,
    }  # fmt: skip
    assert numbers["small_step_sign"]["counterexample"] == pytest.approx(-1.262)
    assert set(numbers["insensitive"]) == {"m = 1", "m = 2", "corr 0.2", "corr 0.05"}
    # Of order kappa^2: the relative miss stays where kappa falls a hundredfold.
    misses = [numbers["remainder_order"][f"miss_pi0.1_noise{noise:g}"] for noise in (0.1, 0.01, 0.001)]
    assert misses == pytest.approx([-0.324] * 3, abs=0.03)
    assert numbers["reversal_gaussian"]["smallest_difference"] > 0
    assert numbers["band"] == {"published_ratio": 4, "sharp_ratio": 2}


def test_the_page_says_these_numbers(statements: dict[str, Statement]) -> None:
    page = (ROOT / "docs/theory.md").read_text()
    turning = [tau for tau, _ in turning_points(lambda tau: trust_factor(tau, 0.2, 0.2), 1e-3, 7.4, 4000)]
    steep, noisy = (
        find_reversal(Setting("[0, 0.2] against [0.8, 1)", 0.2, 0.2, *pair)).crossings[0]
        for pair in ((2.0, 1.0), (0.0, 0.2))
    )
    for said in (
        f"slope {statements['reversal_lognormal'].numbers['smallest_slope_0.2_0.2']:.3f}",
        f"maximum at τ = {turning[0]:.3f}, minimum at {turning[1]:.3f}, maximum at {turning[2]:.2f}",
        f"gives −{-statements['small_step_sign'].numbers['counterexample']:.2f}",
        f"from κ = {steep:.1f} on",
        f"D turns negative at κ = {noisy:.2f}",
        f"in {len(GROUPS) * len(CLIP_WIDTHS) * (len(LISTED_EXPONENTS) + len(LISTED_CORRELATIONS))} settings",
    ):
        assert said in page, said


def test_both_sides_are_words_for_a_reader(statements: dict[str, Statement]) -> None:
    for row in text_rows(list(statements.values())):
        assert all(cell.strip() for cell in row)
        assert len(row) == 6


def test_the_theory_needs_no_torch() -> None:
    code = "import sys, acpo.theory.statements, acpo.theory.sign_map; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_three_forms_hold_the_same(made: Path) -> None:
    assert read_json(made / "statements.json", Statements).provenance.configuration == {"root_seed": 0}
    for ending in ("tex", "html"):
        text = (made / f"statements.{ending}").read_text()
        assert "App. C.3.2" in text
        assert "0.688" in text
        assert ("ρ" in text) == (ending == "html")


def test_the_sign_map_from_table_to_figure(tmp_path: Path) -> None:
    signs, found = tmp_path / "sign_map.parquet", tmp_path / "reversals.json"
    run("map_dominance", "--signs", signs, "--reversals", found)
    listed = read_json(found, Reversals).reversals
    assert [each.crossings for each in listed if (each.exponent, each.correlation) == (0, 1)][:3] == [[], [], []]
    run("plot_sign_map", "--signs", signs, "--output-dir", tmp_path)
    assert (tmp_path / "sign_map.pdf").read_bytes().startswith(b"%PDF")
    assert (tmp_path / "sign_map.png").exists()


def test_damaged_files_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run("plot_sign_map", "--signs", tmp_path / "absent.parquet", "--output-dir", tmp_path)
    assert capsys.readouterr().err == f"error: {tmp_path}/absent.parquet: no such file\n"
    (tmp_path / "statements.json").write_text(json.dumps({"schema_version": 1, "statements": []}))
    with pytest.raises(StoreError, match="provenance"):
        read_json(tmp_path / "statements.json", Statements)
