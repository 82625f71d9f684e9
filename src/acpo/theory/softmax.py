"""The softmax model of the importance ratio: how far one update moves a token's probability (Lemma 2.1, App. C.1).

A distribution is an array whose last axis runs over the vocabulary. `noise` is sigma_y / T, the standard deviation of
the logit perturbation over the temperature: the two enter every formula only as this quotient.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax, logsumexp

Array = NDArray[np.float64]


def softmax_jacobian(probabilities: ArrayLike, temperature: float) -> Array:
    """Return d pi_k / d y_j (Eq. 14).

    Args:
        probabilities: (vocabulary,) one distribution.
        temperature: T.

    Returns:
        (vocabulary, vocabulary) with rows k and columns j.
    """
    p = np.asarray(probabilities, dtype=float)
    return (np.diag(p) - np.outer(p, p)) / temperature


def exact_ratio(logits: ArrayLike, shift: ArrayLike, temperature: float) -> Array:
    """Return rho_k = pi'_k / pi_k of every token after the logits moved by `shift` (..., vocabulary)."""
    y, dy = np.asarray(logits, dtype=float), np.asarray(shift, dtype=float)
    # log pi' - log pi as the shift minus the log of the mean shift: small shifts lose no digits to the logits.
    scaled = dy / temperature
    return np.exp(scaled - logsumexp(scaled + log_softmax(y / temperature, axis=-1), axis=-1, keepdims=True))


def first_order_ratio(probabilities: ArrayLike, shift: ArrayLike, temperature: float) -> Array:
    """Return rho_k to first order in the logit shift (Eq. 16); minus 1 and times pi_k it is Eq. 15.

    (1 - pi_k) dy_k minus the sum over the others of pi_j dy_j is dy_k minus the mean shift.
    """
    p, dy = np.asarray(probabilities, dtype=float), np.asarray(shift, dtype=float)
    return 1 + (dy - (p * dy).sum(axis=-1, keepdims=True)) / temperature


def rest_mass(probabilities: ArrayLike) -> Array:
    """Return 1 - pi_k of every token, summed from the others where that keeps more digits."""
    p = np.asarray(probabilities, dtype=float)
    return _without_largest(p, 1 - p, p)


def rest_squares(probabilities: ArrayLike) -> Array:
    """Return the sum over j != k of pi_j^2 for every token k (Eq. 19)."""
    p = np.asarray(probabilities, dtype=float)
    return _without_largest(p, (p**2).sum(axis=-1, keepdims=True) - p**2, p**2)


def _without_largest(p: Array, by_difference: Array, terms: Array) -> Array:
    """Replace a difference that cancels for the most probable token by the sum over all others."""
    largest = p.argmax(axis=-1)[..., None]
    others = terms.copy()
    np.put_along_axis(others, largest, 0.0, axis=-1)
    exact = np.array(by_difference)
    np.put_along_axis(exact, largest, others.sum(axis=-1, keepdims=True), axis=-1)
    return exact


def shape_factor(probabilities: ArrayLike) -> Array:
    """Return S of every token, the sum of squares of the others' shares, within [1/(V-1), 1] (Eq. 20).

    NaN for a token that has all the probability: nothing is left to have a shape.
    """
    rest = rest_mass(probabilities)
    squares = rest_squares(probabilities)
    return np.divide(squares, rest**2, out=np.full_like(rest, np.nan), where=rest > 0)


def ratio_variance(probabilities: ArrayLike, noise: float) -> Array:
    """Return Var(rho_k | pi) to leading order: noise^2 [(1 - pi_k)^2 + sum of the others' squares] (Eq. 19, 21)."""
    return noise**2 * (rest_mass(probabilities) ** 2 + rest_squares(probabilities))


def mean_ratio_excess(probabilities: ArrayLike, noise: float) -> Array:
    """Return E[rho_k | pi] - 1 to second order: (sigma_y/T)^2 (1 - pi)[(1 - pi) S - pi].

    The expansion of the ratio for independent logit shifts of equal variance gives the sum of all squares minus pi_k.
    Model (M1) of App. C.2 sets it to 0.
    """
    p = np.asarray(probabilities, dtype=float)
    return noise**2 * (rest_squares(p) - p * rest_mass(p))


def effective_scale(noise: float, mean_shape: float) -> float:
    """Return kappa = (sigma_y/T) sqrt(1 + mean S) (Eq. 24)."""
    return float(noise * np.sqrt(1 + mean_shape))


def model_variance(probability: ArrayLike, kappa: ArrayLike) -> Array:
    """Return kappa^2 (1 - pi)^2, the leading term of Lemma 2.1 (Eq. 7, 26)."""
    return (np.asarray(kappa) * (1 - np.asarray(probability, dtype=float))) ** 2


def published_band(probability: ArrayLike, kappa: float) -> tuple[Array, Array]:
    """Return the outer bounds of Eq. 25: 1/2 and 2 times kappa^2 (1 - pi)^2."""
    middle = model_variance(probability, kappa)
    return middle / 2, middle * 2


def sharp_band(probability: ArrayLike, kappa: float, mean_shape: float) -> tuple[Array, Array]:
    """Return the inner bounds of Eq. 25 in terms of kappa: [1, 2] / (1 + mean S) times kappa^2 (1 - pi)^2.

    Its ends are a factor 2 apart, those of `published_band` a factor 4.
    """
    middle = model_variance(probability, kappa) / (1 + mean_shape)
    return middle, middle * 2
