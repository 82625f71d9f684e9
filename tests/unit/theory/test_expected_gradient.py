"""H of Eq. 10 and its kin: published numbers, a reference of many digits, quadrature, simulation, limits."""

from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import multivariate_normal

from acpo.theory.expected_gradient import (
    _both_above,
    clip_window,
    expected_gradient,
    gaussian_factor,
    gaussian_trust_factor,
    large_tau_limit,
    log_ratio_sd,
    log_trust_factor,
    lognormal_factor,
    noisy_trust_factor,
    small_tau_limit,
    trust_factor,
)

WIDTHS = [(0.2, 0.2), (0.2, 0.28), (0.2, 0.3), (0.25, 0.2), (0.9, 3.0), (1.0, 0.45)]
"""(clip_low, clip_high)"""
TAUS = [0.02, 0.05, 0.1, 0.3, 0.6, 0.67, 1.0, 1.0001, 2.5, 7.0]


@pytest.mark.parametrize(("tau", "value"), [(0.05, 0.002472), (0.1, 0.004180), (0.3, 0.016656), (1.0, 0.079369)])
def test_values_at_equal_widths(tau: float, value: float) -> None:
    assert float(trust_factor(tau, 0.2, 0.2)) == pytest.approx(value, abs=5e-7)


def reference(tau: float, clip_low: float, clip_high: float) -> mpmath.mpf:
    """Eq. 8 and 10 with fifty digits."""
    with mpmath.workdps(50):
        t, low, high = mpmath.mpf(tau), mpmath.mpf(clip_low), mpmath.mpf(clip_high)
        lower = mpmath.log(1 - low) / t + t / 2 if clip_low < 1 else -mpmath.inf
        upper = mpmath.log(1 + high) / t + t / 2
        a, b = min(lower, mpmath.mpf(0)) - t, upper - t
        bracket = mpmath.npdf(a) - mpmath.npdf(b) + t * (mpmath.ncdf(b) - mpmath.ncdf(a))
        return t * bracket


@pytest.mark.parametrize(("clip_low", "clip_high"), WIDTHS)
@pytest.mark.parametrize("tau", [*TAUS, 20.0])
def test_closed_form_keeps_its_digits(tau: float, clip_low: float, clip_high: float) -> None:
    expected = reference(tau, clip_low, clip_high)
    assert float(trust_factor(tau, clip_low, clip_high) / expected) == pytest.approx(1, abs=1e-11)


@pytest.mark.parametrize("tau", [40.0, 80.0, 150.0])
def test_logarithm_where_the_value_underflows(tau: float) -> None:
    sign, log_size = log_trust_factor(tau, 0.2, 0.2)
    assert float(sign) == 1
    assert float(log_size) == pytest.approx(float(mpmath.log(reference(tau, 0.2, 0.2))), abs=1e-9)


@pytest.mark.parametrize(("clip_low", "clip_high"), WIDTHS)
@pytest.mark.parametrize("tau", TAUS)
def test_closed_form_matches_quadrature(tau: float, clip_low: float, clip_high: float) -> None:
    low, high = (float(end) for end in clip_window(tau, clip_low, clip_high))

    def kept(z: float) -> float:
        inside = z <= high if z > 0 else z >= low
        return tau * z * np.exp(-((z - tau) ** 2) / 2) / np.sqrt(2 * np.pi) if inside else 0.0

    ends = sorted({tau - 12, min(max(low, tau - 12), tau + 12), 0.0, min(high, tau + 12), tau + 12})
    parts = [quad(kept, a, b, epsabs=1e-14, epsrel=1e-12)[0] for a, b in pairwise(ends)]
    assert float(trust_factor(tau, clip_low, clip_high)) == pytest.approx(sum(parts), abs=1e-10)


def simulate(tau: float, clip_low: float, clip_high: float, correlation: float, seed: int) -> tuple[float, float]:
    """Mean and standard error of rho A 1_trust with A = u + eta, straight from Eq. 28."""
    rng, draws = np.random.default_rng(seed), 400_000
    u = tau * rng.standard_normal(draws)
    noise = tau * np.sqrt(1 / correlation**2 - 1) * rng.standard_normal(draws)
    ratio, advantage = np.exp(u - tau**2 / 2), u + noise
    trusted = np.where(advantage > 0, ratio <= 1 + clip_high, ratio >= 1 - clip_low)
    value = ratio * advantage * trusted
    return float(value.mean()), float(value.std() / np.sqrt(draws))


@pytest.mark.parametrize(("clip_low", "clip_high"), WIDTHS[:4])
@pytest.mark.parametrize("tau", [0.05, 0.3, 1.0])
def test_closed_form_matches_simulation(tau: float, clip_low: float, clip_high: float) -> None:
    mean, error = simulate(tau, clip_low, clip_high, 1.0, 0)
    assert float(trust_factor(tau, clip_low, clip_high)) == pytest.approx(mean, abs=5 * error)


@pytest.mark.parametrize("correlation", [0.9, 0.5, 0.2, 0.05])
@pytest.mark.parametrize("tau", [0.08, 0.3, 1.0])
def test_noise_matches_simulation(tau: float, correlation: float) -> None:
    mean, error = simulate(tau, 0.2, 0.28, correlation, 1)
    assert float(noisy_trust_factor(tau, 0.2, 0.28, correlation)) == pytest.approx(mean, abs=5 * error)


@pytest.mark.parametrize(("clip_low", "clip_high"), WIDTHS)
@pytest.mark.parametrize("correlation", [0.95, 0.5, 0.05])
@pytest.mark.parametrize("tau", [0.03, 0.3, 0.7, 2.5])
def test_noise_matches_quadrature(tau: float, correlation: float, clip_low: float, clip_high: float) -> None:
    low, high = (float(end) for end in clip_window(tau, clip_low, clip_high))
    s = np.sqrt(1 / correlation**2 - 1)

    def density(x: float) -> float:
        return float(np.exp(-x * x / 2) / np.sqrt(2 * np.pi))

    pieces = [
        (max(low, tau - 12), min(high, tau + 12), lambda z: z),
        (tau - 12, max(min(low, tau + 12), tau - 12), lambda z: z * ndtr(z / s) + s * density(z / s)),
        (min(max(high, tau - 12), tau + 12), tau + 12, lambda z: z * ndtr(-z / s) - s * density(z / s)),
    ]
    total = sum(
        quad(lambda z, kept=kept: kept(z) * density(z - tau), a, b, epsabs=1e-13, limit=200, points=_inside(a, b))[0]
        for a, b, kept in pieces
        if a < b
    )
    value = float(noisy_trust_factor(tau, clip_low, clip_high, correlation))
    assert value == pytest.approx(tau * total, abs=1e-10)


def _inside(a: float, b: float) -> list[float] | None:
    return [0.0] if a < 0 < b else None


def test_full_correlation_is_the_noiseless_limit() -> None:
    taus = np.array([0.05, 0.3, 1.0, 3.0])
    nearly = noisy_trust_factor(taus, 0.2, 0.2, 1 - 1e-9)
    assert nearly == pytest.approx(trust_factor(taus, 0.2, 0.2), abs=1e-4)
    assert (noisy_trust_factor(taus, 0.2, 0.2, 1.0) == trust_factor(taus, 0.2, 0.2)).all()


@pytest.mark.parametrize("r", [-0.7, 0.2, 0.95])
@pytest.mark.parametrize("edge", [-1.3, 0.0, 0.8])
def test_bivariate_orthants(edge: float, r: float) -> None:
    for shift in (-0.6, 0.0, 0.4, 1.5):
        value = float(_both_above(np.array(edge), np.array(shift), r))
        both = multivariate_normal([0, 0], [[1, r], [r, 1]]).cdf([-edge, shift])
        assert value == pytest.approx(float(both), abs=1e-6)


@settings(max_examples=200, deadline=None)
@given(st.floats(1e-3, 20), st.floats(0.01, 1), st.floats(0.01, 5))
def test_h_is_bounded_by_its_parts(tau: float, clip_low: float, clip_high: float) -> None:
    """Less clipping on the positive side adds, on the negative side subtracts; no clipping leaves tau^2."""
    value = float(trust_factor(tau, clip_low, clip_high))
    assert value <= tau**2 + 2
    assert float(trust_factor(tau, clip_low, clip_high * 1.5)) >= value - 1e-12
    assert float(trust_factor(tau, min(clip_low * 1.5, 1.0), clip_high)) <= value + 1e-12
    if np.log1p(clip_high) >= -np.log1p(-min(clip_low, 1 - 1e-9)):
        assert value > 0


def test_lower_width_matters_until_l_changes_sign() -> None:
    # L = 0 at tau = sqrt(-2 log(1 - eps_l)) = 0.668: beyond it L' = min(L, 0) = 0.
    edge = np.sqrt(-2 * np.log(0.8))
    assert edge == pytest.approx(0.668, abs=5e-4)
    assert float(trust_factor(edge * 1.01, 0.2, 0.2)) == float(trust_factor(edge * 1.01, 0.1, 0.2))
    assert float(trust_factor(edge * 0.9, 0.2, 0.2)) != float(trust_factor(edge * 0.9, 0.1, 0.2))


def test_small_tau_limit() -> None:
    assert float(trust_factor(0.0, 0.2, 0.2)) == 0
    assert float(trust_factor(0.01, 0.2, 0.2)) == pytest.approx(float(small_tau_limit(0.01)), rel=1e-12)
    assert float(trust_factor(0.1, 0.2, 0.2)) / 0.1**2 == pytest.approx(0.42, abs=5e-3)


@pytest.mark.parametrize(("clip_low", "clip_high"), WIDTHS)
def test_large_tau_limit(clip_low: float, clip_high: float) -> None:
    gaps = []
    for tau in (10.0, 20.0, 30.0):
        _, log_size = log_trust_factor(tau, clip_low, clip_high)
        gaps.append(float(np.log(large_tau_limit(tau, clip_high)) - log_size))
    assert 0 < gaps[2] < gaps[1] < gaps[0] < 0.1
    assert gaps[0] / gaps[1] == pytest.approx(4, rel=0.2)  # the next term is of order 1 / tau^2


def test_a_smaller_upper_width_can_turn_h_negative() -> None:
    assert float(trust_factor(0.17, 0.25, 0.2)) < 0
    sign, _ = log_trust_factor(np.array([0.05, 0.17, 1.0]), 0.25, 0.2)
    assert list(sign) == [1, -1, 1]


def gaussian_reference(sigma: float, clip_low: float, clip_high: float) -> float:
    with mpmath.workdps(40):
        s = mpmath.mpf(sigma)
        ends = [max(-mpmath.mpf(clip_low) / s, -30), 0, min(mpmath.mpf(clip_high) / s, 30)]
        return float(mpmath.quad(lambda z: (z / s + z * z) * mpmath.npdf(z), ends))


@pytest.mark.parametrize(("clip_low", "clip_high"), WIDTHS[:4])
@pytest.mark.parametrize("sigma", [0.01, 0.1, 0.39, 0.4, 0.41, 0.6, 1.0, 1e2, 1e6])
def test_gaussian_form(sigma: float, clip_low: float, clip_high: float) -> None:
    expected = gaussian_reference(sigma, clip_low, clip_high)
    assert float(gaussian_trust_factor(sigma, clip_low, clip_high)) == pytest.approx(expected, rel=1e-10)


def test_gaussian_form_matches_simulation_and_its_limits() -> None:
    rng, sigma = np.random.default_rng(2), 0.3
    excess = sigma * rng.standard_normal(400_000)
    value = (1 + excess) * excess * ((excess >= -0.2) & (excess <= 0.28))
    found = sigma**2 * float(gaussian_trust_factor(sigma, 0.2, 0.28))
    assert found == pytest.approx(float(value.mean()), abs=5 * float(value.std()) / np.sqrt(len(value)))
    assert float(gaussian_trust_factor(0.0, 0.2, 0.28)) == 1
    assert float(gaussian_trust_factor(0.01, 0.2, 0.28)) == pytest.approx(1, abs=1e-12)


def test_vectorised_and_broadcast() -> None:
    taus = np.array([[0.05, 1.0], [2.0, 90.0]])
    assert trust_factor(taus, 0.2, 0.2).shape == (2, 2)
    assert float(trust_factor(taus, 0.2, 0.2)[1, 0]) == float(trust_factor(2.0, 0.2, 0.2))
    value = expected_gradient(np.array([0.1, 0.9]), np.array([[0.1], [1.0], [5.0]]), 2.0, lognormal_factor(0.2, 0.2))
    assert value.shape == (3, 2)
    tau = float(log_ratio_sd(1.0 * 0.9))
    assert value[1, 0] == pytest.approx(0.9 * 2.0 * float(trust_factor(tau, 0.2, 0.2)))


def test_near_on_policy_scaling() -> None:
    """Eq. 42 and 46: E[G | pi] -> mu (1 - pi)^3 kappa^2 in both models."""
    probability = np.array([0.1, 0.5, 0.9])
    for factor in (lognormal_factor(0.2, 0.2), gaussian_factor(0.2, 0.2)):
        value = expected_gradient(probability, 1e-3, 3.0, factor)
        assert value == pytest.approx(3.0 * (1 - probability) ** 3 * 1e-6, rel=1e-5)


def test_log_ratio_sd() -> None:
    assert float(log_ratio_sd(0.0)) == 0
    assert float(log_ratio_sd(1e-9)) == pytest.approx(1e-9, rel=1e-12)
    assert float(log_ratio_sd(2.0)) == pytest.approx(np.sqrt(np.log(5)))
    assert float(log_ratio_sd(1e200)) == pytest.approx(np.sqrt(2 * np.log(1e200)))


@pytest.mark.parametrize(("low", "high"), [(0.0, 0.2), (1.1, 0.2), (0.2, 0.0), (float("nan"), 0.2)])
def test_clip_widths_out_of_range(low: float, high: float) -> None:
    for call in (trust_factor, gaussian_trust_factor):
        with pytest.raises(ValueError, match="clip_low"):
            call(0.3, low, high)


@pytest.mark.parametrize("correlation", [0.0, -0.5, 1.5, float("nan")])
def test_correlation_out_of_range(correlation: float) -> None:
    with pytest.raises(ValueError, match="correlation"):
        noisy_trust_factor(0.3, 0.2, 0.2, correlation)
