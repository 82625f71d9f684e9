"""Rows of the token store, as every engine writes them."""

from collections.abc import Sequence

import pandas as pd
import torch
from torch import Tensor

from acpo.objectives import TokenBatch


def token_rows(batch: TokenBatch, tokens: Tensor, questions: Sequence[str], samples: Sequence[int]) -> pd.DataFrame:
    """List the response tokens of one micro-batch as its update saw them.

    Args:
        batch: The micro-batch.
        tokens: (responses, tokens) token ids.
        questions: The question of each response.
        samples: Which of the question's responses each is.

    Returns:
        The columns of `acpo.results.TOKEN_SCHEMA` from `question` on, in the order of responses and positions.
    """
    row, position = batch.mask.nonzero().T
    rows = row.tolist()
    scores = {name: getattr(batch, name).detach()[row, position] for name in ("old_log_prob", "log_prob", "entropy")}
    numbers = {"position": position, "token": tokens[row, position], **scores, "advantage": batch.advantage[row]}
    columns = {name: value.to(torch.float32 if value.is_floating_point() else value.dtype).cpu().numpy()
               for name, value in numbers.items()}  # fmt: skip
    identity = {"question": [questions[i] for i in rows], "sample": [samples[i] for i in rows]}
    return pd.DataFrame({**identity, **columns, "mask": True})
