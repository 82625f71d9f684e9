"""What changed between two results folders."""

import json
import shutil
from pathlib import Path

import pytest
from made_up import PROVENANCE, study, write_cell, write_run
from small_study import script

from acpo.cells import Cell
from acpo.results import RunRecord
from acpo.stats.studies import StudyDifference, compare_studies
from acpo.store import StoreError, read_json, write_json

ACPO = Cell("mini", "acpo", "nonp")


def changed(found: StudyDifference) -> list[tuple[str, str, str, str]]:
    return [(item.kind, item.what, item.before, item.after) for item in found.changes]


def rerun(results: Path, level: float) -> None:
    for seed in (0, 1):
        write_run(results, ACPO, seed, level)
    write_cell(results, study(), ACPO)


def verdicts(found: StudyDifference, cell: str) -> set[str]:
    return {item.verdict for item in found.numbers if item.cell == cell}


def test_a_folder_and_itself(whole: Path) -> None:
    found = compare_studies(whole, whole, 0.05)
    assert (found.changes, found.only_before, found.only_after) == ([], [], [])
    assert len(found.common) == 7
    assert {item.verdict for item in found.numbers} == {"same"}


def test_numbers_within_and_beyond_noise(whole: Path, results: Path) -> None:
    rerun(results, 0.17)  # was 0.15
    within = compare_studies(whole, results, 0.05)
    assert verdicts(within, "mini_acpo_nonp") <= {"within noise", "same"}
    assert verdicts(within, "mini_dapo_nonp") == {"same"}
    rerun(results, 1.0)
    beyond = compare_studies(whole, results, 0.05)
    assert verdicts(beyond, "mini_acpo_nonp") <= {"beyond noise", "checkpoints differ"}
    for item in beyond.numbers:
        assert item.difference == pytest.approx(item.after - item.before)


def test_configuration_code_data_and_packages(whole: Path, results: Path) -> None:
    other = PROVENANCE.model_copy(
        update={
            "configuration": {"learning_rate": 2, "nested": {"new": True}},
            "code_hash": "feed",
            "packages": {"numpy": "3"},
            "git_commit": "1",
        }
    )
    write_cell(results, study(), ACPO, provenance=other)
    run = results / "runs/mini_acpo_nonp/seed0/run.json"
    record = read_json(run, RunRecord)
    write_json(run, record.model_copy(update={"provenance": PROVENANCE.model_copy(update={"data_hashes": {"a": "2"}})}))
    found = compare_studies(whole, results, 0.05)
    assert changed(found) == [
        ("configuration", "learning_rate", "1", "2"),
        ("configuration", "nested.new", "(absent)", "True"),
        ("code", "scoring", "beef", "feed"),
        ("package", "numpy", "2", "3"),
        ("environment", "commit", "0", "1"),
        ("data", "a", "1", "2"),
    ]
    assert {tuple(item.cells) for item in found.changes} == {("mini_acpo_nonp",)}
    assert {item.verdict for item in found.numbers} == {"same"}


def test_cells_of_one_folder_only(whole: Path, results: Path) -> None:
    (results / "mini_acpo_nonp.json").unlink()
    assert compare_studies(whole, results, 0.05).only_before == ["mini_acpo_nonp"]
    assert compare_studies(results, whole, 0.05).only_after == ["mini_acpo_nonp"]


def test_without_stores_the_noise_is_unknown(whole: Path, results: Path) -> None:
    rerun(results, 1.0)
    shutil.rmtree(results / "runs/mini_acpo_nonp")
    found = compare_studies(whole, results, 0.05)
    assert verdicts(found, "mini_acpo_nonp") == {"noise unknown"}
    assert {item.p for item in found.numbers if item.cell == "mini_acpo_nonp"} == {None}


def test_a_folder_without_cells(whole: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no cell's result"):
        compare_studies(whole, tmp_path, 0.05)


def test_script_prints_a_table_and_writes_json(whole: Path, results: Path, tmp_path: Path) -> None:
    rerun(results, 1.0)
    done = script("compare_studies", whole, results, "--json", tmp_path / "out.json")
    assert done.returncode == 0, done.stderr
    assert "7 cells in both" in done.stdout
    assert "mini_acpo_nonp" in done.stdout
    found = json.loads((tmp_path / "out.json").read_text())
    assert len(found["numbers"]) == 1 + 6 * 2
    assert script("compare_studies", whole, tmp_path / "none").stderr.startswith(f"error: {tmp_path}/none: no cell")


def test_script_on_folders_without_a_common_cell(whole: Path, tmp_path: Path) -> None:
    for number, name in enumerate(("mini_acpo_nonp", "mini_dapo_nonp")):
        (tmp_path / str(number)).mkdir()
        shutil.copy(whole / f"{name}.json", tmp_path / str(number))
    done = script("compare_studies", tmp_path / "0", tmp_path / "1")
    assert done.returncode == 0, done.stderr
    assert "only in the second: mini_dapo_nonp" in done.stdout
    assert "no number in both" in done.stdout
