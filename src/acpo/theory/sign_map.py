"""Where low- and where high-probability tokens dominate: the sign of D over coupling, noise, clip widths and kappa."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from acpo.results import Provenance, Record
from acpo.theory.dominance import Group, Population, dominance, group_gradients, power_coupling, reversals
from acpo.theory.expected_gradient import lognormal_factor

CLIP_WIDTHS = ((0.2, 0.2), (0.28, 0.2), (0.3, 0.2), (0.2, 0.25))
"""(eps_h, eps_l): App. C.2.7; DAPO's own; Table 3; and one with the lower width larger."""
EXPONENTS = np.linspace(0, 3, 16)
CORRELATIONS = np.geomspace(0.02, 1, 31)
KAPPAS = np.geomspace(1e-2, 1e3, 101)
SEARCH = (1e-3, 1e4, 1400)
LISTED_EXPONENTS = (0.0, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5)
LISTED_CORRELATIONS = (0.5, 0.2, 0.1, 0.05)
GROUPS = {
    "0.1 against 0.9": Population(Group.point(0.1), Group.point(0.9)),
    "[0, 0.2] against [0.8, 1)": Population(Group.uniform(0, 0.2, 32), Group.uniform(0.8, 1, 32)),
}
MAPPED = "[0, 0.2] against [0.8, 1)"
TIE = 1e-12
SIGN_SCHEMA = pa.schema(
    [(name, pa.float64()) for name in ("clip_high", "clip_low", "correlation", "exponent", "kappa")]
    + [(name, pa.float64()) for name in ("low", "high", "difference")]
    + [("sign", pa.int8())]
)


@dataclass(frozen=True)
class Setting:
    """One model of the reversal search: clip widths, mu(pi) = (1 - pi)^-exponent, corr(A, u), and the two groups."""

    groups: str
    clip_high: float
    clip_low: float
    exponent: float
    correlation: float

    def difference(self, kappa: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return D(kappa)."""
        factor = lognormal_factor(self.clip_low, self.clip_high, self.correlation)
        return dominance(kappa, GROUPS[self.groups], power_coupling(self.exponent), factor)


class Reversal(Record):
    """Where D changes sign in one setting. `crossings` empty: it does not, on the range searched."""

    groups: str
    clip_high: float
    clip_low: float
    exponent: float
    correlation: float
    searched: tuple[float, float]
    crossings: list[float]


class Reversals(Record):
    """`results/theory/reversals.json`."""

    schema_version: Literal[1] = 1
    reversals: list[Reversal]
    provenance: Provenance


def sign_map() -> pd.DataFrame:
    """Compute D over every combination of clip widths, coupling exponent, coupling noise and kappa.

    Returns:
        One row a combination: `clip_high`, `clip_low`, `correlation`, `exponent`, `kappa`, the group averages `low`
        and `high` of E[G | pi] (in units of the coupling's scale), `difference`, and its `sign`, 0 where the two agree
        to twelve digits.
    """
    return pd.concat([_slice(*widths, float(r)) for widths, r in product(CLIP_WIDTHS, CORRELATIONS)], ignore_index=True)


def _slice(clip_high: float, clip_low: float, correlation: float) -> pd.DataFrame:
    coupling = power_coupling(EXPONENTS[:, None, None])
    factor = lognormal_factor(clip_low, clip_high, correlation)
    low, high = (part.ravel() for part in group_gradients(KAPPAS, GROUPS[MAPPED], coupling, factor))
    tie = np.abs(low - high) <= TIE * (np.abs(low) + np.abs(high))
    return pd.DataFrame(
        {
            "clip_high": clip_high,
            "clip_low": clip_low,
            "correlation": correlation,
            "exponent": np.repeat(EXPONENTS, len(KAPPAS)),
            "kappa": np.tile(KAPPAS, len(EXPONENTS)),
            "low": low,
            "high": high,
            "difference": low - high,
            "sign": np.where(tie, 0, np.sign(low - high)).astype(np.int8),
        }
    )


def listed_reversals() -> list[Reversal]:
    """Search the reversals of every listed setting: each exponent without noise, each noise at exponent 0."""
    return [find_reversal(setting) for setting in _listed()]


def _listed() -> Iterator[Setting]:
    pairs = [(m, 1.0) for m in LISTED_EXPONENTS] + [(0.0, r) for r in LISTED_CORRELATIONS]
    for groups, widths, (exponent, correlation) in product(GROUPS, CLIP_WIDTHS, pairs):
        yield Setting(groups, *widths, exponent, correlation)


def find_reversal(setting: Setting) -> Reversal:
    """Search one setting on the range that `Reversal.searched` states."""
    low, high, points = SEARCH
    return Reversal(
        groups=setting.groups,
        clip_high=setting.clip_high,
        clip_low=setting.clip_low,
        exponent=setting.exponent,
        correlation=setting.correlation,
        searched=(low, high),
        crossings=reversals(setting.difference, low, high, points),
    )
