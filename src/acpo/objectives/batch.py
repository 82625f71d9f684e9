"""The tokens of one micro-batch, and the quantities every objective derives from them."""

from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from acpo.objectives.binning import bin_index

LOG_RATIO_LIMIT = 20.0  # the released code clamps log rho to this before exp: rho never exceeds 4.9e8
LOG_PROB_FLOOR = -1e4  # stands for log 0, so that -inf minus -inf is 0 rather than NaN


@dataclass(frozen=True)
class TokenBatch:
    """Responses of one micro-batch, padded to a common width.

    A padded slot may hold anything, NaN included: nothing outside `mask` reaches a result. A response whose
    mask is all false contributes nothing and is not counted among the responses.

    Args:
        log_prob: (responses, tokens) log pi of the sampled token under the current policy, in nats; carries
            the gradient.
        old_log_prob: (responses, tokens) log pi_old under the behavior policy, in nats.
        mask: (responses, tokens) bool: response tokens, EOS included, padding excluded.
        advantage: (responses,) one advantage per response, shared by its tokens.
        entropy: (responses, tokens) entropy of the current policy, in nats, without gradient.

    Raises:
        ValueError: shapes disagree, or `mask` is not bool.
    """

    log_prob: Tensor
    old_log_prob: Tensor
    mask: Tensor
    advantage: Tensor
    entropy: Tensor
    _bins: dict[int, Tensor] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        shape = self.log_prob.shape
        if len(shape) != 2:
            raise ValueError(f"log_prob: expected the shape (responses, tokens), got {tuple(shape)}")
        for name in ("old_log_prob", "mask", "entropy"):
            if getattr(self, name).shape != shape:
                got = tuple(getattr(self, name).shape)
                raise ValueError(f"{name}: expected the shape of log_prob, {tuple(shape)}, got {got}")
        if self.advantage.shape != shape[:1]:
            got = tuple(self.advantage.shape)
            raise ValueError(f"advantage: expected one number per response, ({shape[0]},), got {got}")
        if self.mask.dtype != torch.bool:
            raise ValueError(f"mask: expected dtype torch.bool, got {self.mask.dtype}")

    def current_log_prob(self) -> Tensor:
        """Log pi, (responses, tokens), with gradient; 0 at padding, at least `LOG_PROB_FLOOR` elsewhere."""
        return self._clean(self.log_prob)

    def log_ratio(self) -> Tensor:
        """Log rho = log pi - log pi_old clamped to +-20, (responses, tokens), with gradient; 0 at padding.

        Where both probabilities are 0 the ratio is taken as 1. Where the clamp acts the gradient is 0.
        """
        difference = self.current_log_prob() - self._old
        return difference.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)

    @cached_property
    def length(self) -> Tensor:
        """(responses,) number of response tokens."""
        return self.mask.sum(dim=1)

    @cached_property
    def token_advantage(self) -> Tensor:
        """(responses, 1) advantage; 0 for a response without tokens."""
        return torch.where(self.length > 0, self.advantage.detach(), 0.0).unsqueeze(1).to(self._dtype)

    @cached_property
    def behavior_prob(self) -> Tensor:
        """(responses, tokens) pi_old; 1 at padding."""
        return self._old.exp()

    @cached_property
    def token_entropy(self) -> Tensor:
        """(responses, tokens) entropy in nats; 0 at padding."""
        return torch.where(self.mask, self.entropy.detach(), 0.0)

    def behavior_bins(self, bins: int) -> Tensor:
        """(responses, tokens) zero-based bin of pi_old among `bins`, `bins` at padding; computed once."""
        if bins not in self._bins:
            self._bins[bins] = bin_index(self.behavior_prob, self.mask, bins)
        return self._bins[bins]

    @property
    def _dtype(self) -> torch.dtype:
        return torch.promote_types(self.log_prob.dtype, torch.float32)

    @cached_property
    def _old(self) -> Tensor:
        return self._clean(self.old_log_prob.detach())

    def _clean(self, log_prob: Tensor) -> Tensor:
        # Selected before any arithmetic, because NaN * 0 is NaN, backward too.
        return torch.where(self.mask, log_prob, 0.0).to(self._dtype).clamp(min=LOG_PROB_FLOOR)
