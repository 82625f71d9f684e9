"""Training on the tokens of highest or lowest entropy only."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

import torch
from pydantic import BaseModel, Field
from torch import Tensor
from typing_extensions import override

from acpo.objectives.base import ClippedParameters, Objective
from acpo.objectives.batch import TokenBatch
from acpo.objectives.clipping import TokenTerms, clipped_terms
from acpo.objectives.statistics import Statistics


class SelectionParameters(ClippedParameters):
    """Which share of tokens is trained on.

    `scope`: tokens are ranked within their response, or over all responses of the mini-batch. `denominator`:
    the mean is taken over the selected tokens, or over all response tokens.
    """

    ratio: Annotated[float, Field(gt=0, lt=1)]
    scope: Literal["response", "batch"]
    denominator: Literal["selected", "all"]


class EntropySelection(Objective):
    """DAPO loss on the share `ratio` of tokens at one end of the entropy order.

    The number kept is max(1, floor(ratio * n)). Within a response, equal entropies are taken from the left.
    Over a batch the threshold is an entropy, so that it does not depend on the split into micro-batches:
    tokens tied at it are kept all or none, whichever comes nearer to the number wanted, but never none of
    all. With `denominator: selected` a response left without a token adds 0 and still counts as a response.
    """

    Parameters = SelectionParameters
    parameters: SelectionParameters

    def __init__(self, parameters: BaseModel | Mapping[str, Any]) -> None:
        super().__init__(parameters)
        self.statistic_needs_policy = self.parameters.scope == "batch"

    def own_sums(self, batch: TokenBatch) -> Tensor:
        """Number of tokens selected, when it is known within a response."""
        if self.parameters.scope == "batch":
            return super().own_sums(batch)
        return selected_length(batch.length, self.parameters.ratio).sum().double()

    def own_values(self, batch: TokenBatch) -> Tensor:
        """Scores of all response tokens, when they are ranked over the batch."""
        return self.score(batch)[batch.mask] if self.parameters.scope == "batch" else super().own_values(batch)

    @override
    def terms(self, batch: TokenBatch, statistics: Statistics, stage: str) -> TokenTerms:
        """Token losses; see `Objective.terms`.

        Raises:
            ValueError: over the batch, every token is selected although some response has several.
        """
        p = self.parameters
        terms = clipped_terms(batch, statistics.tokens, p.clip_low, p.clip_high, p.dual_clip)
        if p.scope == "response":
            selected = select_by_response(self.score(batch), batch.mask, p.ratio)
            count = statistics.sums
        else:
            threshold = batch_threshold(statistics.values, p.ratio)
            selected = batch.mask & (self.score(batch) >= threshold)
            count = (statistics.values >= threshold).sum()
            self._check_selective(count, statistics)
        terms = terms.restricted(selected)
        return terms if p.denominator == "all" else _over_selected(terms, count)

    def _check_selective(self, count: Tensor, statistics: Statistics) -> None:
        # Only tied entropies can select everything; within a response ties are broken and ratio < 1.
        if (count == statistics.tokens) & (count > statistics.responses):
            raise ValueError(
                f"{type(self).__name__}: ratio {self.parameters.ratio} over the batch selected every token; "
                "check that `entropy` holds the current policy's entropy and is not constant"
            )

    @abstractmethod
    def score(self, batch: TokenBatch) -> Tensor:
        """Score of each token, (responses, tokens); the highest are trained on."""


def selected_length(length: Tensor, ratio: float) -> Tensor:
    """Tokens to select among `length`: max(1, floor(ratio * length)), 0 among none."""
    return (ratio * length.double()).floor().long().clamp(min=1).minimum(length)


def select_by_response(score: Tensor, mask: Tensor, ratio: float) -> Tensor:
    """The highest scores of each response.

    Args:
        score: (responses, tokens) finite at response tokens.
        mask: (responses, tokens) bool, response tokens.
        ratio: share to select.

    Returns:
        (responses, tokens) bool with max(1, floor(ratio * n)) tokens true in a response of n > 0 tokens.
    """
    order = torch.where(mask, score, -torch.inf).argsort(dim=1, descending=True, stable=True)
    place = torch.arange(score.shape[1], device=score.device).expand_as(order)
    rank = torch.empty_like(order).scatter(1, order, place)
    return rank < selected_length(mask.sum(dim=1), ratio).unsqueeze(1)


def batch_threshold(score: Tensor, ratio: float) -> Tensor:
    """Smallest score to select so that about floor(ratio * n) of n are; inf for an empty set.

    Args:
        score: (n,) scores of all response tokens of the mini-batch.
        ratio: share to select.

    Returns:
        Scalar threshold; scores equal to it are selected.
    """
    if not score.numel():
        return score.new_tensor(torch.inf)
    wanted = max(1, int(ratio * score.numel()))
    tied = score.topk(wanted).values[-1]
    above = score[score > tied]
    at_least = int((score >= tied).sum())
    if above.numel() and wanted - above.numel() < at_least - wanted:
        return above.min()
    return tied


def _over_selected(terms: TokenTerms, count: Tensor) -> TokenTerms:
    return replace(terms, length=terms.selected.sum(dim=1), tokens=count)
