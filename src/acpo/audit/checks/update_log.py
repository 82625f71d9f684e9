"""What checks take from the update logs."""

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from acpo.audit.evidence import Evidence
from acpo.cells import Cell

BINS = (1, 2, 3, 4, 5)
"""Equal-width bins of the behavior probability; 1 holds 0 to 0.2."""
LOW, HIGH = (1, 2), 5
SPREAD = "In brackets the 95 % t interval over training seeds."


def weighted_mean(log: pd.DataFrame, number: int, quantity: str) -> float:
    """Average a bin's quantity over updates, weighted by tokens; updates without a token in the bin do not count."""
    part = log[log[f"bin{number}/count"] > 0]
    return float(np.average(part[f"bin{number}/{quantity}"], weights=part[f"bin{number}/count"]))


def later_updates(log: pd.DataFrame) -> pd.DataFrame:
    """Leave out the first update of each rollout, where every ratio is 1."""
    return log[log.duplicated("rollout")]


def by_seed(
    evidence: Evidence, suite: str, method: str, regime: str, measure: Callable[[pd.DataFrame], float]
) -> dict[int, float]:
    """Measure the update log of every finished run of a cell."""
    return {seed: measure(log) for seed, log in evidence.updates(Cell(suite, method, regime)).items()}


def suites_and_regimes(evidence: Evidence) -> list[tuple[str, str]]:
    """List the grid's suites and regimes."""
    return [(suite, regime) for suite in evidence.suites() for regime in evidence.study.grid.regimes]


def profile(bins: Mapping[int, Mapping[int, float]], scale: float = 1.0) -> str:
    """Print the means over seeds of all bins, from low to high probability."""
    return "/".join(f"{scale * np.mean(list(values.values())):.3g}" for values in bins.values())
