"""The exponent with which Var(rho) falls towards certain tokens (Lemma 2.1, Fig. 4), and the band of Eq. 25."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import curve_fit
from scipy.special import logsumexp

from acpo.probes.records import Estimate, ExponentFit, FitBin
from acpo.probes.token_store import bin_numbers
from acpo.theory.entropy import entropy_bounds
from acpo.theory.softmax import sharp_band

Array = NDArray[np.float64]
BINS = 20  # App. C.1.3
MIN_TOKENS = 30
MIN_BINS = 4
EXPONENTS = (1e-2, 20.0)
SHAPE_DISTANCE = 1e-3
"""Closer to certainty than this, a stored entropy has too few digits to say how the rest is spread."""

_NO_LAW = Estimate(value=None, note=f"no exponent between {EXPONENTS[0]:g} and {EXPONENTS[1]:g} fits best")


@dataclass(frozen=True)
class PowerLaw:
    """Var(rho) = coefficient (1 - pi)^exponent, fitted in logarithms."""

    exponent: float
    coefficient: float
    standard_error: float
    r_squared: float

    def predict(self, distances: Sequence[Array]) -> Array:
        """Return the variance of each bin, the mean of the law over its tokens' 1 - pi."""
        return self.coefficient * np.array([np.mean(distance**self.exponent) for distance in distances])

    @property
    def estimate(self) -> Estimate:
        """The exponent with 1.96 standard errors to either side."""
        half = 1.96 * self.standard_error
        return Estimate(value=self.exponent, low=self.exponent - half, high=self.exponent + half)


@dataclass(frozen=True)
class BinTokens:
    """The tokens of one probability bin: their 1 - pi and their ratio."""

    number: int
    distance: Array
    ratio: Array

    @property
    def centre(self) -> float:
        """1 - pi in the middle of the bin."""
        return 1 - (self.number + 0.5) / BINS

    @property
    def note(self) -> str:
        """Why the fit cannot use this bin; empty where it can."""
        if len(self.ratio) < MIN_TOKENS:
            return f"not enough data: {len(self.ratio)} tokens, the fit needs {MIN_TOKENS}"
        if not self.distance.max() > 0:
            return "all its tokens are certain"
        return "" if self.ratio.var() > 0 else "the ratio does not vary"


def fit_exponent(tokens: pd.DataFrame) -> ExponentFit:
    """Fit log Var(rho) = log c + exponent log(1 - pi) over `BINS` equal-width bins, weighted by tokens.

    A bin near pi = 1 spans orders of magnitude of 1 - pi, and under a power law its variance is c times the mean of
    (1 - pi)^exponent over its tokens. That mean is what is fitted, so the spread within a bin tilts nothing;
    `exponent_at_centres` is the plain fit beside it, which puts every token of a bin at its centre.

    Args:
        tokens: From `read_tokens`.
    """
    binned = _bin_tokens(tokens)
    used = [each for each in binned if not each.note]
    if len(used) < MIN_BINS:
        return _not_enough(binned, len(used))
    weight = np.array([len(each.ratio) for each in used], dtype=float)
    variance = np.array([each.ratio.var() for each in used])
    inside = [each.distance for each in used]
    law = fit_power_law(inside, variance, weight)
    centres = fit_power_law([np.array([each.centre]) for each in used], variance, weight)
    squares = np.array([np.mean(distance**2) for distance in inside])
    # Eq. 50: the mean variance over tokens is kappa^2 times the mean of (1 - pi)^2.
    kappa_squared = float((weight * variance).sum() / (weight * squares).sum())
    shape = mean_shape(tokens)
    band = None if shape is None else _band(shape)
    scaled = variance / squares
    return ExponentFit(
        bins=[_record(each, law) for each in binned],
        exponent=law.estimate if law else _NO_LAW,
        standard_error=law.standard_error if law else None,
        coefficient=law.coefficient if law else None,
        r_squared=law.r_squared if law else None,
        exponent_at_centres=centres.estimate if centres else _NO_LAW,
        kappa_squared=kappa_squared,
        mean_shape=shape,
        band=band,
        spread=float(scaled.max() / scaled.min()),
        bins_in_band=None if band is None else _count_inside(scaled / kappa_squared, band),
    )


def fit_power_law(distances: Sequence[Array], variance: Array, weight: Array) -> PowerLaw | None:
    """Fit log variance = log c + log mean(distance^exponent) by weighted least squares.

    Args:
        distances: For each bin, 1 - pi of its tokens.
        variance: (bins,) of the ratio.
        weight: (bins,) number of tokens.

    Returns:
        The law, or None where the best exponent is not inside `EXPONENTS`. The standard error comes from the
        residuals; R^2 is weighted, in logarithms.
    """
    with np.errstate(divide="ignore"):
        logs = [np.log(distance) for distance in distances]

    def predicted(_: object, log_coefficient: float, exponent: float) -> Array:
        means = [logsumexp(exponent * log) - np.log(len(log)) for log in logs]
        return log_coefficient + np.array(means)

    observed = np.log(variance)
    found, covariance = curve_fit(
        predicted, np.arange(len(logs)), observed, p0=(observed.max(), 2.0), sigma=1 / np.sqrt(weight),
        bounds=([-np.inf, EXPONENTS[0]], [np.inf, EXPONENTS[1]]),
    )  # fmt: skip
    log_coefficient, exponent = float(found[0]), float(found[1])
    if not EXPONENTS[0] * 1.01 < exponent < EXPONENTS[1] * 0.99:
        return None
    residual = observed - predicted(None, log_coefficient, exponent)
    total = observed - np.average(observed, weights=weight)
    explained = 1 - float((weight * residual**2).sum() / (weight * total**2).sum())
    return PowerLaw(exponent, float(np.exp(log_coefficient)), float(np.sqrt(covariance[1, 1])), explained)


def _band(shape: float) -> tuple[float, float]:
    low, high = sharp_band(0.0, 1.0, shape)
    return float(low), float(high)


def _count_inside(values: Array, band: tuple[float, float]) -> int:
    return int(((values >= band[0]) & (values <= band[1])).sum())


def _bin_tokens(tokens: pd.DataFrame) -> list[BinTokens]:
    number = bin_numbers(tokens["probability"], BINS)
    distance, ratio = tokens["distance"].to_numpy(), tokens["ratio"].to_numpy()
    return [BinTokens(b, distance[number == b], ratio[number == b]) for b in range(BINS)]


def _record(part: BinTokens, law: PowerLaw | None) -> FitBin:
    used = not part.note
    return FitBin(
        low=part.number / BINS,
        high=(part.number + 1) / BINS,
        tokens=len(part.ratio),
        variance=float(part.ratio.var()) if len(part.ratio) > 1 else None,
        distance=float(np.sqrt(np.mean(part.distance**2))) if used else None,
        fitted=float(law.predict([part.distance])[0]) if used and law else None,
        used=used,
        note=part.note,
    )


def _not_enough(binned: list[BinTokens], usable: int) -> ExponentFit:
    missing = Estimate(value=None, note=f"not enough data: {usable} usable bins, the fit needs {MIN_BINS}")
    return ExponentFit(
        bins=[_record(each, None) for each in binned], exponent=missing, standard_error=None, coefficient=None,
        r_squared=None, exponent_at_centres=missing, kappa_squared=None, mean_shape=None, band=None, spread=None,
        bins_in_band=None,
    )  # fmt: skip


def mean_shape(tokens: pd.DataFrame) -> float | None:
    """Return a lower bound of the mean of S (Eq. 20, 24), which a token store does not hold.

    With entropy H and the sampled token's probability pi, the others' shares have the Shannon entropy
    (H - h(pi)) / (1 - pi), and their sum of squares is at least exp of minus it (Renyi entropies fall with the order).
    """
    part = tokens[tokens["current"] < 1 - SHAPE_DISTANCE]
    if len(part) < MIN_TOKENS:
        return None
    own, _ = entropy_bounds(part["current"].to_numpy(), None)
    rest = (part["entropy"].to_numpy() - own) / (1 - part["current"].to_numpy())
    return float(np.exp(-np.maximum(rest, 0)).mean())
