"""A whole study from verdict stores: every comparison, what is missing, the same bytes each time."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
import yaml
from made_up import QUESTIONS, K, made_study, study, values
from small_study import script

from acpo.evaluation import over_seeds
from acpo.results import CellResult
from acpo.stats.analysis import analyse
from acpo.stats.export import numbers
from acpo.stats.records import CHECKPOINTS_ONLY, StatisticsResult
from acpo.stats.tables import flat_tables
from acpo.store import StoreError, read_json, write_json

TABLES = ("cells", "comparisons", "families", "ranks", "profiles", "iqm", "detectable")


@pytest.fixture(scope="module")
def found(whole: Path) -> StatisticsResult:
    return analyse(study(), whole)


def config(folder: Path) -> Path:
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(values()))
    return path


def test_every_declared_comparison_at_both_checkpoints(found: StatisticsResult) -> None:
    keys = {(item.regime, item.baseline, item.checkpoint) for item in found.comparisons}
    assert len(found.comparisons) == len(keys) == 2 * 3 * 2
    assert {item.treatment for item in found.comparisons} == {"acpo"}
    assert found.missing == []
    for item in found.comparisons:
        assert item.inference.scope == "algorithm"
        assert item.inference.paired_seeds is (item.baseline != "base")
        assert [test.treatment_n for test in item.paper] == [K, K]
        assert item.adjusted["acpo_against_all"].holm >= item.inference.p


def test_the_bases_last_checkpoint_stands_in_for_its_best(found: StatisticsResult) -> None:
    base = next(item for item in found.cells if item.method == "base")
    means = {item.baseline_mean for item in found.comparisons if item.baseline == "base"}
    assert means == {base.mean}


def test_scores_are_those_of_the_cells_files(whole: Path, found: StatisticsResult) -> None:
    for item in found.cells:
        stored = read_json(whole / f"{item.cell}.json", CellResult).benchmarks[item.benchmark]
        assert item.mean == pytest.approx(stored.checkpoints[item.checkpoint].avg_at_k, abs=1e-12)
        assert item.denominator == len(item.seeds) * QUESTIONS * K
        assert item.mean == item.right / item.denominator
        seeds = stored.checkpoints[item.checkpoint].seeds
        assert item.truncation_rate == pytest.approx(sum(s.truncation_rate for s in seeds) / len(seeds))
        assert item.extraction_failure_rate == pytest.approx(1 - sum(s.extraction_rate for s in seeds) / len(seeds))
        assert item.majority_at_k[1] == pytest.approx(item.mean, abs=0.2)


def test_families_say_what_they_hold(found: StatisticsResult) -> None:
    last, best = found.families["acpo_against_all"]
    assert (last.checkpoint, best.checkpoint) == ("last", "best")
    assert (last.hypotheses, last.tested, last.untested) == (6, 6, [])
    assert last.outside_grid == ["method ar_lopti", "method high_entropy", "method low_entropy"]


def test_ranks_and_profiles(found: StatisticsResult) -> None:
    for ranking in found.rankings:
        assert ranking.configurations == ["mini countdown_mini nonp", "mini countdown_mini offp"]
        assert ranking.critical_difference == pytest.approx(2.343 * (3 * 4 / (6 * 2)) ** 0.5, rel=1e-3)
        for method in ranking.methods:
            assert method.interval.low <= method.average <= method.interval.high
    assert {(item.checkpoint, item.method) for item in found.profiles} == {
        (checkpoint, method) for checkpoint in ("last", "best") for method in ("dapo", "cispo", "acpo")
    }
    for profile in found.profiles:
        assert (profile.runs, profile.configurations) == (2, 2)
        assert profile.above == sorted(profile.above, reverse=True)
        assert profile.iqm_interval is not None


def test_same_bytes_each_time_and_others_from_another_stream(whole: Path, found: StatisticsResult) -> None:
    assert analyse(study(), whole).model_dump_json() == found.model_dump_json()
    content = study().model_dump()
    content["statistics"]["stream"] = 1
    other = analyse(type(study()).model_validate(content), whole)
    assert other.comparisons[0].inference.p == found.comparisons[0].inference.p
    assert other.comparisons[0].inference.interval != found.comparisons[0].inference.interval


def test_missing_cells_and_seeds_are_named_and_count_against_the_family(results: Path) -> None:
    for lost in ("mini_cispo_offp/seed1", "mini_dapo_nonp"):
        shutil.rmtree(results / "runs" / lost)
    for cell in ("mini_cispo_offp", "mini_dapo_nonp"):
        (results / f"{cell}.json").unlink()
    found = analyse(study(), results)
    assert found.missing == ["mini_dapo_nonp: no finished run", "mini_cispo_offp: no training seed 1"]
    (last, _) = found.families["acpo_against_all"]
    assert (last.hypotheses, last.tested) == (6, 5)
    assert last.untested == ["mini_acpo_nonp against mini_dapo_nonp on countdown_mini"]
    cispo = next(c for c in found.comparisons if (c.baseline, c.regime) == ("cispo", "offp"))
    assert (cispo.inference.scope, cispo.inference.note) == ("checkpoints", CHECKPOINTS_ONLY)
    assert [ranking.left_out for ranking in found.rankings] == [["mini countdown_mini nonp"]] * 2
    short = next(item for item in found.cells if item.cell == "mini_cispo_offp")
    assert (short.seeds, short.expected_seeds) == ([0], 2)


def test_a_study_without_any_run(tmp_path: Path) -> None:
    found = analyse(study(), tmp_path)
    assert len(found.missing) == 7
    assert (found.cells, found.comparisons, found.rankings, found.profiles) == ([], [], [], [])
    assert set(flat_tables(found)) == set(TABLES)


def test_a_score_that_the_verdicts_do_not_give_is_refused(results: Path) -> None:
    path = results / "mini_acpo_nonp.json"
    content = json.loads(path.read_text())
    first, _ = read_json(path, CellResult).benchmarks["countdown_mini"].checkpoints["last"].seeds
    forged = over_seeds([first, first.model_copy(update={"seed": 1})])  # a file that agrees with itself
    content["benchmarks"]["countdown_mini"]["checkpoints"]["last"] = forged.model_dump(mode="json")
    write_json(path, content)
    expected = r"mini_acpo_nonp\.json: .*checkpoints\.last\.seeds\[1\]\.avg_at_k: .* the score and the verdict stores"
    with pytest.raises(StoreError, match=expected):
        analyse(study(), results)


def test_verdicts_without_a_score_are_refused(results: Path) -> None:
    path = results / "mini_acpo_nonp.json"
    content = json.loads(path.read_text())
    del content["benchmarks"]["countdown_mini"]["checkpoints"]["best"]
    write_json(path, content)
    with pytest.raises(StoreError, match=r"checkpoints\.best: no such score, but there are verdicts. Score the cell"):
        analyse(study(), results)


def test_a_grid_without_the_treatment_compares_nothing_and_says_so(tmp_path: Path) -> None:
    made = study(methods=("dapo",), seeds=(0,))
    found = analyse(made, made_study(tmp_path, made))
    assert (found.comparisons, found.detectable, found.rankings) == ([], [], [])
    (last, _) = found.families["acpo_against_all"]
    assert last.hypotheses == 0
    assert "method acpo" in last.outside_grid
    assert len(flat_tables(found)["cells"]) == 1 + 2 * 2


def test_one_training_seed(tmp_path: Path) -> None:
    made = study(seeds=(0,))
    found = analyse(made, made_study(tmp_path, made))
    assert {item.inference.note for item in found.comparisons} == {CHECKPOINTS_ONLY}
    assert {item.seeds for item in found.detectable} == {1}
    assert all(profile.iqm_interval is None for profile in found.profiles)


@pytest.mark.parametrize("field", sorted({*StatisticsResult.model_fields} - {"schema_version", "settings", "missing"}))
def test_the_export_has_the_numbers_of_every_field(whole: Path, found: StatisticsResult, field: str) -> None:
    empty = found.model_copy(update={field: type(getattr(found, field))()})
    rows, without = (len(numbers(study(), whole, statistics)) for statistics in (found, empty))
    assert rows > without


def test_exported_families_and_detectable_differences(whole: Path, found: StatisticsResult) -> None:
    rows = numbers(study(), whole, found)
    families = rows[(rows["kind"] == "family") & (rows["checkpoint"] == "best")].set_index("name")["value"]
    # Two regimes, against base, dapo and cispo.
    assert families["acpo_against_all.hypotheses"] == families["acpo_against_all.tested"] == 6
    chosen = rows[(rows["kind"] == "detectable") & (rows["name"] == "seeds_3.difference")]
    assert chosen["value"].tolist() == [item.difference for item in found.detectable if item.seeds == 3]
    assert len(chosen) == 2 * 3 * 2
    assert not rows.drop(columns="value").duplicated().any()


class TestScripts:
    def test_statistics_then_export(self, results: Path, tmp_path: Path) -> None:
        arguments = ("--config", config(tmp_path), "--results", results)
        done = script("compare_methods", *arguments, "--output-dir", results / "statistics")
        assert done.returncode == 0, done.stderr
        assert "Minimum detectable differences in points" in done.stdout
        found = read_json(results / "statistics/statistics.json", StatisticsResult)
        for name in TABLES:
            assert len(pd.read_csv(results / f"statistics/{name}.csv"))
        comparisons = pd.read_csv(results / "statistics/comparisons.csv")
        assert comparisons["difference_points"].tolist() == pytest.approx(
            [100 * item.inference.difference for item in found.comparisons]
        )
        assert comparisons["paper_seed1_p"].tolist() == pytest.approx([item.paper[1].p for item in found.comparisons])
        provenance = json.loads((results / "statistics/provenance.json").read_text())
        assert len(provenance["data_hashes"]) == 1 + 6 * 2

        done = script("export_numbers", *arguments, "--output-dir", results / "export")
        assert done.returncode == 0, done.stderr
        exported = pd.read_parquet(results / "export/numbers.parquet")
        assert len(exported) == len(pd.read_csv(results / "export/numbers.csv"))
        assert set(exported["kind"]) == {"seed", "cell", "comparison", "family", "detectable", "rank", "profile"}
        holm = exported[(exported["name"] == "adjusted.acpo_against_all.holm") & (exported["baseline"] == "dapo")]
        assert holm["value"].tolist() == pytest.approx(
            [c.adjusted["acpo_against_all"].holm for c in found.comparisons if c.baseline == "dapo"]
        )
        samples = pd.read_parquet(results / "export/samples.parquet")
        assert len(samples) == QUESTIONS * K * (1 + 6 * 2 * 2)
        harness = json.loads((results / "export/lm_eval/mini_acpo_nonp.json").read_text())
        cell = read_json(results / "mini_acpo_nonp.json", CellResult).benchmarks["countdown_mini"].checkpoints["last"]
        task = harness["results"]["countdown_mini_last"]
        assert task["exact_match,none"] == cell.avg_at_k
        assert task["exact_match_stderr,none"] == cell.seed_standard_error
        assert harness["n-samples"]["countdown_mini_last"] == {"original": QUESTIONS, "effective": QUESTIONS}
        assert harness["configs"]["countdown_mini_best"]["repeats"] == K

    def test_a_damaged_store_ends_in_one_line(self, results: Path, tmp_path: Path) -> None:
        store = results / "runs/mini_acpo_nonp/seed0/verdicts.parquet"
        store.write_bytes(store.read_bytes()[:-50])
        done = script(
            "compare_methods", "--config", config(tmp_path), "--results", results, "--output-dir", tmp_path / "out"
        )
        assert done.returncode == 1
        assert done.stderr.startswith(f"error: {store}: cannot be read")
        assert done.stderr.count("\n") == 1
        assert not (tmp_path / "out/statistics.json").exists()

    def test_export_before_statistics_says_what_is_missing(self, whole: Path, tmp_path: Path) -> None:
        done = script(
            "export_numbers", "--config", config(tmp_path), "--results", whole, "--output-dir", tmp_path / "out"
        )
        assert done.returncode == 1
        assert "statistics/statistics.json: no such file" in done.stderr
