"""The interface every method implements."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from acpo.objectives.aggregation import Aggregation, response_weights
from acpo.objectives.batch import TokenBatch
from acpo.objectives.clipping import TokenTerms
from acpo.objectives.metrics import UpdateMetrics, measure
from acpo.objectives.statistics import Statistics

Pool = Literal["minibatch", "microbatch", "ranks"]
Width = Annotated[float, Field(ge=0, allow_inf_nan=False)]
DualClip = Annotated[float, Field(gt=1, allow_inf_nan=False)] | None


class ObjectiveParameters(BaseModel):
    """Parameters of any method. None has a default: values live in the configuration."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    aggregation: Aggregation


class ClippedParameters(ObjectiveParameters):
    """Parameters of a method with asymmetric clip widths; `dual_clip` None switches the dual clip off."""

    clip_low: Width
    clip_high: Width
    dual_clip: DualClip


@dataclass
class Loss:
    """A loss with what is logged about it.

    Args:
        value: scalar, carries the gradient.
        metrics: sums over the tokens it was computed from.
    """

    value: Tensor
    metrics: UpdateMetrics


class Objective(ABC):
    """One method's loss.

    Args:
        parameters: an instance of `Parameters`, or a mapping with its fields.

    Raises:
        pydantic.ValidationError: a parameter is missing, unknown or out of range.
    """

    stages: ClassVar[tuple[str, ...]] = ("all",)
    """Passes over all mini-batches of a rollout, in order, with the same old log-probabilities."""

    Parameters: ClassVar[type[BaseModel]]
    parameters: ObjectiveParameters

    pool: Pool = "minibatch"
    """Over which tokens the method's own statistic is pooled; the normaliser always covers the mini-batch."""

    statistic_needs_policy: bool = False
    """Whether the method's own statistic depends on the current policy, not on the masks alone."""

    def __init__(self, parameters: BaseModel | Mapping[str, Any]) -> None:
        self.parameters = self.Parameters.model_validate(parameters)  # type: ignore[assignment]

    def __call__(self, batch: TokenBatch, stage: str = "all") -> Loss:
        """Loss of a whole mini-batch held in one micro-batch."""
        return self.loss(batch, self.statistics(batch), stage)

    @torch.no_grad()
    def statistics(self, batch: TokenBatch) -> Statistics:
        """What must be pooled over a mini-batch before any of its micro-batches has a loss.

        Args:
            batch: one micro-batch.

        Returns:
            Its statistics, without gradient; see `acpo.objectives.pooling`.
        """
        counts = torch.stack([(batch.length > 0).sum(), batch.length.sum()]).double()
        return Statistics(counts, self.own_sums(batch), self.own_values(batch))

    def loss(self, batch: TokenBatch, statistics: Statistics, stage: str = "all") -> Loss:
        """This micro-batch's share of the mini-batch loss.

        Args:
            batch: one micro-batch.
            statistics: pooled over the mini-batch this micro-batch belongs to.
            stage: one of `stages`.

        Returns:
            A loss whose sum over the micro-batches and ranks of a mini-batch is the mini-batch loss.

        Raises:
            ValueError: `stage` is not one of `stages`.
        """
        if stage not in self.stages:
            raise ValueError(f"{type(self).__name__}: stage {stage!r} is not one of {', '.join(self.stages)}")
        terms = self.terms(batch, statistics, stage)
        weights = response_weights(self.parameters.aggregation, terms.length, statistics.responses, terms.tokens)
        value = (terms.loss * weights.unsqueeze(1).to(terms.loss.dtype)).sum()
        return Loss(value, measure(batch, terms))

    @abstractmethod
    def terms(self, batch: TokenBatch, statistics: Statistics, stage: str) -> TokenTerms:
        """Token losses before aggregation: what distinguishes one method from another."""

    def own_sums(self, batch: TokenBatch) -> Tensor:
        """The method's own additive statistic of one micro-batch, float64; empty by default."""
        return batch.length.new_zeros(0, dtype=torch.float64)

    def own_values(self, batch: TokenBatch) -> Tensor:
        """The method's own values of one micro-batch needed one by one, (n,); empty by default."""
        return batch.length.new_zeros(0, dtype=torch.float64)
