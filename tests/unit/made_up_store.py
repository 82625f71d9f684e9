"""Made-up token stores whose answers are known."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from acpo.results import TOKEN_SCHEMA
from acpo.store import write_table


def made_up_tokens(
    exponent: float = 2.0,
    scale: float = 0.05,
    questions: int = 60,
    tokens: int = 600,
    updates: int = 4,
    seed: int = 0,
) -> pd.DataFrame:
    """Tokens whose ratio has Var(rho | pi) = scale^2 (1 - pi)^exponent, log-normal with mean 1.

    Probabilities pile up near 1 as those of language models do. Entropies are the smallest that App. E allows
    (one alternative), of the current policy.
    """
    rng = np.random.default_rng(seed)
    size = questions * tokens
    probability = np.where(rng.random(size) < 0.5, rng.random(size), 1 - 10 ** rng.uniform(-4, -1, size))
    probability = np.clip(probability, 1e-4, 1 - 1e-5)
    tau = np.sqrt(np.log1p(scale**2 * (1 - probability) ** exponent))
    old = np.log(probability)
    new = np.minimum(old + tau * rng.standard_normal(size) - tau**2 / 2, -1e-7)
    current = np.exp(new)
    entropy = -(current * new + (1 - current) * np.log(1 - current))
    question = np.repeat(np.arange(questions), tokens)
    return pd.DataFrame(
        {
            "run": "made_up/seed0",
            "rollout": 1 + question % 2,
            "update": 1 + (question // 2) % updates,
            "question": [f"q{number}" for number in question],
            "sample": 0,
            "position": np.tile(np.arange(tokens), questions),
            "token": 0,
            "old_log_prob": old,
            "log_prob": new,
            "entropy": entropy,
            "advantage": np.where(question % 3 == 0, 1.0, -0.5),
            "mask": True,
        }
    )


def write_store(path: Path, tokens: pd.DataFrame, **columns: Any) -> Path:
    """Write tokens, with some columns replaced, in the schema of a token store."""
    write_table(path, tokens.assign(**columns), TOKEN_SCHEMA)
    return path
