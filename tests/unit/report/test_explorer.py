"""The page's data: packing, curves, questions, pairs, responses within a budget, and what is said to be missing."""

import base64
import gzip
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from explorer_fixtures import HOSTILE, QUESTIONS, SAMPLES

from acpo.cells import Cell
from acpo.report.durations import run_times
from acpo.report.explorer.curves import POINTS, Quantity, curve, thin, training_curves
from acpo.report.explorer.libraries import libraries
from acpo.report.explorer.packing import compact, pack, script_source, short
from acpo.report.explorer.pairs import compare_pairs
from acpo.report.explorer.payload import page_data
from acpo.report.explorer.questions import Graded, read_graded, right_counts
from acpo.report.explorer.responses import drawing_order, pack_responses
from acpo.report.gaps import find_gaps
from acpo.report.inference import comparison_rows, p_value, points, score_intervals
from acpo.report.page import render_report
from acpo.report.sources import Results
from acpo.stats.comparison import estimate_mean
from acpo.store import StoreError

PLACE = ("mini", "test")


def unpack(text: str) -> str:
    return gzip.decompress(base64.b64decode(text)).decode("utf-8")


@pytest.fixture(scope="module")
def graded(explored: Results) -> Graded:
    return read_graded(explored)


@pytest.fixture
def few_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the static figures out: drawing them is most of a report's time, and other tests do."""
    monkeypatch.setattr("acpo.report.registry.figure_names", lambda: [])


@pytest.mark.parametrize("text", ["", HOSTILE, "π ≤ 1\n\0", "x" * 100_000])
def test_packed_text_comes_back_and_is_only_base64(text: str) -> None:
    assert unpack(pack(text)) == text
    assert pack(text) == pack(text)
    assert set(pack(text)) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")


def test_numbers_are_short_and_never_nan() -> None:
    assert [short(value) for value in (1 / 3, 123456789.0, float("nan"), float("inf"))] == [
        0.333333, 123457000.0, None, None,
    ]  # fmt: skip
    with pytest.raises(ValueError, match="Out of range"):
        compact([float("nan")])


def test_script_source_is_the_hash_that_a_policy_wants() -> None:
    assert script_source("a") == "'sha256-ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs='"
    assert hashlib.sha256(b"a").hexdigest().startswith("ca978112ca1bbdca")


def test_libraries_are_whole_and_end_no_script() -> None:
    tables, plots = libraries()
    assert "globalThis.DataTable=" in tables.code
    assert "export{" not in tables.code
    assert "Plotly" in plots.code
    assert all(unpack(library.packed) == library.code for library in libraries())


def test_thinning_keeps_the_mean_of_even_parts() -> None:
    frame = pd.DataFrame({"value": np.arange(10.0)}, index=pd.Index(range(1, 11), name="rollout"))
    assert thin(frame, 10) is frame
    thinned = thin(frame, 4)  # threes: 0 1 2, 3 4 5, 6 7 8, 9
    assert thinned["value"].tolist() == [1.0, 4.0, 7.0, 9.0]
    assert thinned.index.tolist() == [2.0, 5.0, 8.0, 10.0]


def test_curve_over_seeds_by_hand() -> None:
    logs = {
        0: pd.DataFrame({"rollout": [1, 2, 3], "reward": [0.25, np.nan, 0.5]}),
        3: pd.DataFrame({"rollout": [1, 2], "reward": [0.75, 1.0]}),
    }
    made = curve(logs, "reward", Quantity("Reward (%)", 100))
    assert made == {
        "x": [1, 2, 3],
        "mean": [50, 100, 50],
        "low": [25, 100, 50],
        "high": [75, 100, 50],
        "seeds": {0: [25, None, 50], 3: [75, 100, None]},
    }
    assert curve(logs, "absent", Quantity("Absent")) == {}
    long = {0: pd.DataFrame({"rollout": range(1000), "reward": 1.0})}
    assert len(curve(long, "reward", Quantity("Reward"))["x"]) == POINTS


def test_curves_of_every_trained_cell(explored: Results) -> None:
    curves, dynamics = training_curves(explored)
    assert set(curves) == {f"mini_{method}_{regime}" for method in ("dapo", "acpo") for regime in ("nonp", "offp")}
    assert [len(bins) for bins in dynamics["mini_dapo_nonp"].values()] == [5, 5]
    log = explored.rollouts(Cell("mini", "acpo", "offp"))
    rewards = [log[seed].set_index("rollout")["reward_mean"][7] for seed in (0, 1)]
    made = curves["mini_acpo_offp"]["reward_mean"]
    assert made["mean"][made["x"].index(7)] == pytest.approx(np.mean(rewards), rel=1e-5)


def test_right_counts_add_up_to_the_cells_score(explored: Results, graded: Graded) -> None:
    for entry in right_counts(graded):
        cell = explored.cell(next(key[0] for key in graded.evidence.tallies if str(key[0]) == entry["cell"]))
        assert cell is not None
        total = sum(sum(counts) for counts in entry["right"].values())
        score = cell.benchmarks["test"].checkpoints[entry["checkpoint"]]
        assert score.avg_at_k == pytest.approx(total / (len(entry["right"]) * QUESTIONS * SAMPLES), abs=1e-12)


def test_pairs_agree_with_the_statistics(explored: Results, graded: Graded) -> None:
    pairs = compare_pairs(graded.evidence, 0.05)
    assert len(pairs) == 2 * 10  # kinds of checkpoint x pairs of five cells
    statistics = explored.statistics()
    assert statistics is not None
    for declared in statistics.comparisons:
        found, sign = next(
            (pair, 1 if pair["a"] == declared.treatment_cell else -1)
            for pair in pairs
            if pair["checkpoint"] == declared.checkpoint
            and {pair["a"], pair["b"]} == {declared.treatment_cell, declared.baseline_cell}
        )
        assert found["difference"] * sign == pytest.approx(declared.inference.difference, rel=1e-5)
        assert found["standard_error"] == pytest.approx(declared.inference.standard_error, rel=1e-5)
        assert found["p"] == pytest.approx(declared.inference.p, rel=1e-5)
        assert found["low"] < found["difference"] < found["high"]


def test_all_responses_come_back(explored: Results, graded: Graded) -> None:
    packed = pack_responses(explored, graded)
    assert len(packed.blocks["mini/test"]) == len(packed.shown[PLACE]) == QUESTIONS
    samples = json.loads(unpack(packed.blocks["mini/test"]["0"]))
    assert set(samples["runs"]) == {
        "mini_base/0/last",
        *(f"mini_{m}_{r}/{s}/{c}" for m in ("dapo", "acpo") for r in ("nonp", "offp") for s in (0, 1) for c in
          ("last", "best")),
    }  # fmt: skip
    first, second, third, _ = (samples["seen"][at] for at in samples["runs"]["mini_acpo_offp/1/best"])
    assert first == ["acpo tries 1 + 0 = 1 , 0 yes", True, "acpo tries 1 + 0 = 1 , 0 yes", "solved", 12, "stop"]
    assert second[0] == HOSTILE
    assert third[2] is None


def test_budget_keeps_a_fixed_part_of_the_questions_and_says_which(explored: Results, graded: Graded) -> None:
    everything = pack_responses(explored, graded)
    sizes = {index: len(block) for index, block in everything.blocks["mini/test"].items()}
    order = [question for _, question in drawing_order(graded)]
    assert order == sorted(order, key=lambda name: hashlib.sha256(name.encode()).digest())
    budget = sum(sizes[name[1:]] for name in order[:5]) + 1
    packed = pack_responses(explored, graded, budget)
    assert packed.shown == {PLACE: order[:5]}
    assert set(packed.blocks["mini/test"]) == {name[1:] for name in order[:5]}
    assert packed == pack_responses(explored, graded, budget)
    assert pack_responses(explored, graded, 10).blocks == {"mini/test": {}}


def test_page_says_which_questions_it_leaves_out(
    few_figures: None, explored: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("acpo.report.page.pack_responses", lambda results, found: pack_responses(results, found, 3000))
    report = render_report(explored)
    kept = pack_responses(explored, read_graded(explored), 3000).shown[PLACE]
    assert 0 < len(kept) < QUESTIONS
    left = QUESTIONS - len(kept)
    assert f"the responses to {len(kept)} of {QUESTIONS} questions and leaves out those to {left}" in report
    assert all(f"<code>{name}</code>" in report for name in kept)


def test_no_response_is_in_the_page_as_text(few_figures: None, explored: Results) -> None:
    report = render_report(explored)
    assert "onerror" not in report.split("<script>")[0]
    assert HOSTILE not in report
    assert report.count("</script>") == report.count("<script")


def test_data_is_json_and_the_same_each_time(explored: Results, graded: Graded) -> None:
    data = page_data(explored, graded)
    assert json.loads(compact(data))["questions"]["mini/test"][1] == ["q1", "1 2 1 to 7 >", "1 2 1 to 7"]
    assert compact(data) == compact(page_data(Results(explored.study, explored.root), read_graded(explored)))


def test_printed_statistics(explored: Results) -> None:
    statistics = explored.statistics()
    assert statistics is not None
    rows = comparison_rows(explored.study, statistics)
    assert len(rows) == len(statistics.comparisons) == 8
    first, source = rows[0], statistics.comparisons[0]
    assert first.difference.text == points(source.inference.difference)
    assert first.difference.text[0] in "+-"
    assert len(first.paper) == 2
    assert first.paper_p == max((test.p for test in source.paper if test.p is not None), default=None)
    intervals = score_intervals(statistics)
    assert intervals["mini_base", "test", "last"].scope == "checkpoints"
    assert score_intervals(None) == {}
    assert [p_value(p).text for p in (0.0004, 0.001, 0.25)] == ["< 0.001", "0.001", "0.250"]
    assert (points(-0.01234), points(0.01)) == ("-1.23", "+1.00")


def test_statistics_of_another_study_are_named_as_they_are(explored: Results) -> None:
    statistics = explored.statistics()
    assert statistics is not None
    foreign = statistics.comparisons[0].model_copy(update={"suite": "gone", "benchmark": "lost", "baseline": "old"})
    (row,) = comparison_rows(explored.study, statistics.model_copy(update={"comparisons": [foreign]}))
    assert (row.suite, row.benchmark, row.baseline) == ("gone", "lost", "old")


def test_run_times_are_those_of_the_records(explored: Results) -> None:
    rows = {(row.cell, row.seed): row for row in run_times(explored)}
    assert len(rows) == 1 + 4 * 2
    trained = rows["mini_acpo_offp", 1]
    assert (trained.rollouts, trained.sampling, trained.updating) == (35, 35 * 0.25, 35 * 0.5)
    assert rows["mini_base", 0].sampling is None


def copied(explored: Results, tmp_path: Path) -> Results:
    shutil.copytree(explored.root, tmp_path / "results")
    return Results(explored.study, tmp_path / "results")


def test_a_finished_study_lacks_only_what_was_never_made(explored: Results) -> None:
    gaps = {gap.name: gap.command for gap in find_gaps(explored)}
    assert gaps == {
        "theory/statements.json": "snakemake --cores 2 theory",
        "timing.json": "snakemake --cores 2 results/timing.json",
        **{f"probes/mini_dapo_{r}/seed*/{kind}.json": "snakemake --cores 2 probes" for r in ("nonp", "offp") for kind in
           ("tokens", "gradients")},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("lost", "name", "command"),
    [
        ("statistics", "statistics/statistics.json", "snakemake --cores 2 statistics"),
        ("audit", "audit/ledger.json", "snakemake --cores 2 audit"),
        ("mini_acpo_offp.json", "mini_acpo_offp", "snakemake --cores 2 results/mini_acpo_offp.json"),
        ("data", "data/countdown_mini/test", "snakemake --cores 2 results/data/countdown_mini/test.parquet"),
        ("runs/mini_dapo_nonp/seed1/verdicts.parquet", "mini_dapo_nonp/seed1",
         "snakemake --cores 2 results/runs/mini_dapo_nonp/seed1/verdicts.parquet"),
        ("runs/mini_dapo_nonp/seed1", "mini_dapo_nonp/seed1",
         "snakemake --cores 2 results/runs/mini_dapo_nonp/seed1/verdicts.parquet"),
    ],
)  # fmt: skip
def test_what_is_lost_is_said_with_its_command(
    few_figures: None, explored: Results, tmp_path: Path, lost: str, name: str, command: str
) -> None:
    results = copied(explored, tmp_path)
    path = results.root / lost
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    gaps = {gap.name: gap.command for gap in find_gaps(results)}
    assert gaps[name] == command
    report = render_report(results)
    assert f"<code>{name}</code>" in report
    assert f"<code>{command}</code>" in report


def test_how_far_an_unfinished_cell_came(explored: Results, tmp_path: Path) -> None:
    results = copied(explored, tmp_path)
    (results.root / "mini_dapo_nonp.json").unlink()
    (results.root / "runs/mini_dapo_nonp/seed1/run.json").unlink()
    gaps = {gap.name: gap.lacking for gap in find_gaps(results)}
    assert gaps["mini_dapo_nonp"] == (
        "no result; training finished for seed 0; training begun and not finished for seed 1"
    )


@pytest.mark.parametrize(
    "name", ["statistics/statistics.json", "audit/ledger.json", "runs/mini_acpo_nonp/seed0/samples.parquet"]
)
def test_damaged_files_are_named(few_figures: None, explored: Results, tmp_path: Path, name: str) -> None:
    results = copied(explored, tmp_path)
    path = results.root / name
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(StoreError, match=name):
        render_report(results)


def test_the_run_of_another_cell_is_refused(explored: Results, tmp_path: Path) -> None:
    results = copied(explored, tmp_path)
    shutil.copy(results.root / "runs/mini_acpo_nonp/seed0/run.json", results.root / "runs/mini_dapo_nonp/seed0")
    with pytest.raises(StoreError, match="is the run of mini_acpo_nonp seed 0"):
        results.records(Cell("mini", "dapo", "nonp"))


def test_a_pair_without_spread_has_no_t(explored: Results, graded: Graded) -> None:
    (key, item), *_ = graded.evidence.tallies.items()
    twin = Cell("mini", "acpo", "nonp")
    same: Any = Graded()
    same.evidence.tallies = {key: item, (twin, key[1], "last"): item.__class__(twin, *key[1:], *_rest(item))}
    (pair, *_) = compare_pairs(same.evidence, 0.05)
    assert (pair["difference"], pair["t"], pair["p"]) == (0.0, None, 1.0)
    assert estimate_mean(item).value == pytest.approx(item.mean)


def _rest(item: Any) -> tuple[Any, ...]:
    return item.seeds, item.questions, item.correct
