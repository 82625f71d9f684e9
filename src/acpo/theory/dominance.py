"""Which tokens dominate: the difference D between two probability groups and where it changes sign (Cor. 2.3)."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq, minimize_scalar

from acpo.theory.expected_gradient import Factor, expected_gradient

Array = NDArray[np.float64]
Coupling = Callable[[Array], Array]
"""mu(pi) >= 0, the slope of the advantage in the log-ratio (App. C.2, M2)."""


@dataclass(frozen=True)
class Group:
    """Token probabilities of one group with their shares, which sum to 1."""

    probability: Array
    weight: Array

    @classmethod
    def point(cls, probability: float) -> "Group":
        """Put all tokens of the group at one probability."""
        return cls(np.array([probability]), np.array([1.0]))

    @classmethod
    def uniform(cls, low: float, high: float, nodes: int) -> "Group":
        """Spread the tokens evenly over an interval, as the nodes of a Gauss-Legendre rule."""
        x, w = np.polynomial.legendre.leggauss(nodes)
        return cls((low + high) / 2 + (high - low) / 2 * x, w / 2)

    def mean(self, values: ArrayLike) -> Array:
        """Average over the group; its tokens are the last axis of `values`."""
        return np.asarray(values) @ self.weight


@dataclass(frozen=True)
class Population:
    """The low-probability group I_L and the high-probability group I_H of Cor. 2.3."""

    low: Group
    high: Group


def power_coupling(exponent: ArrayLike) -> Coupling:
    """Return mu(pi) = (1 - pi)^-exponent; constant at exponent 0, the paper's representative choice (App. C.2.7).

    Several exponents at once broadcast: as an array (n, 1, 1) they give group averages of shape (n, kappas).
    """
    return lambda probability: (1 - probability) ** -np.asarray(exponent, dtype=float)


def group_gradients(
    kappa: ArrayLike, population: Population, coupling: Coupling, factor: Factor
) -> tuple[Array, Array]:
    """Return the group averages of E[G | pi] (Eq. 48, 49), each of the shape of `kappa`."""
    scale = np.asarray(kappa, dtype=float)[..., None]
    low, high = (
        group.mean(expected_gradient(group.probability, scale, coupling(group.probability), factor))
        for group in (population.low, population.high)
    )
    return low, high


def dominance(kappa: ArrayLike, population: Population, coupling: Coupling, factor: Factor) -> Array:
    """Return D(kappa), the low group's average minus the high group's (Eq. 51)."""
    low, high = group_gradients(kappa, population, coupling, factor)
    return low - high


def small_step_constant(population: Population, coupling: Coupling) -> float:
    """Return lim D / kappa^2 as kappa -> 0: E[mu (1 - pi)^3 | I_L] - E[mu (1 - pi)^3 | I_H] (Eq. 54)."""
    low, high = (
        group.mean(coupling(group.probability) * (1 - group.probability) ** 3)
        for group in (population.low, population.high)
    )
    return float(low - high)


def off_policy_degree(kappa: ArrayLike, population: Group) -> Array:
    """Return the mean ratio variance over a population, kappa^2 E[(1 - pi)^2] (Eq. 6, 50)."""
    return np.square(kappa) * population.mean((1 - population.probability) ** 2)


def reversals(difference: Callable[[Array], Array], low: float, high: float, points: int) -> list[float]:
    """Find where a function of kappa changes sign; the empty list says that it does not.

    Only changes that a logarithmic grid sees are found: two crossings between neighbours are missed, and the values
    outside [low, high] are not looked at.

    Args:
        difference: From kappa, any shape, to D.
        low: Smallest kappa.
        high: Largest kappa.
        points: Size of the grid.

    Returns:
        The crossings in ascending order, to a relative precision of 1e-10.

    Raises:
        ValueError: the range is empty, or D is not a number somewhere on the grid.
    """
    if not 0 < low < high or points < 2:
        raise ValueError(f"expected 0 < low < high and 2 points, got {low}, {high} and {points}")
    grid = np.log(np.geomspace(low, high, points))
    values = difference(np.exp(grid))
    if not np.isfinite(values).all():
        raise ValueError(f"D is not finite at kappa = {np.exp(grid[~np.isfinite(values)][0]):g}")
    (kept,) = np.nonzero(values)
    return [
        float(np.exp(brentq(lambda x: float(difference(np.exp(np.array([x])))[0]), grid[i], grid[j], xtol=1e-11)))
        for i, j in pairwise(kept)
        if values[i] * values[j] < 0
    ]


def smallest_log_slope(factor: Factor, low: float, high: float, points: int) -> tuple[float, float]:
    """Return the smallest slope of log(sigma factor(sigma)) in log sigma, and the sigma where it is.

    With mu = (1 - pi)^-m and sigma = kappa (1 - pi), E[G | pi] is proportional to sigma^-m times sigma factor(sigma).
    While m is below this slope it rises with sigma, so the low-probability group leads at every kappa, for every
    density of tokens and every pair of groups: there is no reversal.

    Raises:
        ValueError: the factor is not positive on the whole range, so that there is no logarithm.
    """
    step = 1e-4

    def slope(x: Array) -> Array:
        ends = factor(np.exp(np.stack([x - step, x + step])))
        if not (ends > 0).all():
            raise ValueError("the factor is not positive on the whole range")
        return 1 + np.diff(np.log(ends), axis=0)[0] / (2 * step)

    grid = np.log(np.geomspace(low, high, points))
    at = int(slope(grid).argmin())
    bounds = (grid[max(at - 1, 0)], grid[min(at + 1, points - 1)])
    best = minimize_scalar(lambda x: float(slope(np.array([x]))[0]), bounds=bounds, method="bounded")
    return float(best.fun), float(np.exp(best.x))


def turning_points(function: Callable[[Array], Array], low: float, high: float, points: int) -> list[tuple[float, str]]:
    """List the local extrema of a function as (place, "maximum" or "minimum"), found on a logarithmic grid."""
    grid = np.geomspace(low, high, points)
    rises = np.sign(np.diff(function(grid)))
    found = []
    for i in np.nonzero(rises[:-1] * rises[1:] < 0)[0]:
        side = float(rises[i])
        best = minimize_scalar(
            lambda x, side=side: -side * float(function(np.array([x]))[0]),
            bounds=(grid[i], grid[i + 2]),
            method="bounded",
            options={"xatol": 1e-9},
        )
        found.append((float(best.x), "maximum" if side > 0 else "minimum"))
    return found
