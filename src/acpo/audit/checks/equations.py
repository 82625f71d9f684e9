"""Definitions of the paper written out in numpy, beside what the code that trains computes."""

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import ttest_ind

from acpo.audit.checks.finding import Finding, holds
from acpo.audit.evidence import Evidence
from acpo.methods import method_objective
from acpo.objectives import TokenBatch, group_advantage
from acpo.streams import stream

Array = NDArray[np.float64]
RESPONSES, TOKENS, TRIALS = 8, 40, 20
TOLERANCE = 1e-9
DRAWN = f"{TRIALS} random batches of {RESPONSES} responses of up to {TOKENS} tokens, in float64."


def grpo_objective(evidence: Evidence) -> Finding:
    """Compare the value of GRPO's loss with minus Eq. 1."""
    evidence.require("grpo")
    objective = method_objective(evidence.study, "grpo", {})
    width = evidence.study.methods["grpo"].parameters["clip"]
    gaps = []
    for batch in _batches(evidence):
        ratio, advantage, mask = _arrays(batch)
        expected = -_mean_over_responses(_surrogate(ratio, advantage, width, width), mask)
        gaps.append(abs(objective(batch).value.item() - expected))
    return _gap(gaps, "loss and minus Eq. 1")


def clipped_gradient(evidence: Evidence) -> Finding:
    """Compare the gradient of DAPO's loss with Eq. 2 and the indicator of Eq. 3."""
    evidence.require("dapo")
    objective = method_objective(evidence.study, "dapo", {})
    parameters = evidence.study.methods["dapo"].parameters
    gaps = []
    for batch in _batches(evidence):
        ratio, advantage, mask = _arrays(batch)
        outside = (advantage > 0) & (ratio > 1 + parameters["clip_high"])
        outside |= (advantage < 0) & (ratio < 1 - parameters["clip_low"])
        weight = mask / mask.sum(axis=1, keepdims=True) / len(mask)
        expected = -ratio * advantage * ~outside * weight
        objective(batch).value.backward()
        assert batch.log_prob.grad is not None
        gaps.append(float(np.abs(batch.log_prob.grad.numpy() - expected).max()))
    return _gap(gaps, "dloss/dlog pi and minus Eq. 2 with the indicator of Eq. 3")


def acpo_objective(evidence: Evidence) -> Finding:
    """Compare the value of ACPO's loss with minus Eq. 13, its bins and widths with Eq. 11 and 12."""
    evidence.require("acpo")
    objective = method_objective(evidence.study, "acpo", {})
    parameters = evidence.study.methods["acpo"].parameters
    gaps = []
    for batch in _batches(evidence):
        ratio, advantage, mask = _arrays(batch)
        bins = parameters["bins"]
        behavior = np.exp(batch.old_log_prob.numpy())
        number = np.minimum(bins, np.floor(bins * behavior) + 1)
        width = np.zeros_like(ratio)
        for each in range(1, bins + 1):
            chosen = mask & (number == each)
            if chosen.any():
                spread = ratio[chosen].std()
                wanted = parameters["clip_base"] + parameters["alpha"] * spread
                width[chosen] = np.clip(wanted, parameters["clip_min"], parameters["clip_max"])
        expected = -_mean_over_responses(_surrogate(ratio, advantage, width, width), mask)
        gaps.append(abs(objective(batch).value.item() - expected))
    return _gap(gaps, "loss and minus Eq. 13 with the bins of Eq. 11 and the widths of Eq. 12")


def advantages(evidence: Evidence) -> Finding:
    """Compare group advantages with (r - mean) / std of Sec. 2."""
    rng, gaps, sizes = stream(evidence.study.root_seed, "audit", "advantages"), [], []
    for _ in range(TRIALS):
        size = int(rng.integers(2, 12))
        reward = rng.integers(0, 2, size).astype(float)
        reward[:2] = 0.0, 1.0
        expected = (reward - reward.mean()) / reward.std(ddof=1)
        found = group_advantage(torch.tensor(reward), torch.zeros(size, dtype=torch.int64)).numpy()
        gaps.append(float(np.abs(found - expected).max()))
        sizes.append(size)
    return holds(
        max(gaps) < 1e-4,
        f"largest difference from (r - mean)/std {max(gaps):.1e}",
        f"{TRIALS} random groups of {min(sizes)} to {max(sizes)} rewards of 0 or 1. The code adds a small number to "
        "the standard deviation, as common implementations do.",
    )


def logit_gradient(evidence: Evidence) -> Finding:
    """Compare d log pi / dz of the sampled token with 1 - pi (Sec. 2.2, Eq. 4)."""
    rng, gaps = stream(evidence.study.root_seed, "audit", "logits"), []
    for vocabulary in (2, 5, 50, 500):
        logits = torch.tensor(rng.normal(0, 3, vocabulary), requires_grad=True)
        torch.log_softmax(logits, 0)[0].backward()
        assert logits.grad is not None
        gaps.append(abs(float(logits.grad[0]) - (1 - float(torch.softmax(logits.detach(), 0)[0]))))
    return holds(
        max(gaps) < TOLERANCE,
        f"largest difference {max(gaps):.1e}",
        "Automatic differentiation of the softmax, vocabularies of 2 to 500.",
    )


def welch_statistic(evidence: Evidence) -> Finding:
    """Compare Eq. 60 and the Welch-Satterthwaite degrees of freedom with scipy's test."""
    rng, gaps = stream(evidence.study.root_seed, "audit", "welch"), []
    for n in (8, 32):
        first, second = rng.normal(0.5, 0.1, n), rng.normal(0.4, 0.2, n)
        parts = first.var(ddof=1) / n, second.var(ddof=1) / n
        statistic = (first.mean() - second.mean()) / np.sqrt(sum(parts))
        freedom = sum(parts) ** 2 / sum(part**2 / (n - 1) for part in parts)
        found = ttest_ind(first, second, equal_var=False, alternative="greater")
        gaps += [abs(float(found.statistic) - statistic), abs(float(found.df) - freedom)]
    return holds(
        max(gaps) < TOLERANCE,
        f"largest difference of t and degrees of freedom {max(gaps):.1e}",
        "Eq. 60 written out beside scipy.stats.ttest_ind, n = 8 and 32.",
    )


def _batches(evidence: Evidence) -> list[TokenBatch]:
    rng = stream(evidence.study.root_seed, "audit", "batches")
    made = []
    for _ in range(TRIALS):
        shape = (RESPONSES, TOKENS)
        old = np.log(rng.uniform(0.01, 0.99, shape))
        # Rare large moves: without them no ratio leaves a window of several standard deviations.
        moves = np.clip(0.15 * rng.standard_t(1.5, shape), -4, 4)
        new = np.minimum(old + moves, -1e-3)
        length = rng.integers(1, TOKENS + 1, RESPONSES)
        made.append(
            TokenBatch(
                log_prob=torch.tensor(new, requires_grad=True),
                old_log_prob=torch.tensor(old),
                mask=torch.tensor(np.arange(TOKENS) < length[:, None]),
                advantage=torch.tensor(rng.normal(0, 1, RESPONSES)),
                entropy=torch.tensor(rng.uniform(0, 3, shape)),
            )
        )
    return made


def _arrays(batch: TokenBatch) -> tuple[Array, Array, NDArray[np.bool_]]:
    ratio = np.exp(batch.log_prob.detach().numpy() - batch.old_log_prob.numpy())
    return ratio, batch.advantage.numpy()[:, None], batch.mask.numpy()


def _surrogate(ratio: Array, advantage: Array, low: Array | float, high: Array | float) -> Array:
    return np.minimum(ratio * advantage, np.clip(ratio, 1 - low, 1 + high) * advantage)


def _mean_over_responses(terms: Array, mask: NDArray[np.bool_]) -> float:
    return float(np.mean([row[kept].mean() for row, kept in zip(terms, mask, strict=True)]))


def _gap(gaps: list[float], of: str) -> Finding:
    return holds(max(gaps) < TOLERANCE, f"largest difference of {of}: {max(gaps):.1e}", DRAWN)
