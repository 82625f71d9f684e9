"""Cor. 2.3: turning points of H, the reversal search, and where the model has a reversal and where it has none."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from acpo.theory.dominance import (
    Group,
    Population,
    dominance,
    off_policy_degree,
    power_coupling,
    reversals,
    small_step_constant,
    smallest_log_slope,
    turning_points,
)
from acpo.theory.expected_gradient import gaussian_factor, lognormal_factor, trust_factor
from acpo.theory.sign_map import CLIP_WIDTHS, GROUPS, KAPPAS, Setting, find_reversal, sign_map

POINTS = "0.1 against 0.9"
UNIFORM = "[0, 0.2] against [0.8, 1)"


def points_of(clip_low: float, clip_high: float) -> list[tuple[float, str]]:
    return turning_points(lambda tau: trust_factor(tau, clip_low, clip_high), 1e-3, 7.4, 4000)


def test_turning_points_of_h_at_equal_widths() -> None:
    points = points_of(0.2, 0.2)
    assert [kind for _, kind in points] == ["maximum", "minimum", "maximum"]
    assert [tau for tau, _ in points] == pytest.approx([0.0852, 0.1173, 2.721], abs=5e-4)
    values = [float(trust_factor(tau, 0.2, 0.2)) for tau, _ in points]
    assert values == pytest.approx([4.316e-3, 4.040e-3, 0.2574], rel=3e-4)
    assert np.expm1(points[2][0] ** 2) == pytest.approx(1643, rel=2e-3)  # sigma^2 of the global maximum


@pytest.mark.parametrize("clip_high", [0.28, 0.3])
def test_h_is_unimodal_with_a_larger_upper_width(clip_high: float) -> None:
    assert [kind for _, kind in points_of(0.2, clip_high)] == ["maximum"]


def test_the_slope_that_forbids_a_reversal() -> None:
    slope, sigma = smallest_log_slope(lognormal_factor(0.2, 0.2), 1e-3, 1e12, 4000)
    assert slope == pytest.approx(0.688, abs=5e-4)
    assert sigma == pytest.approx(0.101, abs=5e-4)
    for clip_high in (0.28, 0.3):
        assert smallest_log_slope(lognormal_factor(0.2, clip_high), 1e-3, 1e12, 2000)[0] > 0.7
    with pytest.raises(ValueError, match="not positive"):
        smallest_log_slope(lognormal_factor(0.25, 0.2), 1e-3, 1e3, 500)


@pytest.mark.parametrize(("clip_high", "clip_low"), [(0.2, 0.2), (0.28, 0.2), (0.3, 0.2)])
@pytest.mark.parametrize("groups", GROUPS)
def test_no_crossing_for_constant_coupling(groups: str, clip_high: float, clip_low: float) -> None:
    assert find_reversal(Setting(groups, clip_high, clip_low, 0.0, 1.0)).crossings == []


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_density_of_tokens_makes_one(data: st.DataObject) -> None:
    """Any p(pi), any p_L < p_H: D > 0 at every kappa."""
    edges = sorted(data.draw(st.lists(st.floats(0.0, 0.999), min_size=6, max_size=6, unique=True)))
    weights = np.array(data.draw(st.lists(st.floats(0.01, 1), min_size=6, max_size=6)))
    low, high = (
        Group(np.array(edges[part]), weights[part] / weights[part].sum()) for part in (slice(0, 3), slice(3, 6))
    )
    population = Population(low, high)
    for factor in (lognormal_factor(0.2, 0.2), lognormal_factor(0.2, 0.3), gaussian_factor(0.2, 0.2)):
        assert (dominance(np.geomspace(1e-3, 1e3, 60), population, power_coupling(0), factor) > 0).all()


@pytest.mark.parametrize("sigma", [0.01, 0.1, 1.0, 30.0])
@pytest.mark.parametrize(("clip_low", "clip_high"), [(0.2, 0.2), (0.2, 0.3), (0.3, 0.2)])
def test_the_gaussian_slope_is_that_integral(sigma: float, clip_low: float, clip_high: float) -> None:
    """d(sigma E)/d sigma = (2 pi)^(-1/2) * integral of (x + x^2) x^2 sigma^-3 exp(-x^2 / 2 sigma^2)."""
    factor, step = gaussian_factor(clip_low, clip_high), 1e-4 * sigma
    ends = np.array([sigma - step, sigma + step])
    slope = float(np.diff(ends * factor(ends))[0] / (2 * step))
    integral = sum(
        quad(lambda x: (x + x**2) * x**2 / sigma**3 * np.exp(-(x**2) / (2 * sigma**2)), a, b, epsabs=1e-15)[0]
        for a, b in ((-clip_low, 0), (0, clip_high))
    ) / np.sqrt(2 * np.pi)
    assert slope == pytest.approx(integral, rel=1e-5, abs=1e-12)
    if clip_high >= clip_low:
        assert integral > 0


@pytest.mark.parametrize(("correlation", "kappa"), [(0.2, 0.12), (0.05, 0.085)])
def test_noise_brings_a_reversal(correlation: float, kappa: float) -> None:
    (found,) = find_reversal(Setting(POINTS, 0.2, 0.2, 0.0, correlation)).crossings
    assert found == pytest.approx(kappa, rel=0.02)


@pytest.mark.parametrize("groups", GROUPS)
def test_a_steep_coupling_brings_a_reversal(groups: str) -> None:
    (found,) = find_reversal(Setting(groups, 0.2, 0.2, 2.0, 1.0)).crossings
    assert 2.7 < found < 5.6


def test_the_steepness_it_takes() -> None:
    """Below the smallest slope, 0.688, neighbours never cross; just above it near ones do."""
    near = Population(Group.point(0.50), Group.point(0.51))
    kappas = np.geomspace(0.01, 10, 2000)
    factor = lognormal_factor(0.2, 0.2)
    assert (dominance(kappas, near, power_coupling(0.68), factor) > 0).all()
    assert (dominance(kappas, near, power_coupling(0.70), factor) < 0).any()


def test_a_smaller_upper_width_has_a_band_of_reversal() -> None:
    assert len(find_reversal(Setting(UNIFORM, 0.2, 0.25, 0.0, 1.0)).crossings) == 2


def test_reversals_of_a_known_function() -> None:
    found = reversals(lambda kappa: (kappa - 2.0) * (kappa - 50.0), 0.1, 1000, 200)
    assert found == pytest.approx([2.0, 50.0], rel=1e-9)
    assert reversals(lambda kappa: kappa, 0.1, 1000, 200) == []
    assert reversals(lambda kappa: np.maximum(kappa - 2.0, 0) - np.maximum(1.0 - kappa, 0), 0.1, 10, 99) != []


def test_reversals_refuse_what_is_no_search() -> None:
    with pytest.raises(ValueError, match="0 < low < high"):
        reversals(lambda kappa: kappa, 1.0, 1.0, 10)
    with pytest.raises(ValueError, match="not finite at kappa"):
        reversals(lambda kappa: np.where(kappa > 5, np.nan, kappa), 1.0, 10.0, 10)


def test_small_step_constant() -> None:
    population = GROUPS[UNIFORM]
    # E[(1 - pi)^3] on [0, 0.2] is (1 - 0.8^4) / 0.8, on [0.8, 1) it is 0.2^4 / 0.8.
    assert small_step_constant(population, power_coupling(0)) == pytest.approx(0.738 - 0.002)
    # App. C.3.2: bounded below on I_L, yet negative.
    assert small_step_constant(population, lambda p: np.where(p < 0.5, 1.0, 1000.0)) == pytest.approx(0.738 - 2.0)
    assert small_step_constant(population, power_coupling(3)) == pytest.approx(0)


def test_small_step_constant_is_the_limit_of_d() -> None:
    for exponent in (0.0, 1.0, 2.5):
        coupling = power_coupling(exponent)
        limit = small_step_constant(GROUPS[UNIFORM], coupling)
        for factor in (lognormal_factor(0.2, 0.2), gaussian_factor(0.2, 0.2)):
            value = dominance(np.array([1e-3]), GROUPS[UNIFORM], coupling, factor)[0] / 1e-6
            assert value == pytest.approx(limit, rel=1e-4)


def test_off_policy_degree() -> None:
    assert off_policy_degree(2.0, Group.point(0.9)) == pytest.approx(4 * 0.01)
    assert off_policy_degree(1.0, Group.uniform(0, 1, 20)) == pytest.approx(1 / 3)


def test_the_sign_map_agrees_with_single_settings() -> None:
    signs = sign_map()
    assert set(signs["sign"]) == {-1, 1}
    plain = signs[(signs["exponent"] == 0) & (signs["correlation"] == 1)]
    for (clip_high, clip_low), part in plain.groupby(["clip_high", "clip_low"]):
        assert (part["sign"] == 1).all() == (clip_high >= clip_low)
    row = signs[(signs["clip_high"] == 0.2) & (signs["clip_low"] == 0.2) & (signs["correlation"] == 1)]
    row = row[np.isclose(row["exponent"], 2.0)].sort_values("kappa")
    expected = Setting(UNIFORM, 0.2, 0.2, 2.0, 1.0).difference(KAPPAS)
    assert row["difference"].to_numpy() == pytest.approx(expected, rel=1e-9)
    assert len(signs) == len(CLIP_WIDTHS) * 31 * 16 * len(KAPPAS)
