"""Each check on made-up results where its claim is known to be true, and where it is known to be false."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from audit_study import evidence, write_cell, write_logs, write_probe, write_scores, write_timing

from acpo.audit.checks import CHECKS, equations
from acpo.audit.evidence import MissingEvidenceError
from acpo.audit.verdict import Verdict
from acpo.cells import Cell
from acpo.config import Study, parse_study
from acpo.store import StoreError

Score = Callable[[str, str], float]
YES, NO, OPEN = Verdict.REPRODUCED, Verdict.CONTRADICTED, Verdict.NOT_REPRODUCED


def flat(method: str, regime: str) -> float:
    return 0.3


def acpo_high(method: str, regime: str) -> float:
    return 0.4 if method == "acpo" else 0.3


def acpo_low(method: str, regime: str) -> float:
    return 0.2 if method == "acpo" else 0.3


def cispo_falls(method: str, regime: str) -> float:
    return 0.1 if method in ("cispo", "ar_lopti") and regime == "offp" else 0.3


def acpo_falls(method: str, regime: str) -> float:
    return 0.1 if method == "acpo" and regime == "offp" else 0.3


def below_base(method: str, regime: str) -> float:
    return 0.05


def as_table6(method: str, regime: str) -> float:
    return {"acpo": 0.5, "dapo_clip_max": 0.4, "dapo": 0.3, "grpo_clip_avg": 0.2}.get(method, 0.3)


def against_table6(method: str, regime: str) -> float:
    return 0.6 - as_table6(method, regime)


def acpo_tops_a_ladder(method: str, regime: str) -> float:
    return 0.9 if method == "acpo" else 0.3 + 0.02 * len(method)


def acpo_ends_a_ladder(method: str, regime: str) -> float:
    return 0.1 if method == "acpo" else 0.3 + 0.02 * len(method)


SCORES: list[tuple[str, dict[str, Any], Score, Verdict]] = [
    ("acpo_leads", {}, acpo_high, YES),
    ("acpo_leads", {"family": "countdown", "over": ["dapo"]}, acpo_high, YES),
    ("acpo_leads", {}, acpo_low, NO),
    ("acpo_leads", {}, flat, OPEN),
    ("heuristics_gain", {}, flat, YES),
    ("heuristics_gain", {}, below_base, NO),
    ("average_rank", {}, acpo_tops_a_ladder, YES),
    ("average_rank", {}, acpo_ends_a_ladder, NO),
    ("average_rank", {}, flat, OPEN),
    ("cross_regime", {"steadier": "acpo", "than": ["cispo", "ar_lopti"]}, cispo_falls, YES),
    ("cross_regime", {"steadier": "acpo", "than": ["cispo"]}, acpo_falls, NO),
    ("cross_regime", {"steadier": "acpo", "than": ["cispo"]}, flat, OPEN),
    ("clip_ablation", {}, as_table6, YES),
    ("clip_ablation", {}, against_table6, NO),
    ("best_bins", {"family": "countdown"}, acpo_high, YES),
    ("best_bins", {"family": "countdown"}, acpo_low, NO),
    ("welch_tests", {}, acpo_high, YES),
    ("welch_tests", {}, acpo_low, OPEN),
]


@pytest.mark.parametrize(("check", "arguments", "score", "verdict"), SCORES)
def test_scores(
    shipped: Study, tmp_path: Path, check: str, arguments: dict[str, Any], score: Score, verdict: Verdict
) -> None:
    write_scores(tmp_path, shipped, score)
    finding = CHECKS[check](evidence(tmp_path, shipped), **arguments)
    assert finding.verdict is verdict, finding


def test_a_difference_is_printed_in_points(shipped: Study, tmp_path: Path) -> None:
    write_scores(tmp_path, shipped, acpo_high)
    finding = CHECKS["acpo_leads"](evidence(tmp_path, shipped), over=["dapo"])
    assert "dapo mini nonp +10.00 [" in finding.recomputed


def test_a_rank_of_ties_is_no_lead(shipped: Study, tmp_path: Path) -> None:
    for method in ("ar_lopti", "high_entropy", "low_entropy", "dapo", "cispo", "acpo"):
        for regime in ("nonp", "offp"):
            write_cell(tmp_path, shipped, Cell("mini", method, regime), {0: 0.3, 1: 0.3})
    assert CHECKS["average_rank"](evidence(tmp_path, shipped)).verdict is OPEN


@pytest.mark.parametrize(("better", "verdict"), [(0.5, OPEN), (0.3, YES), (0.1, YES)])
def test_sensitivity_looks_at_other_alphas(
    values: dict[str, Any], tmp_path: Path, better: float, verdict: Verdict
) -> None:
    without_other_settings(values)
    acpo = values["methods"]["acpo"]
    values["methods"]["acpo_alpha2"] = {**acpo, "parameters": {**acpo["parameters"], "alpha": 2.0}}
    study = parse_study(values)
    write_scores(tmp_path, study, flat)
    for regime in ("nonp", "offp"):
        scores = {0: better, 1: better + 0.002, 2: better - 0.002}
        write_cell(tmp_path, study, Cell("mini", "acpo_alpha2", regime), scores)
    assert CHECKS["sensitivity"](evidence(tmp_path, study)).verdict is verdict


def without_other_settings(values: dict[str, Any]) -> None:
    """Take the methods of Table 5 out of the study."""
    for name in set(values["ablations"]["table5"]["methods"]) - {"acpo"}:
        del values["methods"][name]
    values["ablations"] = {}


def test_sensitivity_without_other_settings_says_so(values: dict[str, Any], tmp_path: Path) -> None:
    without_other_settings(values)
    with pytest.raises(MissingEvidenceError, match="ACPO with other alpha or clip_base"):
        CHECKS["sensitivity"](evidence(tmp_path, parse_study(values)))


def test_sensitivity_asks_for_the_settings_of_table_5(shipped: Study, tmp_path: Path) -> None:
    write_scores(tmp_path, shipped, flat)
    with pytest.raises(MissingEvidenceError, match=r"results/mini_acpo_a2_e00_nonp\.json"):
        CHECKS["sensitivity"](evidence(tmp_path, shipped))


def typical(method: str, regime: str, seed: int) -> dict[str, Any]:
    """Metrics as the paper describes them."""
    much = 1.0 if regime == "offp" else 0.3
    spread = [much * value * (1 + 0.01 * seed) for value in (0.5, 0.4, 0.3, 0.2, 0.1)]
    clipped = (0.45, 0.4, 0.3, 0.2, 0.1) if method == "dapo" else (0.1, 0.1, 0.09, 0.08, 0.08)
    return {
        "ratio_std": spread,
        "ratio_mean": [1.0 + 0.001 * (seed - 1)] * 5,
        "clip_fraction": [value + 0.001 * seed for value in clipped],
        "gradient_std": (1.0 if method == "dapo" else 0.2) + 0.01 * seed,
        "clip_width_mean": 0.3,
    }


def opposite(method: str, regime: str, seed: int) -> dict[str, Any]:
    """Metrics that go against all of it."""
    much = 0.3 if regime == "offp" else 1.0
    spread = [much * value * (1 + 0.01 * seed) for value in (0.1, 0.2, 0.3, 0.4, 0.5)]
    clipped = (0.1, 0.1, 0.2, 0.2, 0.3) if method == "dapo" else (0.5, 0.4, 0.3, 0.2, 0.0)
    return {
        "ratio_std": spread,
        "ratio_mean": [1.05 + 0.001 * seed] * 5,
        "clip_fraction": [value + 0.001 * seed for value in clipped],
        "gradient_std": (0.2 if method == "dapo" else 1.0) + 0.01 * seed,
        "clip_width_mean": 0.1,
    }


@pytest.mark.parametrize(
    ("check", "when_typical", "when_opposite"),
    [
        ("ratio_spread_by_probability", YES, NO),
        ("ratio_spread_by_regime", YES, NO),
        ("mean_ratio", OPEN, NO),
        ("uneven_clipping", YES, NO),
        ("clip_levels", YES, OPEN),
        ("acpo_clips_little", YES, OPEN),
        ("even_clipping", YES, NO),
        ("steady_gradients", YES, NO),
        ("average_width", NO, YES),
        ("widths_follow_spread", YES, YES),
        ("updates_a_rollout", YES, YES),
    ],
)
def test_training(shipped: Study, tmp_path: Path, check: str, when_typical: Verdict, when_opposite: Verdict) -> None:
    for name, make, verdict in (("yes", typical, when_typical), ("no", opposite, when_opposite)):
        write_logs(tmp_path / name, shipped, make)
        finding = CHECKS[check](evidence(tmp_path / name, shipped))
        assert finding.verdict is verdict, finding


def test_spread_is_pooled_without_first_updates(shipped: Study, tmp_path: Path) -> None:
    write_logs(tmp_path, shipped, lambda *_: {"ratio_std": 0.25})
    finding = CHECKS["ratio_spread_by_probability"](evidence(tmp_path, shipped))
    assert "mini_dapo_nonp 0.25/0.25/0.25/0.25/0.25" in finding.recomputed


def test_widths_that_do_not_follow_are_seen(shipped: Study, tmp_path: Path) -> None:
    write_logs(tmp_path, shipped, typical)
    path = next(tmp_path.glob("runs/mini_acpo_offp/seed1/metrics.parquet"))
    import pandas as pd

    log = pd.read_parquet(path)
    log.loc[5, "bin2/clip_width_high"] += 0.01
    log.to_parquet(path)
    finding = CHECKS["widths_follow_spread"](evidence(tmp_path, shipped))
    assert finding.verdict is OPEN
    assert "1.0e-02" in finding.recomputed


def tokens(exponent: float, inside: int, correlation: float, share: float) -> Callable[[str, int], dict[str, Any]]:
    """Make probe files. `correlation` is -1 or 1: tokens lie on one diagonal or the other, but for a few."""

    def make(regime: str, seed: int) -> dict[str, Any]:
        low, few = round(1000 * share) + seed, 3 + seed
        diagonal = [[100, few], [few, 100]] if correlation > 0 else [[few, 100], [100, few]]
        quadrants = [
            {"probability": "below 0.5", "entropy": "lower half", "tokens": 300, "clipped": low},
            {"probability": "0.5 and above", "entropy": "upper half", "tokens": 700, "clipped": 1000 - low},
        ]
        pooled = {
            "tokens": 1000,
            "exponent": {
                "exponent": {"value": exponent + 0.05 * (seed - 1)},
                "bins": [{"used": True}] * 20 + [{"used": False}],
                "bins_in_band": inside,
            },
            "entropy": {
                "counts": [[*row, 0] for row in diagonal] + [[0, 0, 0]],
                "quadrants": quadrants,
                "bounds": {"below": 0, "above": 20 - inside},
            },
        }
        return {"pooled": pooled}

    return make


@pytest.mark.parametrize(
    ("check", "verdict_if_so", "verdict_if_not"),
    [
        ("variance_exponent", YES, OPEN),
        ("variance_in_band", YES, OPEN),
        ("entropy_correlation", YES, NO),
        ("clipped_region", YES, NO),
        ("entropy_within_bounds", YES, NO),
    ],
)
def test_token_probes(
    shipped: Study, tmp_path: Path, check: str, verdict_if_so: Verdict, verdict_if_not: Verdict
) -> None:
    write_probe(tmp_path / "yes", "tokens", tokens(1.95, 20, -1, 0.8))
    write_probe(tmp_path / "no", "tokens", tokens(1.2, 11, 1, 0.1))
    assert CHECKS[check](evidence(tmp_path / "yes", shipped)).verdict is verdict_if_so
    assert CHECKS[check](evidence(tmp_path / "no", shipped)).verdict is verdict_if_not


def test_clipped_tokens_that_are_more_but_not_most_do_not_reproduce(shipped: Study, tmp_path: Path) -> None:
    write_probe(tmp_path, "tokens", tokens(2.0, 20, -1, 0.4))
    assert CHECKS["clipped_region"](evidence(tmp_path, shipped)).verdict is OPEN


@pytest.mark.parametrize("check", ["variance_exponent", "clipped_region"])
def test_a_probe_without_enough_tokens_is_no_evidence(shipped: Study, tmp_path: Path, check: str) -> None:
    def make(regime: str, seed: int) -> dict[str, Any]:
        content = tokens(2.0, 20, -1, 0.4)(regime, seed)
        content["pooled"]["exponent"]["exponent"]["value"] = None
        for quadrant in content["pooled"]["entropy"]["quadrants"]:
            quadrant["clipped"] = 0
        return content

    write_probe(tmp_path, "tokens", make)
    with pytest.raises(MissingEvidenceError, match="more tokens than the probe found"):
        CHECKS[check](evidence(tmp_path, shipped))


def variant(name: str, norm: float, angle: float, split_half: float = 5.0) -> dict[str, Any]:
    """Two matrices, whose angles average to the one given."""
    matrices = [{"angle": angle + step, "split_half_angle": split_half + step} for step in (-1, 1)]
    return {"name": name, "norm": norm, "norm_percent": norm, "matrices": matrices}


def gradients(flip: bool) -> Callable[[str, int], dict[str, Any]]:
    def make(regime: str, seed: int) -> dict[str, Any]:
        noise = 0.1 * seed
        near, far = (40.0, 20.0) if flip else (20.0, 40.0)
        big, small = (60.0, 300.0) if flip else (300.0, 60.0)
        ends = ((1.0, 2.0), (2.0, 1.0 + noise / 10))
        return {
            "variants": [
                variant("reference", 100.0, 0.0, split_half=10.0 + noise),
                variant("low_probability_selected", big + noise, near + noise),
                variant("high_probability_selected", small, far),
                variant("negative_advantage", 90.0, near + noise),
                variant("positive_advantage", 120.0, far),
                variant("no_clip", 150.0 + noise if flip else 20000.0, 50.0),
                variant("dapo", 100.0, (30.0 if flip else 1.3) + noise),
                variant("on_policy", 98.0 + noise, 3.0 if flip else 47.0),
            ],
            "dominance": [
                {
                    "updates": updates,
                    "gradients": [variant("low_probability_all", low, 0.0), variant("high_probability_all", high, 0.0)],
                }
                for updates, (low, high) in ((16, ends[flip]), (1, ends[not flip]))
            ],
        }

    return make


@pytest.mark.parametrize(
    ("check", "arguments", "if_not"),
    [
        ("dominance_reversal", {}, NO),
        (
            "gradient_order",
            {
                "larger": "low_probability_selected",
                "smaller": "high_probability_selected",
                "nearer": "low_probability_selected",
                "farther": "high_probability_selected",
            },
            NO,
        ),
        ("gradient_order", {"nearer": "negative_advantage", "farther": "positive_advantage"}, NO),
        ("gradient_norm", {"variant": "no_clip", "at_least": 1000}, OPEN),
        ("gradient_angle", {"variant": "dapo", "at_most": 5}, OPEN),
        ("gradient_rotation", {"variant": "on_policy"}, OPEN),
    ],
)
def test_gradient_probes(
    shipped: Study, tmp_path: Path, check: str, arguments: dict[str, Any], if_not: Verdict
) -> None:
    write_probe(tmp_path / "yes", "gradients", gradients(flip=False))
    write_probe(tmp_path / "no", "gradients", gradients(flip=True))
    assert CHECKS[check](evidence(tmp_path / "yes", shipped), **arguments).verdict is YES
    assert CHECKS[check](evidence(tmp_path / "no", shipped), **arguments).verdict is if_not


@pytest.mark.parametrize("content", [{}, {"variants": []}, {"variants": [{"name": "dapo"}]}, {"dominance": []}])
def test_a_probe_without_the_number_is_refused(shipped: Study, tmp_path: Path, content: dict[str, Any]) -> None:
    write_probe(tmp_path, "gradients", lambda *_: content)
    with pytest.raises(StoreError, match=r"mini_dapo_nonp.*make it again"):
        CHECKS["gradient_angle"](evidence(tmp_path, shipped), variant="dapo", at_most=5)


@pytest.mark.parametrize(("agrees", "verdict"), [(True, YES), (False, NO)])
def test_derivations_are_taken_as_they_were_found(
    shipped: Study, tmp_path: Path, agrees: bool, verdict: Verdict
) -> None:
    statement = {"id": "unimodal", "recomputed": "three turning points", "how": "closed form", "agrees": agrees}
    (tmp_path / "theory").mkdir()
    (tmp_path / "theory" / "statements.json").write_text(json.dumps({"statements": [statement]}))
    finding = CHECKS["derivation"](evidence(tmp_path, shipped), statement="unimodal")
    assert (finding.verdict, finding.recomputed, finding.why) == (verdict, "three turning points", "closed form.")
    with pytest.raises(MissingEvidenceError, match=r"the statement band in results/theory/statements.json"):
        CHECKS["derivation"](evidence(tmp_path, shipped), statement="band")


@pytest.mark.parametrize(
    ("times", "verdicts"),
    [
        (
            {"dapo": [1.0, 1.1], "acpo": [1.0, 1.1], "ar_lopti": [2.2, 2.42], "high_entropy": [1.4, 1.55]},
            (YES, YES, YES),
        ),
        ({"dapo": [1.0, 1.1], "acpo": [1.5, 1.6], "ar_lopti": [2.01, 2.2], "high_entropy": [1.0, 1.1]}, (OPEN,) * 3),
    ],
)
def test_timing(shipped: Study, tmp_path: Path, times: dict[str, list[float]], verdicts: tuple[Verdict, ...]) -> None:
    write_timing(tmp_path, times)
    checks = ("acpo_overhead", "ar_lopti_overhead", "high_entropy_overhead")
    found = evidence(tmp_path, shipped)
    assert tuple(CHECKS[check](found).verdict for check in checks) == verdicts


def test_a_method_that_was_not_timed_is_missing(shipped: Study, tmp_path: Path) -> None:
    write_timing(tmp_path, {"dapo": [1.0, 1.1]})
    with pytest.raises(MissingEvidenceError, match=r"acpo in results/timing.json"):
        CHECKS["acpo_overhead"](evidence(tmp_path, shipped))


def test_configured_settings_are_the_published_ones(shipped: Study, tmp_path: Path) -> None:
    found = evidence(tmp_path, shipped)
    assert CHECKS["common_settings"](found, suite="orz").verdict is YES
    assert CHECKS["method_settings"](found).verdict is YES


def test_another_setting_is_named(values: dict[str, Any], tmp_path: Path) -> None:
    values["suites"]["orz"]["training"]["learning_rate"] = 2e-6
    values["methods"]["acpo"]["parameters"]["alpha"] = 2.5
    found = evidence(tmp_path, parse_study(values))
    common, methods = CHECKS["common_settings"](found, suite="orz"), CHECKS["method_settings"](found)
    assert (common.verdict, methods.verdict) == (OPEN, OPEN)
    assert "Learning Rate N-OnP. 1e-06 here 2e-06" in common.recomputed
    assert "ACPO alpha 3 here 2.5" in methods.recomputed


EQUATIONS = ("grpo_objective", "clipped_gradient", "acpo_objective", "advantages", "logit_gradient", "welch_statistic")


@pytest.mark.parametrize("check", EQUATIONS)
def test_equations_hold_for_the_code(shipped: Study, tmp_path: Path, check: str) -> None:
    assert CHECKS[check](evidence(tmp_path, shipped)).verdict is YES


@pytest.mark.parametrize(
    ("check", "method", "changes"),
    [
        ("grpo_objective", "grpo", {"dual_clip": 1.5}),
        ("clipped_gradient", "dapo", {"dual_clip": 1.5}),
        ("acpo_objective", "acpo", {"probability": "current"}),
        ("acpo_objective", "acpo", {"sigma_floor": 0.1}),
    ],
)
def test_code_that_departs_from_an_equation_is_seen(
    values: dict[str, Any], tmp_path: Path, check: str, method: str, changes: dict[str, Any]
) -> None:
    values["methods"][method]["parameters"] |= changes
    assert CHECKS[check](evidence(tmp_path, parse_study(values))).verdict is OPEN


def test_another_advantage_is_seen(shipped: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = equations.group_advantage
    monkeypatch.setattr(equations, "group_advantage", lambda *given: 1.01 * real(*given))
    assert CHECKS["advantages"](evidence(tmp_path, shipped)).verdict is OPEN
