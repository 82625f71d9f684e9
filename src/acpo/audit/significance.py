"""Table 10: its dashes, what its p-values are worth together, and whether Table 2's scores can have them."""

import math

import pandas as pd
from statsmodels.stats.multitest import multipletests

from acpo.audit.denominators import QUESTIONS
from acpo.audit.published import Published
from acpo.audit.scores import AVERAGE, tidy
from acpo.stats.welch import implied_sd, welch_from_moments

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


def sampling_sd(percent: float, questions: int) -> float:
    """Return the largest standard deviation that sampling alone gives a repeat's mean score, in percentage points.

    A repeat answers each of Q questions once. With chances p_q of mean p its variance is sum p_q (1 - p_q) / Q^2, which
    is at most p (1 - p) / Q: when all questions are equally hard.
    """
    return math.sqrt(percent * (100 - percent) / questions)


def through_paper_mode(published: Published) -> pd.DataFrame:
    """Push the scores of Table 2 through paper mode's test (Eq. 60), as Table 10 does, against trained baselines.

    The repeats' spreads are not printed. The largest that sampling allows gives the largest p that it allows.

    Returns:
        One row a test: the columns of `p_values`, difference (points), largest_p, and, where p is printed as a number,
        spread: the standard deviation that this p implies, as a share of the largest (else NaN).
    """
    means = tidy(published.tables["table2"]).set_index(["row", "benchmark", "regime"])["value"]
    frame = p_values(published)
    frame = frame[frame["baseline"] != BASELINES["Base"]].reset_index(drop=True)
    found = []
    for test in frame.to_dict("records"):
        benchmark, p = test["benchmark"], test["value"]
        acpo, other = (float(means[row, benchmark, test["regime"]]) for row in ("ACPO", test["baseline"]))
        n = repeats(published, benchmark)
        sds = [sampling_sd(mean, QUESTIONS[benchmark]) for mean in (acpo, other)]
        largest = welch_from_moments((acpo, sds[0], n), (other, sds[1], n))
        spread = math.nan if math.isnan(p) or test["bound"] else _spread(acpo - other, p, n, sds)
        found.append((acpo - other, largest.p if largest else math.nan, spread))
    return frame.join(pd.DataFrame(found, columns=["difference", "largest_p", "spread"]))


def _spread(difference: float, p: float, n: int, largest: list[float]) -> float:
    """Return the spread that p implies as a share of the largest; infinite where no spread can give it."""
    if (difference > 0) != (p < 0.5):
        return math.inf
    return implied_sd(difference, p, n) / math.sqrt((largest[0] ** 2 + largest[1] ** 2) / 2)


def repeats(published: Published, benchmark: str) -> int:
    """Return how often a benchmark was sampled (Appendix M)."""
    return int(published.said("repeats_aime" if benchmark.startswith("AIME") else "repeats").value)
