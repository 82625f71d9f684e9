"""Corrections within families: against statsmodels and by hand; what a family holds."""

import pytest
from made_up import study, values
from statsmodels.stats.multitest import multipletests

from acpo.config import parse_study
from acpo.errors import ConfigError
from acpo.stats.families import declared_hypotheses, hypotheses, outside_grid
from acpo.stats.multiplicity import adjust

P = [0.01, 0.04, 0.03, 0.2]


def test_holm_and_bh_by_hand() -> None:
    # Ordered .01 .03 .04 .2. Holm: 4 x .01, 3 x .03, max with 2 x .04, max with .2.
    # BH from the top: .2, min with .04 x 4/3, .03 x 4/2, .01 x 4.
    found = adjust(P)
    assert [item.holm for item in found] == pytest.approx([0.04, 0.09, 0.09, 0.2])
    assert [item.bh for item in found] == pytest.approx([0.04, 0.04 * 4 / 3, 0.04 * 4 / 3, 0.2])


@pytest.mark.parametrize(("method", "name"), [("holm", "holm"), ("fdr_bh", "bh")])
def test_equal_statsmodels(method: str, name: str) -> None:
    assert [getattr(item, name) for item in adjust(P)] == pytest.approx(list(multipletests(P, method=method)[1]))


def test_an_untested_hypothesis_counts_as_one() -> None:
    assert adjust([0.01, None])[0].holm == pytest.approx(0.02)
    assert adjust([None])[0].holm == 1.0
    assert adjust([]) == []


def test_a_family_is_suites_by_benchmarks_by_regimes_by_baselines() -> None:
    made = study()
    family = made.statistics.families["acpo_against_all"]
    found = hypotheses(made, family)
    assert len(found) == 2 * 3  # regimes x (base, dapo, cispo)
    assert str(found[0]) == "mini_acpo_nonp against mini_base on countdown_mini"
    assert {str(item.baseline) for item in found} == {
        "mini_base", "mini_dapo_nonp", "mini_cispo_nonp", "mini_dapo_offp", "mini_cispo_offp",
    }  # fmt: skip


def test_what_the_grid_does_not_make_is_named() -> None:
    made = study()
    assert outside_grid(made, made.statistics.families["acpo_against_all"]) == [
        "method ar_lopti", "method high_entropy", "method low_entropy",
    ]  # fmt: skip
    without = study(methods=("dapo", "cispo"))
    assert hypotheses(without, without.statistics.families["acpo_against_all"]) == []


def test_a_family_may_be_one_regime() -> None:
    content = values()
    family = content["statistics"]["families"]["acpo_against_all"]
    content["statistics"]["families"]["offp"] = family | {"regimes": ["offp"], "suites": ["mini"]}
    made = parse_study(content)
    assert len(hypotheses(made, made.statistics.families["offp"])) == 3
    assert len(declared_hypotheses(made)) == 6  # each once, though two families hold some


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"treatment": "acop"}, r"statistics\.families\.f\.treatment: unknown name 'acop'; did you mean 'acpo'"),
        ({"baselines": ["dapoo"]}, r"statistics\.families\.f\.baselines: unknown name 'dapoo'; did you mean 'dapo'"),
        ({"baselines": []}, r"statistics\.families\.f\.baselines: List should have at least 1 item"),
        ({"baselines": ["acpo"]}, r"statistics\.families\.f\.baselines: give each once, and not the treatment"),
        ({"baselines": ["dapo", "dapo"]}, r"statistics\.families\.f\.baselines: give each once"),
        ({"suites": ["orzz"]}, r"statistics\.families\.f\.suites: unknown name 'orzz'; did you mean 'orz'"),
        ({"regimes": ["off"]}, r"statistics\.families\.f\.regimes: unknown name 'off'"),
        ({"alpha": 0.1}, r"statistics\.families\.f: unknown key 'alpha'"),
    ],
)
def test_a_wrong_family_is_refused(change: dict, message: str) -> None:
    content = values()
    content["statistics"]["families"] = {"f": {"label": "F", "treatment": "acpo", "baselines": ["dapo"]} | change}
    with pytest.raises(ConfigError, match=message):
        parse_study(content)


@pytest.mark.parametrize(
    ("key", "value"), [("alpha", 0), ("alpha", 0.5), ("resamples", 999), ("ties", "max"), ("stream", -1), ("power", 1)]
)
def test_a_wrong_setting_is_refused(key: str, value: object) -> None:
    content = values()
    content["statistics"][key] = value
    with pytest.raises(ConfigError, match=rf"statistics\.{key}: "):
        parse_study(content)
