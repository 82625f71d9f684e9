"""Which tokens an update clipped: by fixed widths, or by the objective that trained on them."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from acpo.objectives import Objective, TokenBatch
from acpo.store import StoreError


@dataclass(frozen=True)
class ClipRule:
    """How clipped tokens are found: `name` in words, `find` from tokens to one boolean each."""

    name: str
    find: Callable[[pd.DataFrame], np.ndarray]


def fixed_widths(clip_low: float, clip_high: float) -> ClipRule:
    """Return the rule of Eq. 3: A > 0 and rho > 1 + eps_h, or A < 0 and rho < 1 - eps_l."""

    def find(tokens: pd.DataFrame) -> np.ndarray:
        ratio, advantage = tokens["ratio"].to_numpy(), tokens["advantage"].to_numpy()
        return ((advantage > 0) & (ratio > 1 + clip_high)) | ((advantage < 0) & (ratio < 1 - clip_low))

    return ClipRule(f"fixed widths, lower {clip_low:g}, upper {clip_high:g}", find)


def objective_rule(objective: Objective, method: str) -> ClipRule:
    """Return the rule of a configured method: its own code on the tokens of each update as one mini-batch.

    Where a method pools a statistic over micro-batches, this takes the whole update instead.
    """

    def find(tokens: pd.DataFrame) -> np.ndarray:
        clipped = np.zeros(len(tokens), dtype=bool)
        for _, rows in tokens.groupby(["run", "rollout", "update"]).indices.items():
            clipped[rows] = _clipped(objective, tokens.iloc[rows])
        return clipped

    return ClipRule(f"the objective of {method}", find)


@torch.no_grad()
def _clipped(objective: Objective, tokens: pd.DataFrame) -> np.ndarray:
    keys = tokens.groupby(["question", "sample"], sort=False)
    row = keys.ngroup().to_numpy()
    column = keys["position"].rank(method="first").to_numpy(int) - 1
    if tokens.duplicated(["question", "sample", "position"]).any():
        raise StoreError("a token store has two rows of one update, question, sample and position: number its samples")
    shape = (row.max() + 1, column.max() + 1)

    # The trainer's own precision, so that a ratio at the edge falls on the same side.
    def padded(values: np.ndarray) -> torch.Tensor:
        table = np.zeros(shape, dtype=values.dtype)
        table[row, column] = values
        return torch.from_numpy(table)

    names = ("log_prob", "old_log_prob", "entropy")
    advantage = np.zeros(shape[0], dtype=np.float32)
    advantage[row] = tokens["advantage"].to_numpy()
    batch = TokenBatch(
        **{name: padded(tokens[name].to_numpy(np.float32)) for name in names},
        mask=padded(np.ones(len(tokens), dtype=bool)),
        advantage=torch.from_numpy(advantage),
    )
    terms = objective.terms(batch, objective.statistics(batch), objective.stages[0])
    return (terms.clipped_low | terms.clipped_high).numpy()[row, column]
