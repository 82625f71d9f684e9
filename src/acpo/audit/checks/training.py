"""Claims about importance ratios, from the metrics of every update."""

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from acpo.audit.checks.finding import Finding, holds
from acpo.audit.checks.update_log import (
    BINS,
    HIGH,
    SPREAD,
    by_seed,
    later_updates,
    profile,
    suites_and_regimes,
    weighted_mean,
)
from acpo.audit.comparison import Difference, all_positive, paired
from acpo.audit.evidence import Evidence, MissingEvidenceError
from acpo.audit.verdict import Verdict
from acpo.cells import Cell


def ratio_spread_by_probability(evidence: Evidence) -> Finding:
    """Say whether importance ratios of improbable tokens spread more than those of probable ones (Fig. 2 a)."""
    differences, shown = {}, []
    for suite, regime in suites_and_regimes(evidence):
        spreads = {number: by_seed(evidence, suite, "dapo", regime, _bin_spread(number)) for number in BINS}
        name = f"{suite}_dapo_{regime}"
        differences[name] = paired(spreads[1], spreads[HIGH], name)
        shown.append(f"{name} {profile(spreads)}; bin 1 minus bin 5 {differences[name].text(1)}")
    return Finding(
        all_positive(differences.values()),
        "; ".join(shown),
        f"Standard deviation of the ratio by bin of behavior probability (bin 1: 0 to 0.2), pooled over all updates "
        f"but the first of each rollout, where the ratio is 1. {SPREAD}",
    )


def ratio_spread_by_regime(evidence: Evidence) -> Finding:
    """Say whether ratios spread more with more updates a rollout (Sec. 2.1, Eq. 6)."""
    near, off = evidence.extreme_regimes()
    differences = {
        suite: paired(
            by_seed(evidence, suite, "dapo", off, overall_spread),
            by_seed(evidence, suite, "dapo", near, overall_spread),
            f"{suite}_dapo in both regimes",
        )
        for suite in evidence.suites()
    }
    shown = "; ".join(f"{suite} {difference.text(1)}" for suite, difference in differences.items())
    return Finding(
        all_positive(differences.values()),
        f"standard deviation of the ratio, {off} minus {near}: {shown}",
        f"Pooled over all tokens of all updates but the first of each rollout. {SPREAD}",
    )


def mean_ratio(evidence: Evidence) -> Finding:
    """Say whether the mean ratio is 1 whatever the behavior probability (M1 of App. C.2)."""
    differences = {
        f"{suite}_dapo_{regime} bin {number}": Difference(
            [value - 1 for value in _enough(by_seed(evidence, suite, "dapo", regime, _bin_mean(number)))]
        )
        for suite, regime in suites_and_regimes(evidence)
        for number in BINS
    }
    intervals = {name: each.interval(len(differences)) for name, each in differences.items()}
    away = [name for name, (low, high) in intervals.items() if low > 0 or high < 0]
    return Finding(
        Verdict.CONTRADICTED if away else Verdict.NOT_REPRODUCED,
        "mean ratio minus 1: " + "; ".join(f"{name} {each.text(1)}" for name, each in differences.items()),
        f"{len(away)} of {len(differences)} intervals exclude 0 when all hold together. Intervals around 0 do not "
        f"prove the assumption: without such an exclusion it is not decided. {SPREAD}",
    )


def updates_a_rollout(evidence: Evidence) -> Finding:
    """Say whether the regimes make the published number of updates a rollout."""
    near, off = evidence.extreme_regimes()
    found, right = [], []
    for regime, name in ((near, "nonp"), (off, "offp")):
        said = evidence.published.said(f"updates_{name}").value
        for suite in evidence.suites():
            for log in evidence.updates(Cell(suite, "dapo", regime)).values():
                counts = log.groupby("rollout").size().unique().tolist()
                right.append(counts == [said])
                found.append(f"{suite} {regime} {'/'.join(map(str, counts))}")
    return holds(all(right), "; ".join(dict.fromkeys(found)), "Counted in the update log of every DAPO run.")


def overall_spread(log: pd.DataFrame) -> float:
    """Return the standard deviation of the ratio over all tokens of all updates but the first of each rollout."""
    later = later_updates(log)
    counts, means, squares = 0.0, 0.0, 0.0
    for number in BINS:
        part = later[later[f"bin{number}/count"] > 0]
        weight, mean = part[f"bin{number}/count"], part[f"bin{number}/ratio_mean"] - 1
        counts += weight.sum()
        means += (weight * mean).sum()
        squares += (weight * (part[f"bin{number}/ratio_std"] ** 2 + mean**2)).sum()
    return float(np.sqrt(squares / counts - (means / counts) ** 2))


def _bin_mean(number: int) -> Callable[[pd.DataFrame], float]:
    return lambda log: weighted_mean(later_updates(log), number, "ratio_mean")


def _bin_spread(number: int) -> Callable[[pd.DataFrame], float]:
    def spread(log: pd.DataFrame) -> float:
        part = later_updates(log)
        part = part[part[f"bin{number}/count"] > 0]
        squares = part[f"bin{number}/ratio_std"] ** 2
        return float(np.sqrt(np.average(squares, weights=part[f"bin{number}/count"])))

    return spread


def _enough(values: Mapping[int, float]) -> list[float]:
    if len(values) < 2:
        raise MissingEvidenceError(
            "two training seeds or more of dapo", "snakemake --cores 2 all --config seeds='[0, 1, 2]'"
        )
    return list(values.values())
