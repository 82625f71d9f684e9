"""One treatment against one baseline on one benchmark: paper mode and inference mode side by side."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from acpo.stats.bootstrap import calibrated_interval
from acpo.stats.crossed import Estimate, crossed_mean
from acpo.stats.effects import cliffs_delta, probability_of_improvement
from acpo.stats.raw import Tally
from acpo.stats.records import CHECKPOINTS_ONLY, ComparisonResult, Inference, Interval, Scope
from acpo.stats.welch import paper_mode
from acpo.store import StoreError


@dataclass(frozen=True)
class Resampling:
    """How a comparison resamples: its level, the number of sign flips, and where they come from."""

    alpha: float
    resamples: int
    rng: np.random.Generator


def estimate_mean(item: Tally) -> Estimate:
    """Estimate a cell's mean accuracy with the standard error of its scope."""
    return crossed_mean([item.question_means])


def difference_groups(treatment: Tally, baseline: Tally) -> list[np.ndarray]:
    """Arrange two cells for `crossed_mean`: the difference of treatment and baseline, paired by question.

    Where both have the same training seeds, several of them, it is also paired by seed: equal seeds meet the same
    prompts with the same random numbers. A trained cell with one seed makes it a statement about checkpoints.

    Raises:
        StoreError: the cells answered different questions.
    """
    if treatment.questions != baseline.questions or treatment.k != baseline.k:
        raise StoreError(
            f"{treatment.cell} and {baseline.cell}: {treatment.benchmark} was evaluated on other questions or another "
            "number of samples. Evaluate both again"
        )
    ours, theirs = treatment.question_means, baseline.question_means
    if paired_seeds(treatment, baseline):
        return [ours - theirs]
    if _single(treatment) or _single(baseline):
        return [ours.mean(0, keepdims=True) - theirs.mean(0, keepdims=True)]
    return [ours, -theirs]


def paired_seeds(treatment: Tally, baseline: Tally) -> bool:
    """Whether two trained cells have the same training seeds."""
    return treatment.seeds == baseline.seeds and not (treatment.cell.is_base or baseline.cell.is_base)


def _single(item: Tally) -> bool:
    return len(item.seeds) == 1 and not item.cell.is_base


def sign_flip_p(differences: np.ndarray, resamples: int, rng: np.random.Generator) -> float:
    """Return the two-sided p of the mean of paired differences when each may have either sign.

    Args:
        differences: [questions].
        resamples: Random sign flips; where there are fewer than that in all, every one is counted.
        rng: Draws them.
    """
    if not differences.any():
        return 1.0
    found = stats.permutation_test(
        (differences,), np.mean, permutation_type="samples", vectorized=True, n_resamples=resamples, batch=1000, rng=rng
    )
    return float(found.pvalue)


def infer(treatment: Tally, baseline: Tally, replicates: np.ndarray, how: Resampling) -> Inference:
    """Compare two cells in inference mode.

    Args:
        treatment: A trained cell.
        baseline: Another, or the base model, on the same questions.
        replicates: Bootstrap replicates of the difference, [resamples].
        how: Level and sign flips.
    """
    found = crossed_mean(difference_groups(treatment, baseline))
    test = found.decisive
    by_question = treatment.question_means.mean(0) - baseline.question_means.mean(0)
    return Inference(
        scope=scope_of(found),
        note=None if found.algorithm else CHECKPOINTS_ONLY,
        treatment_seeds=list(treatment.seeds),
        baseline_seeds=list(baseline.seeds),
        paired_seeds=paired_seeds(treatment, baseline),
        questions=len(treatment.questions),
        k=treatment.k,
        difference=found.value,
        standard_error=test.standard_error,
        df=test.df,
        t=test.t,
        p=test.p,
        permutation_p=sign_flip_p(by_question, how.resamples, how.rng),
        interval=calibrated_interval(replicates, found, how.alpha, lowest=-1.0),
        cliffs_delta=cliffs_delta(by_question),
        probability_of_improvement=probability_of_improvement(
            treatment.question_means.mean(1), baseline.question_means.mean(1)
        ),
    )


def scope_of(estimate: Estimate) -> Scope:
    """Say what an estimate's standard error is about."""
    return "algorithm" if estimate.algorithm else "checkpoints"


def compare(
    treatment: Tally, baseline: Tally, replicates: np.ndarray, how: Resampling, checkpoint: str
) -> ComparisonResult:
    """Compare two cells in both modes (arguments as in `infer`); `adjusted` is empty until families are corrected."""
    cell = treatment.cell
    return ComparisonResult(
        suite=cell.suite,
        regime=cell.regime or "",
        benchmark=treatment.benchmark,
        checkpoint=checkpoint,
        treatment=cell.method,
        baseline=baseline.cell.method,
        treatment_cell=str(cell),
        baseline_cell=str(baseline.cell),
        treatment_mean=treatment.mean,
        baseline_mean=baseline.mean,
        paper=paper_mode(treatment, baseline),
        inference=infer(treatment, baseline, replicates, how),
        adjusted={},
    )


def points(interval: Interval | None) -> tuple[float, float] | None:
    """Return an interval in points."""
    return None if interval is None else (100 * interval.low, 100 * interval.high)


def in_points(results: Sequence[ComparisonResult]) -> list[dict[str, object]]:
    """Flatten comparisons to one row each, differences in points, for tables and terminals."""
    return [_row(item) for item in results]


def _row(item: ComparisonResult) -> dict[str, object]:
    inference = item.inference
    low, high = points(inference.interval) or (None, None)
    keys = ("suite", "regime", "benchmark", "checkpoint", "treatment", "baseline")
    row: dict[str, object] = {key: getattr(item, key) for key in keys}
    row |= {
        "treatment_percent": 100 * item.treatment_mean,
        "baseline_percent": 100 * item.baseline_mean,
        "difference_points": 100 * inference.difference,
        "interval_low_points": low,
        "interval_high_points": high,
        "standard_error_points": 100 * inference.standard_error,
        "scope": inference.scope,
        "seeds": len(inference.treatment_seeds),
        "questions": inference.questions,
        "k": inference.k,
        "t": inference.t,
        "df": inference.df,
        "p": inference.p,
        "permutation_p": inference.permutation_p,
        "cliffs_delta": inference.cliffs_delta,
        "probability_of_improvement": inference.probability_of_improvement,
    }
    for family, adjusted in sorted(item.adjusted.items()):
        row |= {f"holm:{family}": adjusted.holm, f"bh:{family}": adjusted.bh}
    for test in item.paper:
        name = f"paper_seed{test.treatment_seed}"
        row |= {f"{name}_t": test.t, f"{name}_df": test.df, f"{name}_p": test.p, f"{name}_n": test.treatment_n}
        row |= {f"{name}_treatment_sd": test.treatment_sd, f"{name}_baseline_sd": test.baseline_sd}
    return row
