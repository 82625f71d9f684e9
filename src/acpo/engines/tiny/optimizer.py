"""AdamW on named weights."""

import torch
from torch import Tensor
from torch.optim.adamw import adamw

from acpo.engines.tiny.model import Weights

EPSILON = 1e-8
_KINDS = ("step", "first_moment", "second_moment")


class AdamW:
    """torch's AdamW (decoupled weight decay, bias correction), with its state as named tensors.

    torch's own functional form: making a `torch.optim.Optimizer` imports torch's compiler, a second of every job.
    """

    def __init__(self, weights: Weights, betas: tuple[float, float], weight_decay: float):
        """Start with zero moments.

        Args:
            weights: What `step` changes in place; their `grad` is read.
            betas: Decay of the first and the second moment.
            weight_decay: Share of a weight that a step at learning rate 1 would take away.
        """
        self._weights, self._betas, self._weight_decay = weights, betas, weight_decay
        self._state = {
            "step": {name: torch.zeros(()) for name in weights},
            "first_moment": {name: torch.zeros_like(weight) for name, weight in weights.items()},
            "second_moment": {name: torch.zeros_like(weight) for name, weight in weights.items()},
        }

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for weight in self._weights.values():
            weight.grad = None

    @torch.no_grad()
    def step(self, learning_rate: float) -> None:
        """Make one step with the weights' gradients; a weight without one stays."""
        names = [name for name, weight in self._weights.items() if weight.grad is not None]
        steps, first, second = ([self._state[kind][name] for name in names] for kind in _KINDS)
        weights = [self._weights[name] for name in names]
        adamw(
            weights, [weight.grad for weight in weights if weight.grad is not None], first, second, [], steps,
            foreach=True, amsgrad=False, beta1=self._betas[0], beta2=self._betas[1], lr=learning_rate,
            weight_decay=self._weight_decay, eps=EPSILON, maximize=False,
        )  # fmt: skip

    def tensors(self) -> dict[str, Tensor]:
        """Return the state as tensors named `<weight>/<kind>`."""
        return {f"{name}/{kind}": tensor for kind in _KINDS for name, tensor in self._state[kind].items()}

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Restore what `tensors` returned."""
        for key, tensor in tensors.items():
            name, kind = key.rsplit("/", 1)
            self._state[kind][name] = tensor.clone()
