"""Lemma 2.1: Eq. 14-16 against finite differences, Eq. 19-25 against simulated updates of a softmax."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax as scipy_softmax

from acpo.theory import softmax

VOCABULARIES = st.sampled_from([2, 3, 10, 200])


def policy(seed: int, vocabulary: int, shape: float) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.full(vocabulary, shape)) + 1e-12


@pytest.mark.parametrize("temperature", [0.7, 1.0, 2.0])
def test_jacobian_matches_finite_differences(temperature: float) -> None:
    logits = np.random.default_rng(0).normal(size=7)
    jacobian = softmax.softmax_jacobian(scipy_softmax(logits / temperature), temperature)
    step = 1e-6
    for j in range(7):
        moved = [scipy_softmax((logits + sign * step * np.eye(7)[j]) / temperature) for sign in (1, -1)]
        assert jacobian[:, j] == pytest.approx((moved[0] - moved[1]) / (2 * step), abs=1e-9)


def test_jacobian_by_hand() -> None:
    # Eq. 14 with pi = (0.2, 0.3, 0.5), T = 2
    jacobian = softmax.softmax_jacobian([0.2, 0.3, 0.5], 2.0)
    assert jacobian[0, 0] == pytest.approx(0.2 * 0.8 / 2)
    assert jacobian[0, 2] == pytest.approx(-0.2 * 0.5 / 2)
    assert jacobian.sum(axis=0) == pytest.approx(0, abs=1e-15)


def test_first_order_ratio_is_eq_15_over_pi() -> None:
    p, shift = np.array([0.2, 0.3, 0.5]), np.array([0.01, -0.02, 0.03])
    change = softmax.softmax_jacobian(p, 1.0) @ shift
    assert softmax.first_order_ratio(p, shift, 1.0) - 1 == pytest.approx(change / p)
    by_hand = 1 + (0.8 * 0.01 - (0.3 * -0.02 + 0.5 * 0.03))
    assert softmax.first_order_ratio(p, shift, 1.0)[0] == pytest.approx(by_hand)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), VOCABULARIES, st.sampled_from([0.1, 1.0, 30.0]), st.sampled_from([0.5, 1.0, 2.0]))
def test_the_exact_ratio_has_that_slope_and_a_second_order_remainder(seed, vocabulary, shape, temperature) -> None:
    p = policy(seed, vocabulary, shape)
    shift = np.random.default_rng(seed + 1).normal(size=vocabulary)
    errors = []
    for step in (1e-2, 1e-3):
        exact = softmax.exact_ratio(np.log(p) * temperature, step * shift, temperature)
        errors.append(np.abs(exact - softmax.first_order_ratio(p, step * shift, temperature)).max())
    assert errors[0] < 1e-2
    assert errors[1] < errors[0] / 50 + 1e-12  # a tenth of the step: a hundredth of the remainder


def test_exact_ratio_keeps_the_mean_at_one() -> None:
    p = policy(3, 50, 0.3)
    shift = np.random.default_rng(4).normal(size=(20, 50))
    ratio = softmax.exact_ratio(np.log(p), shift, 1.0)
    assert (p * ratio).sum(axis=-1) == pytest.approx(p.sum() * np.ones(20), abs=1e-9)


def test_shape_factor_by_hand_and_at_its_ends() -> None:
    assert softmax.shape_factor([0.2, 0.3, 0.5])[0] == pytest.approx((0.3**2 + 0.5**2) / 0.8**2)
    assert softmax.shape_factor([0.4, 0.2, 0.2, 0.2])[0] == pytest.approx(1 / 3)  # 1 / (V - 1)
    assert softmax.shape_factor([0.4, 0.6, 0.0])[0] == pytest.approx(1)
    assert np.isnan(softmax.shape_factor([1.0, 0.0])[0])


def test_a_nearly_certain_token_keeps_its_digits() -> None:
    tiny = 1e-13
    p = np.array([1 - 3 * tiny, 2 * tiny, tiny])
    assert softmax.rest_mass(p)[0] == pytest.approx(3 * tiny, rel=1e-12)
    assert softmax.shape_factor(p)[0] == pytest.approx(5 / 9, rel=1e-12)
    assert softmax.ratio_variance(p, 1.0)[0] == pytest.approx(14 * tiny**2, rel=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), VOCABULARIES, st.sampled_from([0.05, 1.0, 50.0]))
def test_the_variance_factorises_and_stays_in_the_sharp_band(seed, vocabulary, shape) -> None:
    p = policy(seed, vocabulary, shape)
    p /= p.sum()
    factor, variance = softmax.shape_factor(p), softmax.ratio_variance(p, 0.3)
    inside = (factor >= 1 / (vocabulary - 1) - 1e-9) & (factor <= 1 + 1e-9)
    assert inside[np.isfinite(factor)].all()
    known = np.isfinite(factor)
    expected = 0.3**2 * softmax.rest_mass(p) ** 2 * (1 + factor)  # Eq. 21
    assert variance[known] == pytest.approx(expected[known], rel=1e-9)
    for mean_shape in (1 / (vocabulary - 1), 1.0):
        kappa = softmax.effective_scale(0.3, mean_shape)
        sharp = softmax.sharp_band(p, kappa, mean_shape)
        published = softmax.published_band(p, kappa)
        slack = 1 + 1e-6
        assert (sharp[0] <= variance * slack + 1e-12).all()
        assert (variance <= sharp[1] * slack + 1e-12).all()
        assert (published[0] <= sharp[0] * slack).all()
        assert (sharp[1] <= published[1] * slack).all()


@pytest.mark.parametrize("vocabulary", [2, 10, 100])
@pytest.mark.parametrize("shape", [0.2, 1.0, 20.0])
def test_lemma_2_1_by_simulation(vocabulary: int, shape: float) -> None:
    rng, noise, draws = np.random.default_rng([vocabulary, int(shape * 10)]), 0.02, 20_000
    p = policy(vocabulary, vocabulary, shape)
    p /= p.sum()
    ratio = softmax.exact_ratio(np.log(p), noise * rng.standard_normal((draws, vocabulary)), 1.0)
    squares = (ratio - ratio.mean(axis=0)) ** 2
    error = squares.std(axis=0) / np.sqrt(draws)
    predicted = softmax.ratio_variance(p, noise)
    assert (np.abs(squares.mean(axis=0) - predicted) < 5 * error + 10 * noise**4).all()


def test_the_mean_ratio_is_one_only_to_first_order() -> None:
    p, noise, draws = np.array([0.1, 0.9, 0.0]) + 1e-300, 0.2, 400_000
    half = noise * np.random.default_rng(5).standard_normal((draws // 2, 3))
    ratio = softmax.exact_ratio(np.log(p), np.concatenate([half, -half]), 1.0)[:, :2]
    pairs = ratio.reshape(2, -1, 2).mean(axis=0)
    error = pairs.std(axis=0) / np.sqrt(len(pairs))
    # (sigma_y/T)^2 (1 - pi)[(1 - pi) S - pi] with S = 1: 0.04 * 0.9 * 0.8 and 0.04 * 0.1 * -0.8
    assert softmax.mean_ratio_excess(p, noise)[:2] == pytest.approx([0.0288, -0.0032], abs=1e-12)
    assert pairs.mean(axis=0) - 1 == pytest.approx([0.0288, -0.0032], abs=float(5 * error.max()) + 1e-3)
    assert (np.abs(pairs.mean(axis=0) - 1) > 5 * error).all()


def test_shape_varies_at_the_order_of_kappa_squared() -> None:
    flat, single = np.array([0.1, 0.3, 0.3, 0.3]), np.array([0.1, 0.9, 0.0, 0.0])
    ratios = [softmax.ratio_variance(p, 1e-4)[0] / softmax.model_variance(0.1, 1e-4) for p in (flat, single)]
    assert ratios == pytest.approx([4 / 3, 2.0])
