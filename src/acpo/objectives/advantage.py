"""Group-relative advantage."""

import torch
from torch import Tensor

STD_EPSILON = 1e-6  # GRPO's constant, added to the standard deviation, outside the root


def group_advantage(reward: Tensor, group: Tensor) -> Tensor:
    """Advantage of each response in its prompt group: A = (r - mean) / (std + 1e-6), std with ddof 1 (GRPO).

    A group whose rewards are all equal gets exactly 0, and so does a group of one (some codes give it mean
    0 and standard deviation 1, that is A = r). A reward that is not finite, such as a grader that failed,
    is left out of its group's mean and standard deviation and gets advantage 0; count them with
    `reward.isfinite()`.

    Args:
        reward: (responses,) rewards.
        group: (responses,) integer ids; responses with equal ids answer the same prompt, wherever they stand.

    Returns:
        (responses,) advantages, in the dtype of `reward`.

    Raises:
        ValueError: shapes are not both (responses,).
    """
    if reward.dim() != 1 or reward.shape != group.shape:
        raise ValueError(
            "reward and group: expected the same shape (responses,), "
            f"got {tuple(reward.shape)} and {tuple(group.shape)}"
        )
    valid = reward.isfinite()
    ids, member = torch.unique(group, return_inverse=True)
    value = torch.where(valid, reward, 0).double()

    def per_group(x: Tensor) -> Tensor:
        return torch.zeros(len(ids), dtype=x.dtype, device=x.device).index_add(0, member, x)

    count = per_group(valid.double())
    centred = value - (per_group(value) / count.clamp(min=1))[member]
    squares = per_group(torch.where(valid, centred, 0).square())
    std = (squares / (count - 1).clamp(min=1)).sqrt()
    kept = valid & _varies(value, valid, member, len(ids))
    return torch.where(kept, centred / (std[member] + STD_EPSILON), 0).to(reward.dtype)


def _varies(value: Tensor, valid: Tensor, member: Tensor, groups: int) -> Tensor:
    # By comparing rewards: the rounding of a mean would give equal rewards a tiny advantage.
    def extreme(worst: float, reduce: str) -> Tensor:
        start = value.new_full((groups,), worst)
        return start.scatter_reduce(0, member, torch.where(valid, value, worst), reduce)

    return (extreme(-torch.inf, "amax") > extreme(torch.inf, "amin"))[member]
