"""Table 10: its dashes, and what its p-values are worth together."""

import pandas as pd
from statsmodels.stats.multitest import multipletests

from acpo.audit.published import Published
from acpo.audit.scores import AVERAGE, tidy

BASELINES = {"Base": "Base Model", "Top-20": "High-Entropy", "Bottom-80": "Low-Entropy"}
"""How Table 10 calls what Table 2 calls otherwise."""


def p_values(published: Published) -> pd.DataFrame:
    """Return Table 10 in tidy form: baseline (as in Table 2), benchmark, regime, printed, value, bound (`<0.001`)."""
    frame = published.tables["table10"].frame()
    frame = frame.assign(baseline=frame["row"].replace(BASELINES), benchmark=frame["column"], regime=frame["panel"])
    return frame[["baseline", "benchmark", "regime", "printed", "value", "bound"]]


def dashes(published: Published) -> set[tuple[str, str, str]]:
    """Return the places of Table 10 without a p-value: (baseline, benchmark, regime)."""
    frame = p_values(published)
    empty = frame[frame["value"].isna()]
    return set(zip(empty["baseline"], empty["benchmark"], empty["regime"], strict=True))


def acpo_below(published: Published) -> set[tuple[str, str, str]]:
    """Return where ACPO's mean in Table 2 is below that of a trained baseline: (baseline, benchmark, regime)."""
    frame = tidy(published.tables["table2"])
    frame = frame[frame["benchmark"] != AVERAGE]
    setting = ["benchmark", "regime"]
    ours = frame[frame["row"] == "ACPO"].set_index(setting)["value"].rename("acpo")
    both = frame.join(ours, on=setting)
    below = both[both["acpo"] < both["value"]]
    return set(zip(below["row"], below["benchmark"], below["regime"], strict=True))


def holm_rejections(published: Published, bound_as: float, level: float) -> int:
    """Count the tests against trained baselines that Holm's procedure rejects; a dash counts as p = 1.

    Args:
        published: The paper's numbers.
        bound_as: What each `<0.001` is taken for: 0 is the most, 0.001 the least favourable.
        level: Family-wise error rate.
    """
    frame = p_values(published)
    tests = frame[frame["baseline"] != BASELINES["Base"]]
    values = tests["value"].mask(tests["bound"], bound_as).fillna(1.0)
    return int(multipletests(values, level, method="holm")[0].sum())
