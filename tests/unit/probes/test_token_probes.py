"""Token probes on stores whose answers are known, and on too little data."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_up_store import made_up_tokens, write_store
from small_study import SmallStudy

from acpo.engines.tiny.engine import ENGINE
from acpo.methods import method_objective
from acpo.probes.clip_dynamics import clip_dynamics
from acpo.probes.clipping import fixed_widths, objective_rule
from acpo.probes.dispersion import mean_variance, ratio_dispersion
from acpo.probes.entropy_map import entropy_map
from acpo.probes.exponent import fit_exponent, fit_power_law, mean_shape
from acpo.probes.token_store import read_tokens
from acpo.probes.tokens import Setup, probe_all
from acpo.store import StoreError


def rng() -> np.random.Generator:
    return np.random.default_rng(11)


def store(tmp_path: Path, tokens: pd.DataFrame) -> pd.DataFrame:
    return read_tokens([write_store(tmp_path / "tokens.parquet", tokens)])


@pytest.mark.parametrize("exponent", [2.0, 1.0, 3.0])
def test_a_known_exponent_is_recovered(tmp_path: Path, exponent: float) -> None:
    fit = fit_exponent(store(tmp_path, made_up_tokens(exponent)))
    assert fit.exponent.value == pytest.approx(exponent, abs=0.03)
    assert fit.exponent.low is not None
    assert fit.exponent.high is not None
    assert fit.exponent.low - 0.02 < exponent < fit.exponent.high + 0.02
    assert fit.coefficient == pytest.approx(0.05**2, rel=0.05)
    assert fit.r_squared is not None
    assert fit.r_squared > 0.99
    assert sum(b.tokens for b in fit.bins) == 36_000


def test_bins_at_their_centres_tilt_the_fit(tmp_path: Path) -> None:
    """Half of the tokens lie where 1 - pi is far below the last bin's centre."""
    fit = fit_exponent(store(tmp_path, made_up_tokens(2.0)))
    assert fit.exponent_at_centres.value is not None
    assert abs(fit.exponent_at_centres.value - 2) > 0.05


def test_the_softmax_scale_and_its_band(tmp_path: Path) -> None:
    fit = fit_exponent(store(tmp_path, made_up_tokens(2.0)))
    assert fit.kappa_squared == pytest.approx(0.05**2, rel=0.05)
    # One alternative: S = 1, so the band is [1/2, 1]; all bins lie at its upper end, within their noise.
    assert fit.mean_shape == pytest.approx(1, abs=1e-3)
    assert fit.band == pytest.approx((0.5, 1.0), abs=1e-3)
    assert fit.spread is not None
    assert 1 < fit.spread < 1.5
    assert fit.bins_in_band is not None
    assert 0 < fit.bins_in_band < 20


def test_another_exponent_leaves_the_band(tmp_path: Path) -> None:
    fit = fit_exponent(store(tmp_path, made_up_tokens(1.0)))
    assert fit.spread is not None
    assert fit.spread > 10


def test_a_power_law_without_noise_is_exact() -> None:
    centres = [np.array([x]) for x in (0.1, 0.2, 0.5, 0.9)]
    law = fit_power_law(centres, 3.0 * np.array([0.1, 0.2, 0.5, 0.9]) ** 1.7, np.array([5.0, 1.0, 80.0, 2.0]))
    assert law is not None
    assert (law.exponent, law.coefficient, law.r_squared) == pytest.approx((1.7, 3.0, 1.0))
    assert law.standard_error == pytest.approx(0, abs=1e-6)


def test_the_fit_is_weighted_least_squares_by_hand() -> None:
    x, y, w = np.log([0.1, 0.3, 0.8]), np.log([0.02, 0.2, 0.5]), np.array([1.0, 2.0, 5.0])
    centred = x - np.average(x, weights=w)
    slope = (w * centred * y).sum() / (w * centred**2).sum()
    residual = y - np.average(y, weights=w) - slope * centred
    error = np.sqrt((w * residual**2).sum() / (3 - 2) / (w * centred**2).sum())
    law = fit_power_law([np.exp([each]) for each in x], np.exp(y), w)
    assert law is not None
    assert (law.exponent, law.standard_error) == pytest.approx((slope, error), rel=1e-4)


def test_a_variance_that_rises_with_probability_has_no_exponent() -> None:
    places = [np.array([x]) for x in (0.1, 0.3, 0.6, 0.9)]
    assert fit_power_law(places, np.array([4.0, 3.0, 2.0, 1.0]), np.ones(4)) is None


def test_too_few_tokens_for_a_fit(tmp_path: Path) -> None:
    fit = fit_exponent(store(tmp_path, made_up_tokens(questions=3, tokens=20)))
    assert fit.exponent.value is None
    assert fit.exponent.note.startswith("not enough data: ")
    assert (fit.standard_error, fit.kappa_squared, fit.band, fit.spread) == (None, None, None, None)
    assert any(b.note.startswith("not enough data: 2 tokens, the fit needs 30") for b in fit.bins if b.tokens == 2)


def test_an_on_policy_store_has_no_variance_to_fit(tmp_path: Path) -> None:
    tokens = made_up_tokens()
    fit = fit_exponent(store(tmp_path, tokens.assign(log_prob=tokens["old_log_prob"])))
    assert fit.exponent.note == "not enough data: 0 usable bins, the fit needs 4"
    assert {b.note for b in fit.bins} == {"the ratio does not vary"}


def test_mean_shape_of_a_flat_rest() -> None:
    """All the others equally likely: exp of minus their entropy is S itself, 1 / (V - 1)."""
    p, others = np.linspace(0.1, 0.9, 50), 7
    entropy = -(p * np.log(p) + (1 - p) * np.log((1 - p) / others))
    assert mean_shape(pd.DataFrame({"current": p, "entropy": entropy})) == pytest.approx(1 / others)
    assert mean_shape(pd.DataFrame({"current": p[:5], "entropy": entropy[:5]})) is None


def test_dispersion_by_hand(tmp_path: Path) -> None:
    tokens = made_up_tokens(questions=2, tokens=2)
    old, new = np.log([0.1, 0.15, 0.5, 1.0]), np.log([0.05, 0.225, 0.5, 1.0])
    found = ratio_dispersion(store(tmp_path, tokens.assign(old_log_prob=old, log_prob=new)), rng())
    assert [b.tokens for b in found.bins] == [2, 0, 1, 0, 1]
    first = found.bins[0]
    assert (first.mean, first.std.value) == pytest.approx((1.0, 0.5), rel=1e-6)
    assert first.std.note == "not enough data: 1 questions, an interval needs 10"
    assert found.bins[1].std.note == "not enough data: 0 tokens, a spread needs 2"
    assert (found.bins[1].mean, found.bins[1].quantiles) == (None, {})
    assert found.bins[2].std.value is None
    assert first.quantiles["0.5"] == pytest.approx(1.0)


def test_bootstrap_interval_covers_and_is_the_same_twice(tmp_path: Path) -> None:
    tokens = store(tmp_path, made_up_tokens(scale=0.1, questions=80, tokens=200))
    first, second = (ratio_dispersion(tokens, rng()) for _ in range(2))
    assert first == second
    for ratio_bin in first.bins:
        std = ratio_bin.std
        assert std.value is not None
        assert std.low is not None
        assert std.high is not None
        assert std.low < std.value < std.high
    lowest = tokens[tokens["probability"] < 0.2]
    assert first.bins[0].std.value == pytest.approx(float(np.sqrt((0.01 * lowest["distance"] ** 2).mean())), rel=0.1)


def test_bootstrap_resamples_questions_not_tokens(tmp_path: Path) -> None:
    """Ratios that are equal within a question: its many tokens tell no more than one."""
    few, many = (made_up_tokens(questions=40, tokens=n) for n in (1, 50))
    shift = np.random.default_rng(0).normal(size=40) * 0.1
    widths = []
    for tokens in (few, many):
        question = tokens["question"].str[1:].astype(int).to_numpy()
        same = tokens.assign(old_log_prob=np.log(0.1), log_prob=np.log(0.1) + shift[question])
        std = ratio_dispersion(store(tmp_path, same), rng()).bins[0].std
        assert std.low is not None
        assert std.high is not None
        widths.append(std.high - std.low)
    assert widths[0] == pytest.approx(widths[1], rel=0.02)


def test_a_bin_that_some_resamples_miss_has_no_interval(tmp_path: Path) -> None:
    tokens = made_up_tokens(questions=30, tokens=2)
    old = np.full(len(tokens), np.log(0.5))
    rare = tokens["question"] == "q0"
    old[rare] = np.log(0.1)
    found = ratio_dispersion(store(tmp_path, tokens.assign(old_log_prob=old, log_prob=old - 0.1)), rng())
    assert found.bins[0].std.note.startswith("not enough data")
    assert found.bins[2].std.low is not None


def test_off_policy_degree(tmp_path: Path) -> None:
    tokens = store(tmp_path, made_up_tokens(scale=0.1))
    assert mean_variance(tokens) == pytest.approx(0.01 * float((tokens["distance"] ** 2).mean()), rel=0.05)
    found = ratio_dispersion(tokens, rng())
    assert [each.update for each in found.by_update] == [1, 2, 3, 4]
    assert sum(each.tokens for each in found.by_update) == len(tokens)
    assert mean_variance(tokens.iloc[:1]) is None


def test_clipped_by_fixed_widths() -> None:
    tokens = pd.DataFrame({"ratio": [1.31, 1.31, 0.79, 0.79, 1.3, 0.8], "advantage": [1, -1, 1, -1, 1, -1]})
    assert list(fixed_widths(0.2, 0.3).find(tokens)) == [True, False, False, True, False, False]


def test_entropy_map_by_hand(tmp_path: Path) -> None:
    tokens = made_up_tokens(scale=0.3)
    read = store(tmp_path, tokens)
    found = entropy_map(read, fixed_widths(0.2, 0.2), 50, 40, rng())
    clipped = int(fixed_widths(0.2, 0.2).find(read).sum())
    assert clipped > 100
    assert found.clipped_counts is not None
    assert (np.sum(found.counts), np.sum(found.clipped_counts)) == (len(read), clipped)
    assert sum(s.tokens for s in found.strata) == sum(q.tokens for q in found.quadrants) == len(read)
    assert sum(s.clipped or 0 for s in found.strata) == sum(q.clipped or 0 for q in found.quadrants) == clipped
    assert len(found.clipped_points) == len(found.kept_points) == 40
    rates = [s.rate.value for s in found.strata]
    assert rates == sorted(rates, reverse=True)  # App. K: wider ratios at low probability are clipped more


def test_every_point_is_inside_the_bounds(tmp_path: Path) -> None:
    bounds = entropy_map(store(tmp_path, made_up_tokens()), None, 50, 5, rng()).bounds
    assert (bounds.below, bounds.above) == (0, 0)
    assert bounds.largest_below < 1e-5


def test_a_point_outside_the_bounds_is_counted(tmp_path: Path) -> None:
    tokens = made_up_tokens()
    tokens.loc[0, ["log_prob", "entropy"]] = [np.log(0.5), 0.1]
    tokens.loc[1, ["log_prob", "entropy"]] = [np.log(0.5), 9.0]
    read = store(tmp_path, tokens)
    bounds = entropy_map(read, None, 50, 5, rng()).bounds
    assert (bounds.below, bounds.above) == (1, 1)
    assert bounds.largest_below == pytest.approx(np.log(2) - 0.1, abs=1e-5)
    unknown = entropy_map(read, None, None, 5, rng())
    assert (unknown.bounds.above, unknown.bounds.largest_above) == (None, None)
    assert unknown.entropy_limit == 9


def test_an_unknown_clip_rule_gives_no_rates(tmp_path: Path) -> None:
    found = entropy_map(store(tmp_path, made_up_tokens()), None, 50, 5, rng())
    assert found.clipped_counts is None
    assert {s.rate.note for s in found.strata} == {"which tokens were clipped is unknown"}
    assert {q.clipped for q in found.quadrants} == {None}
    assert found.clip_rule.startswith("unknown")


def test_a_stratum_with_few_tokens_has_no_rate(tmp_path: Path) -> None:
    tokens = made_up_tokens(questions=2, tokens=40).assign(old_log_prob=np.log(0.9))
    found = entropy_map(store(tmp_path, tokens), fixed_widths(0.2, 0.2), 50, 5, rng())
    assert found.strata[0].rate.note == "not enough data: 0 tokens, a rate needs 30"
    assert found.strata[4].rate.value is not None


def test_probe_all_sections(tmp_path: Path) -> None:
    tokens = store(tmp_path, made_up_tokens())
    pooled, rollouts = probe_all(tokens, Setup(None, None, 0))
    assert (pooled.tokens, pooled.questions, pooled.updates) == (36_000, 60, 8)
    assert {number: section.tokens for number, section in rollouts.items()} == {1: 18_000, 2: 18_000}
    assert not rollouts[1].entropy.kept_points
    assert probe_all(tokens, Setup(None, None, 0)) == (pooled, rollouts)
    assert probe_all(tokens, Setup(None, None, 1)) != (pooled, rollouts)


@pytest.mark.parametrize("method", ["dapo", "acpo", "ar_lopti", "high_entropy", "acpo_bins4"])
def test_the_objective_says_what_its_updates_clipped(small: SmallStudy, method: str) -> None:
    """The clip rate found in the store is the one that the trainer logged, update by update."""
    job = small.job(f"mini_{method}_offp")
    ENGINE.train(job)
    run = small.run(f"mini_{method}_offp")
    tokens = read_tokens(sorted((run / "tokens").glob("*.parquet")))
    rule = objective_rule(method_objective(small.study(), method, {}), method)
    found = tokens.assign(clipped=rule.find(tokens)).groupby("update")["clipped"].mean()
    logged = pd.read_parquet(run / "metrics.parquet").set_index("update")["clip_fraction"]
    assert len(found) > 1
    assert found.to_numpy() == pytest.approx(logged[found.index].to_numpy(), abs=1e-9)


def test_two_rows_of_one_token_are_refused(small: SmallStudy, tmp_path: Path) -> None:
    tokens = store(tmp_path, made_up_tokens(questions=2, tokens=3).assign(position=0))
    with pytest.raises(StoreError, match="two rows of one update"):
        objective_rule(method_objective(small.study(), "dapo", {}), "dapo").find(tokens)


def test_clip_dynamics_by_hand() -> None:
    metrics = pd.DataFrame({"rollout": [1, 1, 2]})
    for b in range(1, 6):
        metrics[f"bin{b}/count"] = [30.0, 10.0, 40.0] if b < 5 else [0.0, 0.0, 0.0]
        metrics[f"bin{b}/clip_fraction"] = [0.1, 0.5, 0.3] if b < 5 else np.nan
        metrics[f"bin{b}/gradient_std"] = [1.0, 1.0, 2.0] if b < 5 else np.nan
    bins = clip_dynamics(metrics).bins
    clip = bins[0].clip_fraction
    assert (clip.value, clip.low, clip.high) == pytest.approx((0.25, 0.2, 0.3))
    assert bins[0].gradient_std.value == pytest.approx(1.5)
    assert (bins[0].tokens, bins[4].tokens) == (80, 0)
    assert bins[4].clip_fraction.note == "not enough data: no update has a token in this bin"
