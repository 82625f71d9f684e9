"""Presets of every method and helpers shared by the tests of this folder."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
import yaml
from torch import Tensor

from acpo.objectives import (
    Objective,
    TokenBatch,
    UpdateMetrics,
    make_objective,
    objective_names,
    pooled_statistics,
)

MEAN = "seq-mean-token-mean"
AGGREGATIONS = [
    MEAN,
    "token-mean",
    "seq-mean-token-sum",
    {"mode": "seq-mean-token-sum-norm", "divisor": 7.0},
]
_CLIP = {"clip_low": 0.2, "clip_high": 0.3, "dual_clip": None, "aggregation": MEAN}
_SELECT = {"scope": "response", "denominator": "selected"}
# Written by hand, for the cases whose numbers were worked out with them; CONFIGURED is for what holds of any method.
PAPER = {
    "grpo": {"clip": 0.2, "dual_clip": None, "aggregation": MEAN},
    "dapo": _CLIP,
    "cispo": {"clip_low": 1.0, "clip_high": 0.45, "gate": None, "aggregation": MEAN},
    "high_entropy": _CLIP | _SELECT | {"ratio": 0.2},
    "low_entropy": _CLIP | _SELECT | {"ratio": 0.8},
    "ar_lopti": _CLIP | {"ar_alpha": 0.3, "ar_tau": 0.7, "w_neg": 1.0, "threshold": 0.5},
    "acpo": {
        "alpha": 3.0,
        "clip_base": 0.2,
        "clip_min": 0.0,
        "clip_max": 3.0,
        "bins": 5,
        "probability": "behavior",
        "pool": "minibatch",
        "sigma_floor": 0.0,
        "dual_clip": None,
        "aggregation": MEAN,
    },
}
GATE = {"gate": {"clip_low": 0.2, "clip_high": 0.3}}
RELEASED = {
    "grpo": {"dual_clip": 3.0},
    "dapo": {"dual_clip": 3.0},
    "cispo": GATE,
    "high_entropy": {"dual_clip": 3.0},
    "low_entropy": {"dual_clip": 3.0},
    "ar_lopti": {"dual_clip": 3.0, "clip_high": 0.24},
    "acpo": {"dual_clip": 3.0, "probability": "current", "pool": "microbatch", "sigma_floor": 1e-8},
}
BATCH_SCOPE = {"scope": "batch"}


def configured() -> dict[str, dict[str, object]]:
    """Parameters that config.yaml has for each objective: those of the entry of its name, else of the first one."""
    entries = yaml.safe_load((Path(__file__).parents[3] / "config.yaml").read_text(encoding="utf-8"))["methods"]
    first: dict[str, dict[str, object]] = {}
    for name in sorted(entries, key=lambda name: entries[name]["objective"] != name):
        measured = dict.fromkeys(entries[name].get("measured", {}), 0.2)
        first.setdefault(entries[name]["objective"], entries[name]["parameters"] | measured)
    return {name: first[name] for name in objective_names() if name in first}


CONFIGURED = configured()
VARIANTS = [
    *((name, {}) for name in CONFIGURED),
    *(("acpo", change) for change in ({"bins": 4}, {"bins": 6}, {"probability": "current"}, {"dual_clip": 3.0})),
    ("cispo", GATE),
    ("high_entropy", BATCH_SCOPE),
    ("low_entropy", BATCH_SCOPE),
    ("high_entropy", {"denominator": "all"}),
    ("low_entropy", BATCH_SCOPE | {"denominator": "all"}),
    ("dapo", {"dual_clip": 3.0}),
]
every_method = pytest.mark.parametrize("name", list(CONFIGURED))
every_variant = pytest.mark.parametrize(
    ("name", "change"),
    VARIANTS,
    ids=[f"{name}-{'-'.join(map(str, change.values()))}" for name, change in VARIANTS],
)
every_aggregation = pytest.mark.parametrize("aggregation", AGGREGATIONS, ids=str)


def paper(name: str, **changes: object) -> Objective:
    """The paper's preset of one of its methods, with some parameters changed."""
    return make_objective(name, PAPER[name] | changes)


def preset(name: str, **changes: object) -> Objective:
    """The configured preset of a method, a user's own included, with some parameters changed."""
    return make_objective(name, CONFIGURED[name] | changes)


def released(name: str, **changes: object) -> Objective:
    """The preset of the released code, with some parameters changed."""
    return paper(name, **RELEASED[name] | changes)


def batch_of(
    log_prob: Tensor, old_log_prob: Tensor, mask: Tensor, advantage: Tensor, entropy: Tensor | None = None
) -> TokenBatch:
    """A batch with a fresh leaf of log-probabilities; entropy counts up when it does not matter."""
    if entropy is None:
        entropy = torch.arange(mask.numel()).reshape(mask.shape).to(log_prob.dtype)
    return TokenBatch(log_prob.detach().clone().requires_grad_(), old_log_prob, mask, advantage, entropy)


def from_probabilities(
    old: Sequence[Sequence[float]],
    new: Sequence[Sequence[float]],
    advantage: Sequence[float],
    length: Sequence[int] | None = None,
    entropy: Sequence[Sequence[float]] | None = None,
    dtype: torch.dtype = torch.float64,
) -> TokenBatch:
    """A batch from rows of probabilities; the first `length` of each row are response tokens."""
    p, q = torch.tensor(old, dtype=dtype), torch.tensor(new, dtype=dtype)
    lengths = torch.tensor([p.shape[1]] * p.shape[0] if length is None else length)
    mask = torch.arange(p.shape[1]) < lengths.unsqueeze(1)
    h = None if entropy is None else torch.tensor(entropy, dtype=dtype)
    return batch_of(q.log(), p.log(), mask, torch.tensor(advantage, dtype=dtype), h)


def from_ratios(
    ratio: Sequence[float], advantage: Sequence[float], old: float = 0.01, dtype: torch.dtype = torch.float64
) -> TokenBatch:
    """Responses of one token each, with given ratios and one behavior probability."""
    return from_probabilities([[old]] * len(ratio), [[old * r] for r in ratio], advantage, dtype=dtype)


def random_batch(
    seed: int, responses: int = 8, tokens: int = 10, spread: float = 0.8, dtype: torch.dtype = torch.float64
) -> TokenBatch:
    """Unequal lengths (1 to `tokens`), probabilities of any size, log-ratios of deviation `spread`."""
    g = torch.Generator().manual_seed(seed)
    shape = (responses, tokens)
    length = torch.randint(1, tokens + 1, (responses, 1), generator=g)
    old = torch.rand(shape, generator=g, dtype=dtype).clamp(min=1e-3).log()
    new = (old + spread * torch.randn(shape, generator=g, dtype=dtype)).clamp(max=-1e-3)
    advantage = torch.randn(responses, generator=g, dtype=dtype)
    entropy = 3 * torch.rand(shape, generator=g, dtype=dtype)
    return batch_of(new, old, torch.arange(tokens) < length, advantage, entropy)


@dataclass
class Outcome:
    value: float
    gradient: Tensor
    summary: dict[str, float]


def evaluate(objective: Objective, batch: TokenBatch, stage: str | None = None) -> Outcome:
    """Loss, gradient and logged numbers of a whole mini-batch; of the first stage unless said."""
    loss = objective(batch, stage or objective.stages[0])
    (gradient,) = torch.autograd.grad(loss.value, batch.log_prob)
    return Outcome(loss.value.item(), gradient, loss.metrics.summary())


def rows(batch: TokenBatch, start: int, stop: int) -> TokenBatch:
    """Responses start..stop-1 as a micro-batch of its own."""
    s = slice(start, stop)
    return batch_of(batch.log_prob[s], batch.old_log_prob[s], batch.mask[s], batch.advantage[s], batch.entropy[s])


def split(batch: TokenBatch, size: int) -> list[TokenBatch]:
    """Micro-batches of `size` responses."""
    count = len(batch.advantage)
    return [rows(batch, start, min(start + size, count)) for start in range(0, count, size)]


def accumulate(objective: Objective, ranks: Sequence[Sequence[TokenBatch]], stage: str | None = None) -> Outcome:
    """Losses, gradients and metrics summed over the micro-batches of all ranks."""
    total, gradients, metrics = 0.0, [], None
    for batches, statistics in zip(ranks, pooled_statistics(objective, ranks), strict=True):
        for batch, pooled in zip(batches, statistics, strict=True):
            loss = objective.loss(batch, pooled, stage or objective.stages[0])
            loss.value.backward()
            total += loss.value.item()
            gradients.append(batch.log_prob.grad)
            metrics = loss.metrics if metrics is None else metrics + loss.metrics
    assert isinstance(metrics, UpdateMetrics)
    return Outcome(total, torch.cat(gradients), metrics.summary())


def assert_same(a: Outcome, b: Outcome, tolerance: float = 1e-11) -> None:
    """Equal loss, gradient and metrics."""
    assert a.value == pytest.approx(b.value, abs=tolerance)
    torch.testing.assert_close(a.gradient, b.gradient, rtol=0, atol=tolerance)
    assert a.summary == pytest.approx(b.summary, rel=1e-9, abs=1e-7, nan_ok=True)


def assert_identical(a: Outcome, b: Outcome) -> None:
    """Equal bit for bit, NaN where the other is NaN."""
    assert a.value == b.value
    assert torch.equal(a.gradient, b.gradient)
    assert a.summary.keys() == b.summary.keys()
    for key, value in a.summary.items():
        assert value == b.summary[key] or (math.isnan(value) and math.isnan(b.summary[key])), key


def on_policy(advantage: list[float], length: list[int]) -> TokenBatch:
    p = [[0.5] * max(length)] * len(length)
    return from_probabilities(p, p, advantage, length)


def widened(batch: TokenBatch, junk: float) -> TokenBatch:
    """The batch at twice its padding width, every padded slot holding `junk`."""
    extra = torch.full_like(batch.log_prob, junk).detach()

    def wide(x):
        return torch.cat([torch.where(batch.mask, x.detach(), junk), extra], dim=1)

    mask = torch.cat([batch.mask, torch.zeros_like(batch.mask)], dim=1)
    return batch_of(wide(batch.log_prob), wide(batch.old_log_prob), mask, batch.advantage, wide(batch.entropy))


def empty_batch(responses: int = 2, tokens: int = 10) -> TokenBatch:
    junk = torch.full((responses, tokens), math.nan, dtype=torch.float64)
    return batch_of(
        junk,
        junk,
        torch.zeros_like(junk, dtype=torch.bool),
        torch.full((responses,), math.nan).double(),
        junk,
    )
