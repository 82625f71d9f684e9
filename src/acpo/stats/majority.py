"""Majority vote over samples."""

from collections.abc import Sequence

import numpy as np
import pandas as pd


def majority_at_k(answers: Sequence[str | None], correct: Sequence[bool], k: int) -> float:
    """Estimate without bias the chance that the most frequent answer among k samples is right.

    The samples are cut into blocks of k in their order; each block votes. Answers are the same when their text is;
    a sample without an answer does not vote; tied answers share the block; a block without votes is wrong.

    Args:
        answers: Extracted answers of a question's samples.
        correct: Their verdicts.
        k: Votes a block, at most as many as samples; samples beyond the last whole block take no part.

    Raises:
        ValueError: k is not in 1..n.
    """
    if not 1 <= k <= len(answers):
        raise ValueError(f"majority@k needs 1 <= k <= n, got n={len(answers)}, k={k}")
    blocks = range(0, len(answers) - k + 1, k)
    return float(np.mean([_vote(answers[start : start + k], correct[start : start + k]) for start in blocks]))


def _vote(answers: Sequence[str | None], correct: Sequence[bool]) -> float:
    votes: dict[str, list[bool]] = {}
    for answer, verdict in zip(answers, correct, strict=True):
        if answer is not None:
            votes.setdefault(answer, []).append(verdict)
    most = max(map(len, votes.values()), default=0)
    winners = [np.mean(verdicts) for verdicts in votes.values() if len(verdicts) == most]
    return float(np.mean(winners)) if winners else 0.0


def majority_scores(rows: pd.DataFrame, k: int) -> dict[int, float]:
    """Return majority@1, @2, @4, ... up to k, averaged over the questions and training seeds of some rows."""
    ordered = rows.sort_values(["seed", "question", "sample"])
    answers = ordered["extracted"].astype(object).where(ordered["extracted"].notna(), None).to_numpy().reshape(-1, k)
    correct = ordered["correct"].to_numpy(dtype=bool).reshape(-1, k)
    powers = [2**i for i in range(k.bit_length()) if 2**i <= k]
    return {
        n: float(np.mean([majority_at_k(a, c, n) for a, c in zip(answers.tolist(), correct.tolist(), strict=True)]))
        for n in powers
    }
