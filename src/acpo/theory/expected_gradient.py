"""The conditional gradient expectation E[G | pi] (Prop. 2.2, App. C.2): closed forms and their limits.

Under (M1)-(M3) E[G | pi] = (1 - pi) mu(pi) H(tau). `clip_low` and `clip_high` are eps_l in (0, 1] and eps_h > 0;
`sigma` is the standard deviation of the ratio given pi, `tau` that of its logarithm.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfcx, ndtr, owens_t

Array = NDArray[np.float64]
Factor = Callable[[Array], Array]
"""From sigma to E[G | pi] / ((1 - pi) mu(pi)): H(tau(sigma)) for a log-normal ratio, sigma^2 H~ for a Gaussian one."""

_ROOT_2PI = np.sqrt(2 * np.pi)
_LARGE_TAU = 1.0
_SERIES_LIMIT, _SERIES_TERMS = 0.5, 14


def log_ratio_sd(sigma: ArrayLike) -> Array:
    """Return tau = sqrt(log(1 + sigma^2)), also where sigma^2 would overflow (App. C.2, M1)."""
    with np.errstate(divide="ignore"):
        return np.sqrt(np.logaddexp(0.0, 2 * np.log(np.asarray(sigma, dtype=float))))


def clip_window(tau: ArrayLike, clip_low: float, clip_high: float) -> tuple[Array, Array]:
    """Return the standardised ends L and U of the clip window (Eq. 8); tau > 0.

    Raises:
        ValueError: a clip width is out of range.
    """
    if not (0 < clip_low <= 1 and clip_high > 0):
        raise ValueError(f"expected 0 < clip_low <= 1 and clip_high > 0, got {clip_low} and {clip_high}")
    t = np.asarray(tau, dtype=float)
    with np.errstate(divide="ignore"):
        return np.log1p(-clip_low) / t + t / 2, np.log1p(clip_high) / t + t / 2


def trust_factor(tau: ArrayLike, clip_low: float, clip_high: float) -> Array:
    """Return H(tau) (Eq. 10, 39); 0 at tau = 0, where it is tau^2 up to terms smaller than any power."""
    sign, log_size = log_trust_factor(tau, clip_low, clip_high)
    return sign * np.exp(log_size)


def log_trust_factor(tau: ArrayLike, clip_low: float, clip_high: float) -> tuple[Array, Array]:
    """Return the sign of H(tau) and log |H(tau)|, also where H underflows.

    Below tau = 1 the closed form is used as published. Above, the density at U is taken out of it: what remains holds
    quotients Phi / phi, which stay of order 1 where both vanish.
    """
    t = np.asarray(tau, dtype=float)
    value = np.zeros_like(t)
    log_scale = np.zeros_like(t)
    small, large = (t > 0) & (t <= _LARGE_TAU), t > _LARGE_TAU
    for where, branch in ((small, _published_form), (large, _scaled_form)):
        if where.any():
            value[where], log_scale[where] = branch(t[where], clip_low, clip_high)
    with np.errstate(divide="ignore"):
        return np.sign(value), np.log(np.abs(value)) + log_scale


def _published_form(t: Array, clip_low: float, clip_high: float) -> tuple[Array, Array]:
    low, high = clip_window(t, clip_low, clip_high)
    a, b = np.minimum(low, 0) - t, high - t
    return t * (_density(a) - _density(b) + t * (ndtr(b) - ndtr(a))), np.zeros_like(t)


def _scaled_form(t: Array, clip_low: float, clip_high: float) -> tuple[Array, Array]:
    low, high = clip_window(t, clip_low, clip_high)
    a, b = np.minimum(low, 0) - t, high - t
    lower_end = np.where(np.isneginf(a), 0.0, np.exp((b - a) * (b + a) / 2) * (1 - t * _mills(a)))
    return t * (t * _mills(b) - 1 + lower_end) / _ROOT_2PI, -(b**2) / 2


def noisy_trust_factor(tau: ArrayLike, clip_low: float, clip_high: float, correlation: float) -> Array:
    """Return E[rho A 1_trust] / mu with coupling noise: A = mu u + eta, eta normal, corr(A, u) = `correlation`.

    The paper leaves this extension open (App. C.2.8). The sign of A then differs from that of u now and then; where
    the ratio is out of the window only one sign of A is kept, so E[G | pi] also holds truncated moments of A given u.
    They reduce to bivariate normal probabilities, here through Owen's T. At correlation 1 it is `trust_factor`.

    Args:
        tau: > 0.
        clip_low: eps_l.
        clip_high: eps_h.
        correlation: In (0, 1]; the same for every tau, so the noise grows with the signal.

    Raises:
        ValueError: the correlation or a clip width is out of range.
    """
    if not 0 < correlation <= 1:
        raise ValueError(f"expected a correlation in (0, 1], got {correlation}")
    if correlation == 1:
        return trust_factor(tau, clip_low, clip_high)
    t, r = np.asarray(tau, dtype=float), correlation
    low, high = clip_window(t, clip_low, clip_high)
    v, s = 1 - r**2, np.sqrt(1 - r**2) / r
    below = -_density(low - t) + t * ndtr(low - t)
    noise = _density(t * r) / r
    # A+ below the window is kept, A+ above it is lost: E[A+ | u] in units of mu tau, over the tilted density.
    kept = (
        t * _both_above(t - low, t * r, -r)
        - _density(low - t) * ndtr(low / s)
        + noise * ndtr((low - t * v) / np.sqrt(v))
    )
    lost = (
        t * _both_above(high - t, t * r, r)
        + _density(high - t) * ndtr(high / s)
        + noise * ndtr((t * v - high) / np.sqrt(v))
    )
    return t * (t - below + kept - lost)


def _both_above(edge: Array, shift: Array, r: float) -> Array:
    """Return P(X > edge, Y > -shift) of standard normal X, Y with correlation r."""
    h, k = -edge, shift
    root = np.sqrt(1 - r**2)
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = owens_t(h, (k / h - r) / root) + owens_t(k, (h / k - r) / root)
    opposite = (h * k < 0) | ((h * k == 0) & (h + k < 0))
    # At h = 0 the first T has an infinite second argument: it is a quarter with the sign of k.
    parts = np.where(h == 0, np.where(k < 0, -0.25, 0.25) + owens_t(k, -r / root), parts)
    return (ndtr(h) + ndtr(k)) / 2 - parts - opposite / 2


def gaussian_trust_factor(sigma: ArrayLike, clip_low: float, clip_high: float) -> Array:
    """Return H~(sigma) of the Gaussian ratio model (Eq. 45); E[G | pi] = (1 - pi) mu sigma^2 H~ (Eq. 44).

    Where the window is short in units of sigma the closed form cancels to third order, and its series is summed.
    """
    clip_window(1.0, clip_low, clip_high)
    s = np.asarray(sigma, dtype=float)
    with np.errstate(divide="ignore"):
        a, b = -clip_low / s, clip_high / s
    with np.errstate(invalid="ignore"):
        closed = ndtr(b) - ndtr(a) + np.nan_to_num(a * _density(a)) - np.nan_to_num(b * _density(b))
        closed += np.nan_to_num((_density(a) - _density(b)) / s)
    short = np.maximum(-a, b) < _SERIES_LIMIT
    a, b = np.where(short, a, 0.0), np.where(short, b, 0.0)
    series, coefficient = np.zeros_like(s), 1 / _ROOT_2PI
    for n in range(_SERIES_TERMS):
        even, odd = 2 * n + 2, 2 * n + 3
        series = series + coefficient * (
            (b**even - a**even) / (even * np.where(short, s, 1.0)) + (b**odd - a**odd) / odd
        )
        coefficient /= -2 * (n + 1)
    return np.where(short, series, closed)


def lognormal_factor(clip_low: float, clip_high: float, correlation: float = 1.0) -> Factor:
    """Return sigma -> H(tau(sigma)), with coupling noise where `correlation` is below 1."""
    return lambda sigma: noisy_trust_factor(log_ratio_sd(sigma), clip_low, clip_high, correlation)


def gaussian_factor(clip_low: float, clip_high: float) -> Factor:
    """Return sigma -> sigma^2 H~(sigma), what stands for H in the Gaussian ratio model (Eq. 44)."""
    return lambda sigma: sigma**2 * gaussian_trust_factor(sigma, clip_low, clip_high)


def expected_gradient(probability: ArrayLike, kappa: ArrayLike, coupling: ArrayLike, factor: Factor) -> Array:
    """Return E[G | pi] = (1 - pi) mu(pi) factor(sigma) with sigma = kappa (1 - pi) (Prop. 2.2 with Lemma 2.1).

    Args:
        probability: pi in [0, 1).
        kappa: Off-policy scale > 0, broadcast against `probability`.
        coupling: mu(pi), broadcast likewise.
        factor: From `lognormal_factor` or `gaussian_factor`.
    """
    rest = 1 - np.asarray(probability, dtype=float)
    return rest * np.asarray(coupling) * factor(np.asarray(kappa) * rest)


def small_tau_limit(tau: ArrayLike) -> Array:
    """Return tau^2, the near on-policy limit of H (Eq. 41)."""
    return np.asarray(tau, dtype=float) ** 2


def large_tau_limit(tau: ArrayLike, clip_high: float) -> Array:
    """Return sqrt(1 + eps_h) tau exp(-tau^2 / 8) / sqrt(2 pi), which H approaches far off-policy.

    From Phi(b) / phi(b) -> 1 / |b| at b = U - tau -> -tau / 2. As exp(tau^2) = 1 + sigma^2 it falls like
    (1 + sigma^2)^(-1/8): the polynomial suppression of App. C.2.6, with its exponent.
    """
    t = np.asarray(tau, dtype=float)
    return np.sqrt(1 + clip_high) * t * np.exp(-(t**2) / 8) / _ROOT_2PI


def _density(z: ArrayLike) -> Array:
    return np.exp(-np.square(z) / 2) / _ROOT_2PI


def _mills(z: Array) -> Array:
    """Return Phi(z) / phi(z)."""
    return np.sqrt(np.pi / 2) * erfcx(-z / np.sqrt(2))
