"""The updates that App. F compares: one reference objective, parts of its tokens, and other objectives."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from torch import Tensor

from acpo.objectives import Objective, TokenBatch, pooled_statistics
from acpo.objectives.aggregation import response_weights
from acpo.objectives.selection import select_by_response
from acpo.objectives.statistics import Statistics

Select = Callable[[TokenBatch], Tensor]
Denominator = Literal["all", "selected"]


@dataclass(frozen=True)
class Variant:
    """One way to make an update from the same responses.

    Args:
        name: Its name in results.
        objective: The loss.
        select: (responses, tokens) bool of the tokens it keeps; None keeps all.
        denominator: A response's mean is over all of its tokens, or over those kept (App. F does not say which).
        on_policy: The ratio is taken as 1: the policy that is updated is the behavior policy.
    """

    name: str
    objective: Objective
    select: Select | None = None
    denominator: Denominator = "all"
    on_policy: bool = False

    def batch(self, batch: TokenBatch) -> TokenBatch:
        """Return the tokens as this variant sees them."""
        return replace(batch, old_log_prob=batch.log_prob.detach()) if self.on_policy else batch

    def statistics(self, batches: Sequence[TokenBatch]) -> list[Statistics]:
        """Pool the objective's statistics over the micro-batches of the whole set, without gradient."""
        return pooled_statistics(self.objective, [[self.batch(batch) for batch in batches]])[0]

    def kept(self, batch: TokenBatch) -> Tensor:
        """Return the tokens that it is made from, (responses, tokens) bool; those clipped among them count."""
        return batch.mask if self.select is None else batch.mask & self.select(batch)

    def loss(self, batch: TokenBatch, statistics: Statistics) -> Tensor:
        """Return a micro-batch's share of the loss of the whole set, scalar with gradient."""
        batch = self.batch(batch)
        terms = self.objective.terms(batch, statistics, self.objective.stages[0])
        if self.select is not None:
            selected = terms.selected & self.kept(batch)
            terms = terms.restricted(selected)
            if self.denominator == "selected":
                terms = replace(terms, length=selected.sum(1))
        aggregation = self.objective.parameters.aggregation
        weights = response_weights(aggregation, terms.length, statistics.responses, terms.tokens)
        return (terms.loss * weights.unsqueeze(1).to(terms.loss.dtype)).sum()


def low_probability(limit: float) -> Select:
    """Select tokens with pi_old below a limit."""
    return lambda batch: batch.mask & (batch.behavior_prob < limit)


def high_probability(limit: float) -> Select:
    """Select tokens with pi_old above a limit."""
    return lambda batch: batch.mask & (batch.behavior_prob > limit)


def high_entropy(share: float) -> Select:
    """Select the share of each response's tokens with the highest entropy."""
    return lambda batch: select_by_response(batch.token_entropy, batch.mask, share)


def advantage_sign(positive: bool) -> Select:
    """Select the tokens of responses with a positive, or a negative, advantage."""
    return lambda batch: batch.mask & ((batch.token_advantage > 0) if positive else (batch.token_advantage < 0))
