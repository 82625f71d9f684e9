"""Claims about clipping, from the metrics of every update (App. J.2, App. K)."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from acpo.audit.checks.finding import Finding, holds
from acpo.audit.checks.update_log import (
    BINS,
    HIGH,
    LOW,
    SPREAD,
    by_seed,
    profile,
    suites_and_regimes,
    weighted_mean,
)
from acpo.audit.comparison import all_positive, paired
from acpo.audit.evidence import Evidence, MissingEvidenceError
from acpo.audit.verdict import Verdict
from acpo.cells import Cell


def uneven_clipping(evidence: Evidence) -> Finding:
    """Say whether DAPO clips improbable tokens more often than probable ones off-policy (Fig. 7)."""
    off = evidence.extreme_regimes()[1]
    differences, shown = {}, []
    for suite in evidence.suites():
        rates = {number: by_seed(evidence, suite, "dapo", off, _bin_rate(number)) for number in BINS}
        shown.append(f"{suite}: {profile(rates, 100)} %")
        for number in LOW:
            differences[f"{suite} bin {number}"] = paired(rates[number], rates[HIGH], f"{suite}_dapo_{off}")
    return Finding(
        all_positive(differences.values()),
        f"clipped share of DAPO by bin, {off}: {'; '.join(shown)}; minus that of bin 5: "
        + "; ".join(f"{name} {difference.text()}" for name, difference in differences.items()),
        f"Over all updates, weighted by tokens. {SPREAD}",
    )


def clip_levels(evidence: Evidence) -> Finding:
    """Say whether DAPO's clipped shares have the published size (App. K)."""
    said = {name: evidence.published.said(f"clip_dapo_{name}").value for name in ("low", "low_end", "high", "high_end")}
    off = evidence.extreme_regimes()[1]
    shown, inside = [], []
    for suite in evidence.suites():
        rates = {number: by_seed(evidence, suite, "dapo", off, _bin_rate(number)) for number in BINS}
        means = {number: 100 * float(np.mean(list(rate.values()))) for number, rate in rates.items()}
        inside += [said["low"] <= means[number] <= said["low_end"] for number in LOW]
        inside.append(said["high"] <= means[HIGH] <= said["high_end"])
        shown.append(f"{suite}: {profile(rates, 100)} %")
    return holds(
        all(inside),
        f"clipped share of DAPO by bin, {off}: {'; '.join(shown)}",
        f"Published: {said['low']:g} to {said['low_end']:g} % in bins 1 and 2, {said['high']:g} to "
        f"{said['high_end']:g} % in bin 5, for another model and task.",
    )


def acpo_clips_little(evidence: Evidence) -> Finding:
    """Say whether ACPO clips less than the published share in every bin (App. K)."""
    limit, off = evidence.published.said("clip_acpo").value, evidence.extreme_regimes()[1]
    shown, largest, runs = [], [], 0
    for suite in evidence.suites():
        rates = {number: by_seed(evidence, suite, "acpo", off, _bin_rate(number)) for number in BINS}
        runs += len(rates[HIGH])
        largest += [100 * max(rate.values()) for rate in rates.values()]
        shown.append(f"{suite}: {profile(rates, 100)} %")
    return holds(
        max(largest) < limit,
        f"clipped share of ACPO by bin, {off}: {'; '.join(shown)}; largest of any seed and bin {max(largest):.2f} %",
        f"Reproduced: below {limit:g} % in every bin and training seed, over all updates; {runs} runs.",
    )


def even_clipping(evidence: Evidence) -> Finding:
    """Say whether ACPO's clipped shares differ less between bins than DAPO's (App. K)."""
    off = evidence.extreme_regimes()[1]
    differences = {
        suite: paired(
            by_seed(evidence, suite, "dapo", off, _rate_range),
            by_seed(evidence, suite, "acpo", off, _rate_range),
            f"{suite}_dapo_{off} and {suite}_acpo_{off}",
        )
        for suite in evidence.suites()
    }
    shown = "; ".join(f"{suite} {difference.text()}" for suite, difference in differences.items())
    return Finding(
        all_positive(differences.values()),
        f"largest minus smallest clipped share of the bins, DAPO's minus ACPO's, points, {off}: {shown}",
        f"Over all updates, weighted by tokens. {SPREAD}",
    )


def steady_gradients(evidence: Evidence) -> Finding:
    """Say whether the gradient's standard deviation peaks lower under ACPO than under DAPO (App. K)."""
    off = evidence.extreme_regimes()[1]
    peaks = {
        (suite, method): by_seed(evidence, suite, method, off, gradient_peak)
        for suite in evidence.suites()
        for method in ("dapo", "acpo")
    }
    differences = {
        suite: paired(peaks[suite, "dapo"], peaks[suite, "acpo"], f"{suite}_dapo_{off} and {suite}_acpo_{off}")
        for suite in evidence.suites()
    }
    shown = "; ".join(
        f"{suite} DAPO {np.mean(list(peaks[suite, 'dapo'].values())):.3f}, "
        f"ACPO {np.mean(list(peaks[suite, 'acpo'].values())):.3f}, difference {difference.text(1)}"
        for suite, difference in differences.items()
    )
    return Finding(
        all_positive(differences.values()),
        f"highest standard deviation of any bin and rollout, {off}: {shown}",
        "Standard deviation over tokens of dloss/dlog pi before aggregation. Which quantity the paper's 0.02 and 0.005 "
        f"measure is not stated, so their size is not compared. {SPREAD}",
    )


def average_width(evidence: Evidence) -> Finding:
    """Say whether the width that ACPO uses on average is below GRPO's (App. J.2)."""
    grpo = evidence.published.said("grpo_clip").value
    widths = {
        f"{suite}_acpo_{regime}": by_seed(evidence, suite, "acpo", regime, mean_width)
        for suite, regime in suites_and_regimes(evidence)
    }
    values = [value for found in widths.values() for value in found.values()]
    return Finding(
        Verdict.CONTRADICTED if min(values) >= grpo else Verdict.REPRODUCED,
        "; ".join(f"{name} {np.mean(list(found.values())):.4f}" for name, found in widths.items()),
        f"Mean upper clip width over all tokens of all updates; GRPO's is {grpo:g}. Contradicted: no run is below.",
    )


def widths_follow_spread(evidence: Evidence) -> Finding:
    """Say whether the widths that ACPO's runs logged are epsilon_base + alpha sigma_b, limited (Eq. 11, 12)."""
    parameters = evidence.study.methods["acpo"].parameters
    if parameters["bins"] != len(BINS) or parameters["pool"] != "minibatch":
        raise MissingEvidenceError("ACPO with five bins, pooled over the mini-batch", "config.yaml: methods.acpo")
    gaps, count = [0.0], 0
    for suite, regime in suites_and_regimes(evidence):
        for log in evidence.updates(Cell(suite, "acpo", regime)).values():
            for number in BINS:
                part = log[log[f"bin{number}/count"] > 0]
                wanted = parameters["clip_base"] + parameters["alpha"] * part[f"bin{number}/ratio_std"]
                wanted = wanted.clip(parameters["clip_min"], parameters["clip_max"])
                gaps.append(float((part[f"bin{number}/clip_width_high"] - wanted).abs().max()))
                count += len(part)
    return holds(
        max(gaps) < 1e-6,
        f"largest gap over {count} bins of updates: {max(gaps):.1e}",
        "Logged width of each bin beside the logged spread of its ratios.",
    )


def mean_width(log: pd.DataFrame) -> float:
    """Return the mean upper clip width over all tokens of a run."""
    return float(np.average(log["clip_width_mean"], weights=log["tokens"]))


def gradient_peak(log: pd.DataFrame) -> float:
    """Return the highest mean gradient standard deviation of any bin and rollout."""
    columns = [f"bin{number}/gradient_std" for number in BINS]
    return float(log.groupby("rollout")[columns].mean().max().max())


def _rate_range(log: pd.DataFrame) -> float:
    rates = [_bin_rate(number)(log) for number in BINS]
    return max(rates) - min(rates)


def _bin_rate(number: int) -> Callable[[pd.DataFrame], float]:
    return lambda log: weighted_mean(log, number, "clip_fraction")
