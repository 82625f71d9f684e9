"""Probability against entropy with clipped tokens (App. E, Fig. 5)."""

import numpy as np
import pandas as pd

from acpo.probes.clipping import ClipRule
from acpo.probes.records import Bounds, EntropyMap, Estimate, Quadrant, Stratum
from acpo.probes.token_store import bin_numbers
from acpo.theory.entropy import entropy_bounds

GRID = 25
STRATA = 5  # Sec. 5.1, B
MIN_TOKENS = 30
TOLERANCE = 1e-3
"""Nats; entropies of float32 distributions are off by less."""


def entropy_map(
    tokens: pd.DataFrame, rule: ClipRule | None, vocabulary: int | None, points: int, rng: np.random.Generator
) -> EntropyMap:
    """Lay tokens out by probability and entropy, both of the current policy, as the store's entropy is.

    Args:
        tokens: From `read_tokens`.
        rule: Which tokens count as clipped; None where it is unknown, which leaves every clip rate open.
        vocabulary: V, or None where it is unknown.
        points: At most how many clipped, and how many other tokens are drawn for a scatter plot.
        rng: What draws them.
    """
    clipped = None if rule is None else rule.find(tokens)
    limit = max(float(tokens["entropy"].max()), 1e-6)
    flags = np.zeros(len(tokens), dtype=bool) if clipped is None else clipped
    return EntropyMap(
        entropy_limit=limit,
        counts=_counts(tokens, limit),
        clipped_counts=None if clipped is None else _counts(tokens[clipped], limit),
        kept_points=_draw(tokens[~flags], points, rng),
        clipped_points=_draw(tokens[flags], points, rng),
        clip_rule=rule.name if rule else "unknown: give clip widths, or a cell whose method is configured",
        strata=_strata(tokens, clipped),
        quadrants=_quadrants(tokens, clipped, limit),
        bounds=check_bounds(tokens, vocabulary),
    )


def check_bounds(tokens: pd.DataFrame, vocabulary: int | None) -> Bounds:
    """Count the tokens outside the bounds of App. E."""
    low, high = entropy_bounds(tokens["current"].to_numpy(), vocabulary)
    value = tokens["entropy"].to_numpy()
    under, over = low - value, value - high
    return Bounds(
        vocabulary=vocabulary,
        tolerance=TOLERANCE,
        below=int((under > TOLERANCE).sum()),
        largest_below=max(float(under.max()), 0.0),
        above=None if vocabulary is None else int((over > TOLERANCE).sum()),
        largest_above=None if vocabulary is None else max(float(over.max()), 0.0),
    )


def _counts(tokens: pd.DataFrame, limit: float) -> list[list[int]]:
    table, _, _ = np.histogram2d(tokens["current"], tokens["entropy"], bins=GRID, range=[[0, 1], [0, limit]])
    return [[int(count) for count in row] for row in table]


def _draw(tokens: pd.DataFrame, points: int, rng: np.random.Generator) -> list[tuple[float, float]]:
    chosen = np.sort(rng.choice(len(tokens), min(points, len(tokens)), replace=False))
    part = tokens[["current", "entropy"]].to_numpy()[chosen]
    return [(round(float(p), 6), round(float(h), 6)) for p, h in part]


def _strata(tokens: pd.DataFrame, clipped: np.ndarray | None) -> list[Stratum]:
    number = bin_numbers(tokens["probability"], STRATA)
    strata = []
    for b in range(STRATA):
        inside = number == b
        entropy = tokens["entropy"].to_numpy()[inside]
        flags = None if clipped is None else clipped[inside]
        lower = entropy < np.median(entropy) if len(entropy) else np.zeros(0, dtype=bool)
        strata.append(
            Stratum(
                low=b / STRATA,
                high=(b + 1) / STRATA,
                tokens=int(inside.sum()),
                clipped=None if flags is None else int(flags.sum()),
                rate=_rate(flags, None),
                low_entropy=_rate(flags, lower),
                high_entropy=_rate(flags, ~lower),
            )
        )
    return strata


def _rate(flags: np.ndarray | None, chosen: np.ndarray | None) -> Estimate:
    if flags is None:
        return Estimate(value=None, note="which tokens were clipped is unknown")
    part = flags if chosen is None else flags[chosen]
    if len(part) < MIN_TOKENS:
        return Estimate(value=None, note=f"not enough data: {len(part)} tokens, a rate needs {MIN_TOKENS}")
    return Estimate(value=float(part.mean()))


def _quadrants(tokens: pd.DataFrame, clipped: np.ndarray | None, limit: float) -> list[Quadrant]:
    likely, uncertain = tokens["current"].to_numpy() >= 0.5, tokens["entropy"].to_numpy() >= limit / 2
    return [
        Quadrant(
            probability="0.5 and above" if high else "below 0.5",
            entropy="upper half" if upper else "lower half",
            tokens=int(inside.sum()),
            clipped=None if clipped is None else int(clipped[inside].sum()),
        )
        for high in (False, True)
        for upper in (False, True)
        for inside in [(likely == high) & (uncertain == upper)]
    ]
