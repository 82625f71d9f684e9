"""Variance of a verdict by its source: training seed, question, their interaction, sample."""

import numpy as np

from acpo.stats.crossed import mean_squares
from acpo.stats.records import Components


def variance_components(correct: np.ndarray) -> Components:
    """Estimate variance components by the mean squares of verdicts (random effects, balanced, method of moments).

    With S seeds, Q questions, k samples: E[MS sample] = sample; E[MS rest] = sample + k rest;
    E[MS seed] = E[MS rest] + Q k seed; E[MS question] = E[MS rest] + S k question.

    Args:
        correct: Verdicts [seeds, questions, k].

    Returns:
        Unbiased estimates, None where there are not two units to compare: with one seed the question's component
        holds the interaction.
    """
    seeds, questions, k = correct.shape
    cells = correct.mean(2)
    sample = float(correct.var(2, ddof=1).mean()) if k > 1 else None
    if questions < 2:
        return Components(seed=None, question=None, seed_by_question=None, sample=sample)
    question_square = float(seeds * np.var(cells.mean(0), ddof=1))
    noise = 0.0 if sample is None else sample / k
    if seeds < 2:
        return Components(seed=None, question=question_square - noise, seed_by_question=None, sample=sample)
    found = mean_squares(cells)
    return Components(
        seed=(found.seeds - found.rest) / questions,
        question=(question_square - found.rest) / seeds,
        seed_by_question=found.rest - noise,
        sample=sample,
    )
