"""Claims about scores: who is first, how scores change between regimes, ablations."""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import pandas as pd
from scipy.stats import ttest_ind

from acpo.audit.checks.finding import Finding, holds
from acpo.audit.comparison import Difference, all_positive, paired
from acpo.audit.evidence import Evidence, MissingEvidenceError
from acpo.audit.verdict import Verdict
from acpo.cells import BASE, Cell

BASELINES = ("ar_lopti", "high_entropy", "low_entropy", "dapo", "cispo")
ACPO = "acpo"
SEEDS = (
    "Differences are paired by training seed, best checkpoints by validation; in brackets the 95 % t interval over "
    "seeds."
)


def acpo_leads(evidence: Evidence, family: str | None = None, over: list[str] | None = None) -> Finding:
    """Say whether ACPO scores above each baseline in each setting of a family (or of all)."""
    differences = {
        f"{label} {_where(evidence, suite, regime, benchmark)}": _difference(
            evidence, ACPO, label, suite, regime, benchmark
        )
        for suite, regime, benchmark in evidence.settings(family)
        for label in over or BASELINES
    }
    return _finding(differences, "ACPO minus ")


def heuristics_gain(evidence: Evidence) -> Finding:
    """Say whether training only high-entropy and only low-entropy tokens both improve on the base model."""
    differences = {}
    for suite, regime, benchmark in evidence.settings():
        base = evidence.scores(Cell(suite, BASE, None), benchmark)
        for method in ("high_entropy", "low_entropy"):
            scores = evidence.scores(Cell(suite, method, regime), benchmark)
            where = _where(evidence, suite, regime, benchmark)
            differences[f"{method} {where}"] = paired(scores, base, f"{suite}_{method}_{regime}")
    return _finding(differences, "gain over the base model: ")


def average_rank(evidence: Evidence) -> Finding:
    """Say whether ACPO has the best average rank over the settings of the grid, seed by seed."""
    ranks: dict[str, dict[int, float]] = {}
    table = _scores_by_seed(evidence)
    for seed, scores in table.groupby("seed"):
        wide = scores.pivot(index="setting", columns="method", values="score")
        for method, rank in wide.rank(axis=1, ascending=False, method="min").mean().items():
            ranks.setdefault(str(method), {})[int(str(seed))] = float(rank)
    differences = {
        method: paired(ranks[method], ranks[ACPO], f"{method} and {ACPO}") for method in ranks if method != ACPO
    }
    means = ", ".join(f"{method} {np.mean(list(by_seed.values())):.2f}" for method, by_seed in ranks.items())
    return Finding(
        all_positive(differences.values()),
        f"{means}, over {table['setting'].nunique()} settings; rank minus ACPO's: "
        + "; ".join(f"{method} {difference.text(1)}" for method, difference in differences.items()),
        "Ranks within each training seed, tied methods share the better one; in brackets the 95 % t interval over "
        "seeds. Reproduced: ACPO's rank is better than each other's.",
    )


def cross_regime(evidence: Evidence, steadier: str, than: list[str]) -> Finding:
    """Say whether a method loses less than others from near on-policy to off-policy."""
    drops = {method: _drop(evidence, method) for method in (steadier, *than)}
    differences = {method: paired(drops[steadier], drops[method], f"{steadier} and {method}") for method in than}
    means = ", ".join(f"{method} {100 * np.mean(list(drop.values())):+.2f}" for method, drop in drops.items())
    shown = "; ".join(f"{method} {difference.text()}" for method, difference in differences.items())
    return Finding(
        all_positive(differences.values()),
        f"off-policy minus near on-policy, points: {means}; {steadier}'s minus that of: {shown}",
        f"Averaged over the tasks of the grid. {SEEDS}",
    )


def clip_ablation(evidence: Evidence) -> Finding:
    """Say whether fixed widths order as in Table 6: ACPO > Clip-High=Max > DAPO > GRPO at ACPO's average width."""
    order = (ACPO, "dapo_clip_max", "dapo", "grpo_clip_avg")
    differences = {
        f"{first} over {second} {_where(evidence, suite, regime, benchmark)}": _difference(
            evidence, first, second, suite, regime, benchmark
        )
        for suite, regime, benchmark in evidence.settings("countdown")
        for first, second in pairwise(order)
    }
    return _finding(differences, "")


def best_bins(evidence: Evidence, family: str) -> Finding:
    """Say whether five bins score above four and six."""
    differences = {
        f"B=5 over {other} {_where(evidence, suite, regime, benchmark)}": _difference(
            evidence, ACPO, other, suite, regime, benchmark
        )
        for suite, regime, benchmark in evidence.settings(family)
        for other in ("acpo_bins4", "acpo_bins6")
    }
    return _finding(differences, "")


def sensitivity(evidence: Evidence) -> Finding:
    """Say whether ACPO's default alpha and base width score within noise of the best of the other settings."""
    default = evidence.study.methods[ACPO].parameters
    others = [
        name
        for name, method in evidence.study.methods.items()
        if method.objective == ACPO
        and {key for key in default if method.parameters[key] != default[key]}
        and {key for key in default if method.parameters[key] != default[key]} <= {"alpha", "clip_base"}
    ]
    if not others:
        raise MissingEvidenceError(
            "methods that are ACPO with other alpha or clip_base in config.yaml", "docs/add_a_method.md says how"
        )
    differences = {
        f"{name} {_where(evidence, suite, regime, benchmark)}": _difference(
            evidence, name, ACPO, suite, regime, benchmark
        )
        for suite, regime, benchmark in evidence.settings()
        for name in others
    }
    better = {name: each for name, each in differences.items() if each.interval(len(differences))[0] > 0}
    return holds(
        not better,
        f"score minus the default's: {_list(differences)}",
        f"Reproduced: no other setting is above the default when all intervals hold together. {SEEDS}",
    )


def welch_tests(evidence: Evidence) -> Finding:
    """Apply the paper's test (Eq. 60) to every checkpoint, and count p < 0.05."""
    level = evidence.published.said("significance").value
    values = []
    for suite, regime, benchmark in evidence.settings():
        ours = _repeats(evidence, Cell(suite, ACPO, regime), benchmark)
        for method in BASELINES:
            theirs = _repeats(evidence, Cell(suite, method, regime), benchmark)
            values += [
                float(ttest_ind(ours[seed], theirs[seed], equal_var=False, alternative="greater").pvalue)
                for seed in sorted(ours.keys() & theirs.keys())
            ]
    below = sum(value < level for value in values)
    return holds(
        below > len(values) / 2,
        f"{below} of {len(values)} one-tailed tests have p < {level}",
        "One test a training seed, baseline and setting, on the k repeat means of one checkpoint each. It compares "
        "checkpoints, not algorithms: at equal methods it is below 0.05 far more often than one time in 20.",
    )


def _repeats(evidence: Evidence, cell: Cell, benchmark: str) -> dict[int, list[float]]:
    score = evidence.cell(cell).benchmarks[benchmark].checkpoints["best"]
    if any(len(seed.repeat_means) < 2 for seed in score.seeds):
        raise MissingEvidenceError(f"two samples a question or more in {cell}", f"set benchmarks.{benchmark}.samples")
    return {seed.seed: seed.repeat_means for seed in score.seeds}


def _difference(evidence: Evidence, first: str, second: str, suite: str, regime: str, benchmark: str) -> Difference:
    cells = [Cell(suite, method, regime) for method in (first, second)]
    scores = [evidence.scores(cell, benchmark) for cell in cells]
    return paired(scores[0], scores[1], f"{cells[0]} and {cells[1]}")


def _drop(evidence: Evidence, method: str) -> dict[int, float]:
    by_seed: dict[int, list[float]] = {}
    near, off = evidence.extreme_regimes()
    for suite in evidence.suites():
        for benchmark in evidence.study.suites[suite].benchmarks:
            scores = [evidence.scores(Cell(suite, method, regime), benchmark) for regime in (near, off)]
            for seed in scores[0].keys() & scores[1].keys():
                by_seed.setdefault(seed, []).append(scores[1][seed] - scores[0][seed])
    return {seed: float(np.mean(values)) for seed, values in by_seed.items()}


def _scores_by_seed(evidence: Evidence) -> pd.DataFrame:
    rows = [
        {"setting": _where(evidence, suite, regime, benchmark), "method": method, "seed": seed, "score": score}
        for suite, regime, benchmark in evidence.settings()
        for method in (*BASELINES, ACPO)
        for seed, score in evidence.scores(Cell(suite, method, regime), benchmark).items()
    ]
    return pd.DataFrame(rows)


def _where(evidence: Evidence, suite: str, regime: str, benchmark: str) -> str:
    several = len(evidence.study.suites[suite].benchmarks) > 1
    return f"{suite}{f' {benchmark}' if several else ''} {regime}"


def _list(differences: Mapping[str, Difference]) -> str:
    return "; ".join(f"{name} {difference.text()}" for name, difference in differences.items())


def _finding(differences: Mapping[str, Difference], prefix: str) -> Finding:
    verdict = all_positive(differences.values())
    return Finding(verdict, f"{prefix}{_list(differences)} points", f"{_reading(verdict, differences)} {SEEDS}")


def _reading(verdict: Verdict, differences: Mapping[str, Difference]) -> str:
    above = sum(difference.interval()[0] > 0 for difference in differences.values())
    below = sum(difference.interval(len(differences))[1] < 0 for difference in differences.values())
    return (
        f"{above} of {len(differences)} intervals lie above 0, {below} below 0 when all are to hold together; "
        f"reproduced would be all above: {verdict}."
    )
