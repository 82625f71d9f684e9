"""Policy updates: one mini-batch of a rollout, one optimizer step."""

from dataclasses import dataclass

import torch

from acpo.engines.tiny.model import Architecture, Model, Weights
from acpo.engines.tiny.optimizer import AdamW
from acpo.engines.tiny.policy import token_scores
from acpo.engines.tiny.rollout import Rollout
from acpo.objectives import Objective, TokenBatch, pooled_statistics
from acpo.sections import TinyEngine, Training


@dataclass(frozen=True)
class Learner:
    """The current policy with its optimizer and objective."""

    weights: Weights
    sizes: Architecture
    optimizer: AdamW
    objective: Objective
    training: Training
    engine: TinyEngine

    @classmethod
    def of(
        cls,
        weights: Weights,
        sizes: Architecture,
        objective: Objective,
        training: Training,
        engine: TinyEngine,
    ) -> "Learner":
        """Start a learner from weights (copied)."""
        weights = {name: weights[name].detach().clone().requires_grad_() for name in sorted(weights)}
        optimizer = AdamW(weights, training.adam_betas, training.weight_decay)
        return cls(weights, sizes, optimizer, objective, training, engine)

    def model(self) -> Model:
        """Return the current policy, ready to run; gradients reach the weights."""
        return Model.of(self.weights, self.sizes)


def update(learner: Learner, rollout: Rollout, rows: slice, stage: str) -> tuple[dict[str, float], list[TokenBatch]]:
    """Make one optimizer step on some responses of a rollout.

    A non-finite gradient norm skips the step and is logged.

    Args:
        learner: Changed in place.
        rollout: The rollout.
        rows: Which of its responses: the mini-batch.
        stage: Which pass of the objective.

    Returns:
        What is logged about the update, and the token batches that it was made from.
    """
    model = learner.model()
    size = learner.engine.micro_batch_size or rows.stop - rows.start
    parts = [slice(start, min(start + size, rows.stop)) for start in range(rows.start, rows.stop, size)]
    batches = [token_batch(learner, model, rollout, part) for part in parts]
    statistics = pooled_statistics(learner.objective, [batches])[0]
    losses = [learner.objective.loss(batch, pooled, stage) for batch, pooled in zip(batches, statistics, strict=True)]
    learner.optimizer.zero_grad()
    value = torch.stack([loss.value for loss in losses]).sum()
    value.backward()
    norm = torch.nn.utils.clip_grad_norm_(list(learner.weights.values()), learner.training.gradient_clip)
    skipped = not bool(torch.isfinite(norm))
    if not skipped:
        learner.optimizer.step(learner.training.learning_rate)
    metrics = losses[0].metrics
    for loss in losses[1:]:
        metrics = metrics + loss.metrics
    facts = {"loss": value.item(), "gradient_norm": norm.item(), "skipped": float(skipped)}
    return facts | metrics.summary(), batches


def token_batch(learner: Learner, model: Model, rollout: Rollout, rows: slice) -> TokenBatch:
    """Score some responses of a rollout with the current policy; gradients reach the learner's weights."""
    lengths = rollout.responses.lengths[rows]
    log_prob, entropy = token_scores(
        model, rollout.prompts[rows], rollout.responses.tokens[rows], lengths,
        learner.training.temperature, learner.engine.length_buckets,
    )  # fmt: skip
    return TokenBatch(
        log_prob=log_prob,
        old_log_prob=rollout.responses.log_prob[rows],
        mask=rollout.mask[rows],
        advantage=rollout.advantage[rows],
        entropy=entropy,
    )
