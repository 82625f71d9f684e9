"""Corrections within a family of hypotheses."""

from collections.abc import Sequence

from statsmodels.stats.multitest import multipletests

from acpo.stats.records import Adjusted


def adjust(p_values: Sequence[float | None]) -> list[Adjusted]:
    """Correct a family's p-values by Holm and by Benjamini-Hochberg.

    Args:
        p_values: One a hypothesis; None, a hypothesis that could not be tested, counts as 1, so that a missing result
            never makes the others look better.

    Returns:
        Adjusted p-values in the same order.
    """
    if not p_values:
        return []
    given = [1.0 if p is None else p for p in p_values]
    holm = multipletests(given, method="holm")[1]
    bh = multipletests(given, method="fdr_bh")[1]
    return [Adjusted(holm=float(a), bh=float(b)) for a, b in zip(holm, bh, strict=True)]
