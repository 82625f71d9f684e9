"""What follows from the published tables: the numbers of the specification, and hand-worked ones."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acpo.audit import denominators, durations, scores, sensitivity, significance
from acpo.audit.published import published
from acpo.stats.denominator import possible_percent

PAPER = published()
SETTINGS = scores.settings(PAPER)


@pytest.mark.parametrize(("table", "count"), [("table2", 13), ("table5", 24), ("table7", 6)])
def test_averages_are_means_within_rounding(table: str, count: int) -> None:
    gaps = scores.average_gaps(PAPER.tables[table])
    assert (len(gaps), int(gaps["within"].sum())) == (count, count)
    assert gaps["gap"].abs().max() <= 0.005 + 1e-9


def test_a_wrong_average_is_seen() -> None:
    values = PAPER.tables["table7"].model_dump()
    values["panels"]["N-OnP."]["4"][-1] = "39.28"
    gaps = scores.average_gaps(type(PAPER.tables["table7"]).model_validate(values))
    assert gaps[~gaps["within"]]["row"].tolist() == ["4"]


def test_there_are_18_settings_of_6_methods() -> None:
    assert SETTINGS.shape == (18, 6)
    assert SETTINGS.notna().to_numpy().all()


def test_ranks_under_both_tie_rules() -> None:
    low = scores.average_ranks(SETTINGS, "min").round(3).to_dict()
    middle = scores.average_ranks(SETTINGS, "mid").round(3).to_dict()
    assert (low["ACPO"], middle["ACPO"]) == (1.222, 1.278)
    assert {name: low[name] for name in ("DAPO", "CISPO")} == {"DAPO": 2.556, "CISPO": 3.111}
    assert {name: round(low[name], 2) for name in ("High-Entropy", "AR-Lopti", "Low-Entropy")} == {
        "High-Entropy": 4.17,
        "AR-Lopti": 4.83,
        "Low-Entropy": 5.0,
    }


def test_places_and_ties_of_acpo() -> None:
    assert [int(scores.places(SETTINGS, place)["ACPO"]) for place in (1, 2, 3)] == [15, 2, 1]
    ties = scores.tied_firsts(SETTINGS, "ACPO")
    assert ties.index.tolist() == [("HiTab Qwen2.5-3B", "N-OnP."), ("HiTab Qwen2.5-7B", "OffP.")]
    assert (ties["ACPO"] == ties["AR-Lopti"]).all()
    firsts = scores.places(SETTINGS, 1)
    assert (firsts["DAPO"], firsts["CISPO"]) == (2, 0)


def test_ranks_by_hand() -> None:
    index = pd.MultiIndex.from_tuples([("t", "N-OnP."), ("t", "OffP.")], names=["task", "regime"])
    table = pd.DataFrame({"a": [3.0, 1.0], "b": [3.0, 2.0], "c": [1.0, 0.0]}, index=index)
    assert scores.average_ranks(table, "min").tolist() == [1.5, 1.0, 3.0]
    assert scores.average_ranks(table, "mid").tolist() == [1.75, 1.25, 3.0]
    assert scores.drops(table, ["t"]).tolist() == [-2.0, -1.0, -1.0]


@pytest.mark.parametrize(
    ("averaging", "leave_out", "expected"),
    [
        ("four", (), {"ACPO": -0.75, "CISPO": -6.05, "AR-Lopti": -4.97, "DAPO": -1.16}),
        ("four", (), {"High-Entropy": -0.30, "Low-Entropy": 1.16}),
        ("nine", (), {"ACPO": -1.00, "CISPO": -4.06, "AR-Lopti": -6.07, "DAPO": -2.03}),
        ("nine", (), {"High-Entropy": -0.35, "Low-Entropy": -2.55}),
        ("four", ("Countdown",), {"CISPO": -1.68, "ACPO": -1.18, "DAPO": -1.91}),
    ],
)
def test_drops_under_both_averagings(averaging: str, leave_out: tuple[str, ...], expected: dict[str, float]) -> None:
    found = scores.task_drops(PAPER, averaging, leave_out)
    for method, value in expected.items():
        assert found[method] == pytest.approx(value, abs=0.0051), method


def test_percentages_of_three_answers() -> None:
    assert [possible_percent(value, 3) for value in ("0.00", "33.33", "66.67", "100.00")] == [True] * 4
    assert not possible_percent("33.34", 3)
    assert not possible_percent("66.66", 3)


def test_a_half_may_round_either_way() -> None:
    # 1 of 800 is 0.125 %.
    assert possible_percent("0.12", 800)
    assert possible_percent("0.13", 800)
    assert not possible_percent("0.14", 800)


@given(st.integers(1, 3000), st.data())
def test_every_mean_is_reachable_by_its_own_denominator(denominator: int, data: st.DataObject) -> None:
    right = data.draw(st.integers(0, denominator))
    assert possible_percent(f"{100 * right / denominator:.2f}", denominator)


def test_chance_of_a_fit_counts_percentages() -> None:
    assert denominators.chance_of_fit(10_000) == 1.0
    assert denominators.chance_of_fit(4) == pytest.approx(5 / 10_001)


@pytest.mark.parametrize(
    ("table", "group", "denominator", "fitting", "total"),
    [
        ("table2", "AMC", 83 * 8, 13, 13),
        ("table2", "AMC", 40 * 8, 1, 13),
        ("table2", "AIME24", 30 * 32, 13, 13),
        ("table2", "AIME25", 30 * 32, 13, 13),
        ("table2", "Math500", 500 * 8, 13, 13),
        ("table2", "Minerva", 272 * 8, 11, 13),
        ("table2", "Olympiad", 675 * 8, 11, 13),
    ],
)
def test_denominators_of_table_2(table: str, group: str, denominator: int, fitting: int, total: int) -> None:
    frame = PAPER.tables[table].frame()
    found = denominators.fit(frame[frame["group"] == group]["printed"], denominator)
    assert (found.fitting, found.total) == (fitting, total)


def test_denominators_of_table_1() -> None:
    hitab = PAPER.tables["table1b"].frame()
    trained = hitab[hitab["row"] != "Base Model"]
    found = denominators.fit(trained["printed"], 300 * 4)
    assert (found.fitting, found.total) == (24, 24)
    countdown = PAPER.tables["table1a"].frame()["printed"]
    for samples in (4, 8):
        assert not denominators.fit(countdown, 1024 * samples).all_fit


def test_a_fit_no_better_than_chance_is_called_so() -> None:
    amc = PAPER.tables["table2"].frame().query("group == 'AMC'")["printed"]
    assert denominators.fit(amc, 40 * 8).no_better_than_chance
    assert not denominators.fit(amc, 83 * 8).no_better_than_chance


def test_table_5_is_nearly_additive() -> None:
    found = sensitivity.additivity(PAPER)
    assert len(found) == 12
    assert found["contrasts"].sum() == 72
    assert found["zero"].sum() == 56
    assert found["residual"].max() == pytest.approx(0.225)
    exact = found[found["residual"] < 0.006]
    assert len(exact) == 5


def test_additive_scores_have_no_residual_and_no_contrast() -> None:
    cells = pd.DataFrame([(a, e, 3 * a + e**2) for a in (1.0, 2.0, 4.0) for e in (0.0, 0.1, 0.5)])
    cells.columns = pd.Index(["alpha", "epsilon", "value"])
    assert sensitivity.additive_residual(cells) == pytest.approx(0, abs=1e-12)
    assert np.allclose(sensitivity.contrasts(cells), 0)
    cells.loc[4, "value"] += 9.0
    assert sensitivity.additive_residual(cells) == pytest.approx(4.0)
    assert sorted(np.round(sensitivity.contrasts(cells), 9)) == [-9.0, -9.0, 9.0, 9.0]


def test_table_5_disagrees_with_table_2_and_table_7_does_not() -> None:
    found = sensitivity.disagreements(PAPER, "table5", "3 0.2").set_index(["regime", "benchmark"])
    assert found.loc[("N-OnP.", "AIME24")].tolist() == [20.80, 16.77]
    assert found.loc[("N-OnP.", "Avg.")].tolist() == [40.36, 39.86]
    assert sorted(set(found.index.get_level_values("benchmark"))) == ["AIME24", "AIME25", "Avg."]
    assert sensitivity.disagreements(PAPER, "table7", "5").empty


def test_most_amc_and_aime_scores_of_table_5_are_no_means() -> None:
    frame = sensitivity.grid(PAPER).assign(printed=PAPER.tables["table5"].frame()["printed"])
    sizes = {"AMC": 83 * 8, "AIME24": 30 * 32, "AIME25": 30 * 32}
    fits = {name: denominators.fit(frame[frame["benchmark"] == name]["printed"], size) for name, size in sizes.items()}
    assert sum(each.total - each.fitting for each in fits.values()) == 54
    assert sum(each.total for each in fits.values()) == 72


def test_dashes_are_where_acpo_is_below() -> None:
    assert len(significance.dashes(PAPER)) == 4
    assert significance.dashes(PAPER) == significance.acpo_below(PAPER)


def test_holm_over_60_tests() -> None:
    tests = significance.p_values(PAPER)
    assert int((tests["baseline"] != "Base Model").sum()) == 60
    assert significance.holm_rejections(PAPER, 0.0, 0.05) == 38
    assert significance.holm_rejections(PAPER, 0.001, 0.05) == 0


def test_relative_times_differ_by_rounding_only() -> None:
    found = durations.relatives(PAPER)
    assert len(found) == 16
    assert found["within"].all()


def test_a_wrong_relative_time_is_seen() -> None:
    values = PAPER.model_dump()
    values["tables"]["table9"]["panels"][""]["CISPO"][1] = "+4.9%"
    found = durations.relatives(type(PAPER).model_validate(values))
    assert found[~found["within"]][["row", "regime", "measure"]].to_numpy().tolist() == [
        ["CISPO", "OffP.", "Update (s)"]
    ]


def test_implied_tokens_by_hand() -> None:
    found = durations.tokens_a_response(PAPER).set_index(["row", "regime"])["tokens"]
    assert found["DAPO", "OffP."] == pytest.approx(231.0 / 0.000110 / 2560)
    assert found["ACPO", "N-OnP."] == pytest.approx(458.4 / 0.000109 / 1280)
