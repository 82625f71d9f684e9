"""What changed between two results folders."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

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


def retrain(results: Path, seed: int, **origin: Any) -> None:
    """Say that a training run of ACPO comes from elsewhere."""
    run = results / f"runs/mini_acpo_nonp/seed{seed}/run.json"
    record = read_json(run, RunRecord)
    write_json(run, record.model_copy(update={"provenance": PROVENANCE.model_copy(update=origin)}))


@contextmanager
def edited(path: Path) -> Iterator[Any]:
    content = json.loads(path.read_text())
    yield content
    write_json(path, content)


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
    for seed in (0, 1):
        retrain(results, seed, data_hashes={"a": "2"})
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


@pytest.mark.parametrize("seed", [0, 1])
def test_one_training_run_of_several_is_named(whole: Path, results: Path, seed: int) -> None:
    retrain(results, seed, code_hash="feed", data_hashes={"a": "2"}, configuration={"learning_rate": 2})
    found = compare_studies(whole, results, 0.05)
    assert changed(found) == [
        ("code", "training", "beef", "feed"),
        ("configuration", "training.learning_rate", "1", "2"),
        ("data", "a", "1", "2"),
    ]
    assert {tuple(item.cells) for item in found.changes} == {(f"mini_acpo_nonp/seed{seed}",)}


def test_another_grader_is_a_change_of_code(whole: Path, results: Path) -> None:
    with edited(results / "mini_acpo_nonp.json") as cell:
        cell["benchmarks"]["countdown_mini"]["grader_version"] = "made up 2"
    found = compare_studies(whole, results, 0.05)
    assert changed(found) == [("code", "grader.countdown_mini", "made up 1", "made up 2")]


def remove_checkpoint(cell: Any) -> None:
    del cell["benchmarks"]["countdown_mini"]["checkpoints"]["best"]


def rename_benchmark(cell: Any) -> None:
    cell["benchmarks"]["other"] = cell["benchmarks"].pop("countdown_mini")


def remove_seed(cell: Any) -> None:
    for kept in cell["benchmarks"]["countdown_mini"]["checkpoints"].values():
        kept["seeds"] = kept["seeds"][:1]
        kept |= {"avg_at_k": kept["seeds"][0]["avg_at_k"], "seed_sd": None, "seed_standard_error": None}


def raise_a_score(cell: Any) -> None:
    """Turn one verdict of seed 1 right: a file that agrees with itself, not with the stores."""
    benchmark = cell["benchmarks"]["countdown_mini"]
    kept = benchmark["checkpoints"]["last"]
    seed = kept["seeds"][1]
    lowest = min(range(benchmark["k"]), key=seed["repeat_means"].__getitem__)
    seed["repeat_means"][lowest] += 1 / benchmark["questions"]
    seed["avg_at_k"] = seed["pass_at_k"]["1"] = fmean(seed["repeat_means"])
    means = [each["avg_at_k"] for each in kept["seeds"]]
    spread = stdev(means)
    kept |= {"avg_at_k": fmean(means), "seed_sd": spread, "seed_standard_error": spread / len(means) ** 0.5}


@pytest.mark.parametrize(
    ("change", "lost", "new", "numbers"),
    [
        (remove_checkpoint, ["countdown_mini/best"], [], 1),
        (rename_benchmark, ["countdown_mini/last", "countdown_mini/best"], ["other/last", "other/best"], 0),
        (remove_seed, ["seed1"], [], 2),
    ],
)
def test_what_a_cell_has_in_one_folder_only(
    whole: Path, results: Path, change: Callable[[Any], None], lost: list[str], new: list[str], numbers: int
) -> None:
    with edited(results / "mini_acpo_nonp.json") as cell:
        change(cell)
    found = compare_studies(whole, results, 0.05)
    assert found.only_before == [f"mini_acpo_nonp/{part}" for part in lost]
    assert found.only_after == [f"mini_acpo_nonp/{part}" for part in new]
    assert sum(item.cell == "mini_acpo_nonp" for item in found.numbers) == numbers
    back = compare_studies(results, whole, 0.05)
    assert (back.only_before, back.only_after) == (found.only_after, found.only_before)


def test_a_score_that_is_not_its_verdicts_is_refused(whole: Path, results: Path) -> None:
    with edited(results / "mini_acpo_nonp.json") as cell:
        raise_a_score(cell)
    for folders in ((whole, results), (results, whole)):
        expected = f"{results}/mini_acpo_nonp.json: benchmarks.countdown_mini.checkpoints.last."
        with pytest.raises(StoreError, match=re.escape(expected) + ".*the score and the verdict stores disagree"):
            compare_studies(*folders, 0.05)


def test_a_score_is_checked_where_the_other_folder_has_no_stores(whole: Path, results: Path, tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    shutil.copy(whole / "mini_acpo_nonp.json", tmp_path / "bare")
    with edited(results / "mini_acpo_nonp.json") as cell:
        raise_a_score(cell)
    with pytest.raises(StoreError, match="the score and the verdict stores disagree"):
        compare_studies(tmp_path / "bare", results, 0.05)


def test_other_files_of_a_study_are_no_cells(whole: Path, results: Path) -> None:
    assert (results / "timing.json").exists()
    (results / "list.json").write_text("[1]")
    assert compare_studies(whole, results, 0.05).only_after == []


@pytest.mark.parametrize("field", ["cell", "benchmarks", "provenance"])
def test_a_damaged_cell_is_still_a_cell(whole: Path, results: Path, field: str) -> None:
    with edited(results / "mini_acpo_nonp.json") as cell:
        del cell[field]
    with pytest.raises(StoreError, match=rf"mini_acpo_nonp\.json: {field}: Field required"):
        compare_studies(whole, results, 0.05)


def test_a_cell_under_another_name_is_refused(whole: Path, results: Path) -> None:
    shutil.copy(results / "mini_acpo_nonp.json", results / "mini_acpo_nonp_old.json")
    with pytest.raises(StoreError, match=r"mini_acpo_nonp_old\.json: cell: it is mini_acpo_nonp's result"):
        compare_studies(whole, results, 0.05)


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
    assert found.without_run == ["mini_acpo_nonp/seed0", "mini_acpo_nonp/seed1"]
    done = script("compare_studies", whole, results)
    assert "training not compared, a folder lacks run.json: mini_acpo_nonp/seed0, mini_acpo_nonp/seed1" in done.stdout


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
