"""Claims about training itself, from the metrics of every update."""

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from acpo.audit.checks.finding import Finding, holds
from acpo.audit.comparison import Difference, all_positive, paired
from acpo.audit.evidence import Evidence, MissingEvidence
from acpo.audit.verdict import Verdict
from acpo.cells import Cell

BINS = (1, 2, 3, 4, 5)
"""Equal-width bins of the behavior probability; 1 holds 0 to 0.2."""
LOW, HIGH = (1, 2), 5
SPREAD = "In brackets the 95 % t interval over training seeds."


def ratio_spread_by_probability(evidence: Evidence) -> Finding:
    """Say whether importance ratios of improbable tokens spread more than those of probable ones (Fig. 2 a)."""
    differences, shown = {}, []
    for suite, regime in _pairs(evidence):
        spreads = {number: _by_seed(evidence, suite, "dapo", regime, _bin_spread(number)) for number in BINS}
        name = f"{suite}_dapo_{regime}"
        differences[name] = paired(spreads[1], spreads[HIGH], name)
        shown.append(f"{name} {_profile(spreads)}; bin 1 minus bin 5 {differences[name].text(1)}")
    return Finding(
        all_positive(differences.values()),
        "; ".join(shown),
        f"Standard deviation of the ratio by bin of behavior probability (bin 1: 0 to 0.2), pooled over all updates but "
        f"the first of each rollout, where the ratio is 1. {SPREAD}",
    )


def ratio_spread_by_regime(evidence: Evidence) -> Finding:
    """Say whether ratios spread more with more updates a rollout (Sec. 2.1, Eq. 6)."""
    near, off = _ends(evidence)
    differences = {
        suite: paired(
            _by_seed(evidence, suite, "dapo", off, overall_spread),
            _by_seed(evidence, suite, "dapo", near, overall_spread),
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
            [value - 1 for value in _enough(_by_seed(evidence, suite, "dapo", regime, _bin_mean(number)))]
        )
        for suite, regime in _pairs(evidence)
        for number in BINS
    }
    intervals = {name: each.interval(len(differences)) for name, each in differences.items()}
    away = [name for name, (low, high) in intervals.items() if low > 0 or high < 0]
    return Finding(
        Verdict.CONTRADICTED if away else Verdict.NOT_REPRODUCED,
        "mean ratio minus 1: " + "; ".join(f"{name} {each.text(1)}" for name, each in differences.items()),
        f"{len(away)} of {len(differences)} intervals exclude 0 when all hold together. Intervals around 0 do not prove "
        f"the assumption: without such an exclusion it is not decided. {SPREAD}",
    )


def uneven_clipping(evidence: Evidence) -> Finding:
    """Say whether DAPO clips improbable tokens more often than probable ones off-policy (Fig. 7)."""
    off = _ends(evidence)[1]
    differences, shown = {}, []
    for suite in evidence.suites():
        rates = {number: _by_seed(evidence, suite, "dapo", off, _bin_rate(number)) for number in BINS}
        shown.append(f"{suite}: {_profile(rates, 100)} %")
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
    off = _ends(evidence)[1]
    shown, inside = [], []
    for suite in evidence.suites():
        rates = {number: _by_seed(evidence, suite, "dapo", off, _bin_rate(number)) for number in BINS}
        means = {number: 100 * float(np.mean(list(rate.values()))) for number, rate in rates.items()}
        inside += [said["low"] <= means[number] <= said["low_end"] for number in LOW]
        inside.append(said["high"] <= means[HIGH] <= said["high_end"])
        shown.append(f"{suite}: {_profile(rates, 100)} %")
    return holds(
        all(inside),
        f"clipped share of DAPO by bin, {off}: {'; '.join(shown)}",
        f"Published: {said['low']:g} to {said['low_end']:g} % in bins 1 and 2, {said['high']:g} to {said['high_end']:g} % "
        "in bin 5, for another model and task.",
    )


def acpo_clips_little(evidence: Evidence) -> Finding:
    """Say whether ACPO clips less than the published share in every bin (App. K)."""
    limit, off = evidence.published.said("clip_acpo").value, _ends(evidence)[1]
    shown, largest = [], []
    for suite in evidence.suites():
        rates = {number: _by_seed(evidence, suite, "acpo", off, _bin_rate(number)) for number in BINS}
        largest += [100 * max(rate.values()) for rate in rates.values()]
        shown.append(f"{suite}: {_profile(rates, 100)} %")
    return holds(
        max(largest) < limit,
        f"clipped share of ACPO by bin, {off}: {'; '.join(shown)}; largest of any seed and bin {max(largest):.2f} %",
        f"Reproduced: below {limit:g} % in every bin and training seed, over all updates.",
    )


def even_clipping(evidence: Evidence) -> Finding:
    """Say whether ACPO's clipped shares differ less between bins than DAPO's (App. K)."""
    off = _ends(evidence)[1]
    differences = {
        suite: paired(
            _by_seed(evidence, suite, "dapo", off, _rate_range),
            _by_seed(evidence, suite, "acpo", off, _rate_range),
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
    off = _ends(evidence)[1]
    peaks = {
        (suite, method): _by_seed(evidence, suite, method, off, gradient_peak)
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
        f"{suite}_acpo_{regime}": _by_seed(evidence, suite, "acpo", regime, mean_width)
        for suite, regime in _pairs(evidence)
    }
    values = [value for by_seed in widths.values() for value in by_seed.values()]
    return Finding(
        Verdict.CONTRADICTED if min(values) >= grpo else Verdict.REPRODUCED,
        "; ".join(f"{name} {np.mean(list(by_seed.values())):.4f}" for name, by_seed in widths.items()),
        f"Mean upper clip width over all tokens of all updates; GRPO's is {grpo:g}. Contradicted: no run's is below it.",
    )


def widths_follow_spread(evidence: Evidence) -> Finding:
    """Say whether the widths that ACPO's runs logged are epsilon_base + alpha sigma_b, limited (Eq. 11, 12)."""
    parameters = evidence.study.methods["acpo"].parameters
    if parameters["bins"] != len(BINS) or parameters["pool"] != "minibatch":
        raise MissingEvidence("ACPO with five bins, pooled over the mini-batch", "config.yaml: methods.acpo")
    gaps, count = [0.0], 0
    for suite, regime in _pairs(evidence):
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


def updates_a_rollout(evidence: Evidence) -> Finding:
    """Say whether the regimes make the published number of updates a rollout."""
    near, off = _ends(evidence)
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
    later = _later(log)
    counts, means, squares = 0.0, 0.0, 0.0
    for number in BINS:
        part = later[later[f"bin{number}/count"] > 0]
        weight, mean = part[f"bin{number}/count"], part[f"bin{number}/ratio_mean"] - 1
        counts += weight.sum()
        means += (weight * mean).sum()
        squares += (weight * (part[f"bin{number}/ratio_std"] ** 2 + mean**2)).sum()
    return float(np.sqrt(squares / counts - (means / counts) ** 2))


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
    return lambda log: _weighted(log, number, "clip_fraction")


def _bin_mean(number: int) -> Callable[[pd.DataFrame], float]:
    return lambda log: _weighted(_later(log), number, "ratio_mean")


def _bin_spread(number: int) -> Callable[[pd.DataFrame], float]:
    def spread(log: pd.DataFrame) -> float:
        part = _later(log)
        part = part[part[f"bin{number}/count"] > 0]
        squares = part[f"bin{number}/ratio_std"] ** 2
        return float(np.sqrt(np.average(squares, weights=part[f"bin{number}/count"])))

    return spread


def _weighted(log: pd.DataFrame, number: int, quantity: str) -> float:
    part = log[log[f"bin{number}/count"] > 0]
    return float(np.average(part[f"bin{number}/{quantity}"], weights=part[f"bin{number}/count"]))


def _later(log: pd.DataFrame) -> pd.DataFrame:
    return log[log.duplicated("rollout")]


def _by_seed(
    evidence: Evidence, suite: str, method: str, regime: str, measure: Callable[[pd.DataFrame], float]
) -> dict[int, float]:
    return {seed: measure(log) for seed, log in evidence.updates(Cell(suite, method, regime)).items()}


def _enough(by_seed: Mapping[int, float]) -> list[float]:
    if len(by_seed) < 2:
        raise MissingEvidence("two training seeds or more of dapo", "snakemake --cores 2 all --config seeds='[0, 1, 2]'")
    return list(by_seed.values())


def _pairs(evidence: Evidence) -> list[tuple[str, str]]:
    return [(suite, regime) for suite in evidence.suites() for regime in evidence.study.grid.regimes]


def _ends(evidence: Evidence) -> tuple[str, str]:
    suite = evidence.suites()[0]
    degrees = {name: evidence.study.regime(suite, name).updates_per_rollout for name in evidence.study.grid.regimes}
    if len(set(degrees.values())) < 2:
        raise MissingEvidence("two regimes in the grid", "snakemake --cores 2 all")
    return min(degrees, key=degrees.__getitem__), max(degrees, key=degrees.__getitem__)


def _profile(by_bin: Mapping[int, Mapping[int, float]], scale: float = 1.0) -> str:
    return "/".join(f"{scale * np.mean(list(by_seed.values())):.3g}" for by_seed in by_bin.values())
