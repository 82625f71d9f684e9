"""Responses read back from a token store, to be scored by any checkpoint."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from acpo.results import TOKEN_SCHEMA
from acpo.store import StoreError, read_table

KEY = ["question", "sample", "position"]


@dataclass(frozen=True)
class StoredResponses:
    """Responses with what their behavior policy knew of them; all samples of a question stand together.

    Args:
        questions: (rows,) question of each response.
        prompts: token ids of each response's prompt.
        tokens: (rows, longest) token ids, 0 at padding.
        mask: (rows, longest) bool, response tokens.
        old_log_prob: (rows, longest) log pi_old in nats, 0 at padding.
        advantage: (rows,).
    """

    questions: list[str]
    prompts: list[list[int]]
    tokens: Tensor
    mask: Tensor
    old_log_prob: Tensor
    advantage: Tensor

    def __len__(self) -> int:
        return len(self.questions)

    def halves(self) -> tuple["StoredResponses", "StoredResponses"]:
        """Split by question, alternately.

        Raises:
            StoreError: there is only one question.
        """
        order = {question: number for number, question in enumerate(dict.fromkeys(self.questions))}
        if len(order) < 2:
            raise StoreError("not enough data: a noise floor from halves needs at least two questions")
        odd = [bool(order[question] % 2) for question in self.questions]
        return self._rows([i for i, side in enumerate(odd) if not side]), self._rows(
            [i for i, side in enumerate(odd) if side]
        )

    def micro_batches(self, size: int) -> Iterator["StoredResponses"]:
        """Yield parts of at most `size` responses, in order."""
        for start in range(0, len(self), size):
            yield self._rows(list(range(start, min(start + size, len(self)))))

    def _rows(self, rows: list[int]) -> "StoredResponses":
        longest = int(self.mask[rows].sum(1).max())
        return StoredResponses(
            questions=[self.questions[i] for i in rows],
            prompts=[self.prompts[i] for i in rows],
            tokens=self.tokens[rows, :longest],
            mask=self.mask[rows, :longest],
            old_log_prob=self.old_log_prob[rows, :longest],
            advantage=self.advantage[rows],
        )


def read_responses(path: Path, prompts: Mapping[str, Sequence[int]], update: int | None = None) -> StoredResponses:
    """Read the responses of a token store.

    Args:
        path: The store (`acpo.results.TOKEN_SCHEMA`).
        prompts: Token ids of each question's prompt, by its id.
        update: Only the responses of that update; None takes all, each once.

    Raises:
        StoreError: missing columns, no such update, a response with gaps or without one advantage, values that are not
            finite, or a question without a prompt.
    """
    frame = read_table(path, TOKEN_SCHEMA)
    frame = frame[frame["mask"]]
    # A method of several passes meets a response more than once; what the behavior policy said of it is the same.
    frame = frame.drop_duplicates(KEY) if update is None else frame[frame["update"] == update]
    if frame.empty:
        raise StoreError(f"{path}: no tokens{'' if update is None else f' of update {update}'}")
    for column in ("old_log_prob", "advantage"):
        if not np.isfinite(frame[column]).all():
            raise StoreError(f"{path}: {column} holds NaN or infinity")
    frame = frame.sort_values(KEY, kind="stable")
    for unknown in sorted(set(frame["question"]) - prompts.keys()):
        raise StoreError(f"{path}: question {unknown!r} is not in the data: give the data set that it was made from")
    return _assemble(path, frame, prompts)


def _assemble(path: Path, frame: pd.DataFrame, prompts: Mapping[str, Sequence[int]]) -> StoredResponses:
    groups = frame.groupby(["question", "sample"], sort=False)
    lengths = groups.size()
    if (groups["position"].max() + 1 != lengths).any() or (groups["advantage"].nunique() != 1).any():
        bad = (groups["position"].max() + 1 != lengths) | (groups["advantage"].nunique() != 1)
        question, sample = bad[bad].index[0]
        raise StoreError(
            f"{path}: question {question!r}, sample {sample}: expected positions 0, 1, ... once each and one advantage"
        )
    row = torch.tensor(groups.ngroup().to_numpy())
    position = torch.tensor(frame["position"].to_numpy(dtype=np.int64))
    shape = (len(lengths), int(lengths.max()))
    tokens, mask = torch.zeros(shape, dtype=torch.long), torch.zeros(shape, dtype=torch.bool)
    old_log_prob = torch.zeros(shape)
    tokens[row, position] = torch.tensor(frame["token"].to_numpy(dtype=np.int64))
    old_log_prob[row, position] = torch.tensor(frame["old_log_prob"].to_numpy(dtype=np.float32))
    mask[row, position] = True
    questions = [question for question, _ in lengths.index]
    return StoredResponses(
        questions=questions,
        prompts=[list(prompts[question]) for question in questions],
        tokens=tokens,
        mask=mask,
        old_log_prob=old_log_prob,
        advantage=torch.tensor(groups["advantage"].first().to_numpy(dtype=np.float32)),
    )
