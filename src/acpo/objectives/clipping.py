"""The clipped surrogate, token by token."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from acpo.objectives.batch import LOG_RATIO_LIMIT, TokenBatch


@dataclass(frozen=True)
class TokenTerms:
    """Token losses of one micro-batch with what is logged about them; (responses, tokens) unless said.

    Only `loss` carries a gradient. Slots outside the batch mask hold finite values that nobody reads.

    Args:
        loss: token losses; 0 where a token is not selected.
        ratio: rho = pi / pi_old.
        log_ratio: log rho, clamped.
        clip_low: lower clip width eps_l.
        clip_high: upper clip width eps_h.
        clipped_low: bool, negative advantage and gated because rho < 1 - eps_l.
        clipped_high: bool, positive advantage and gated because rho > 1 + eps_h.
        dual_clipped: bool, negative advantage and gated because rho > dual_clip.
        coefficient: d loss / d log_prob of the token, before aggregation.
        selected: bool, tokens the method trains on in this stage.
        length: (responses,) tokens each response counts in its denominator.
        tokens: scalar, tokens counted in the denominator over the mini-batch.
    """

    loss: Tensor
    ratio: Tensor
    log_ratio: Tensor
    clip_low: Tensor
    clip_high: Tensor
    clipped_low: Tensor
    clipped_high: Tensor
    dual_clipped: Tensor
    coefficient: Tensor
    selected: Tensor
    length: Tensor
    tokens: Tensor

    def restricted(self, selected: Tensor) -> "TokenTerms":
        """The same terms with the loss and gradient of tokens outside `selected` exactly 0."""
        loss = torch.where(selected, self.loss, 0.0)
        coefficient = torch.where(selected, self.coefficient, 0.0)
        return replace(self, loss=loss, coefficient=coefficient, selected=selected)


def clipped_terms(
    batch: TokenBatch,
    tokens: Tensor,
    clip_low: float | Tensor,
    clip_high: float | Tensor,
    dual_clip: float | None,
    advantage: Tensor | None = None,
) -> TokenTerms:
    """Clipped surrogate loss: -min(rho A, clip(rho, 1 - eps_l, 1 + eps_h) A) (Sec. 2, Eq. 13).

    The minimum binds above the window for A > 0 and below it for A < 0, so each token has one ratio clamp:
    [-inf, 1 + eps_h] for A >= 0, [1 - eps_l, dual_clip] for A < 0. Its gradient is -rho A inside, bounds
    included, and exactly 0 outside.

    Args:
        batch: the micro-batch.
        tokens: scalar, response tokens of the mini-batch.
        clip_low: eps_l, a number or (responses, tokens) without gradient.
        clip_high: eps_h, likewise.
        dual_clip: c; for A < 0 the surrogate is at least c A (not in Eq. 13; 3 in the released code). None
            switches it off.
        advantage: (responses, tokens) advantages of a method that changes them; by default the batch's.

    Returns:
        The terms of every response token.
    """
    advantage = batch.token_advantage if advantage is None else advantage
    log_ratio = batch.log_ratio()
    ratio = log_ratio.exp()
    width_low, width_high = as_width(clip_low, ratio), as_width(clip_high, ratio)
    negative = advantage < 0
    lower = torch.where(negative, 1 - width_low, -torch.inf)
    upper = torch.where(negative, torch.inf if dual_clip is None else dual_clip, 1 + width_high)
    loss = torch.where(batch.mask, -advantage * ratio.clamp(lower, upper), 0.0)
    ratio, log_ratio = ratio.detach(), log_ratio.detach()
    below, above = ratio < lower, ratio > upper
    flat = below | above | (log_ratio.abs() >= LOG_RATIO_LIMIT)
    return TokenTerms(
        loss=loss,
        ratio=ratio,
        log_ratio=log_ratio,
        clip_low=width_low,
        clip_high=width_high,
        clipped_low=below,
        clipped_high=above & (advantage > 0),
        dual_clipped=above & negative,
        coefficient=torch.where(flat, 0.0, -advantage * ratio),
        selected=batch.mask,
        length=batch.length,
        tokens=tokens,
    )


def as_width(width: float | Tensor, like: Tensor) -> Tensor:
    """A clip width as a tensor of the shape and dtype of `like`."""
    return torch.full_like(like, width, requires_grad=False) if isinstance(width, float) else width.to(like.dtype)
