"""Our AdamW is torch's, bit for bit."""

import torch

from acpo.engines.tiny.optimizer import EPSILON, AdamW


def test_steps_equal_those_of_torch() -> None:
    generator = torch.Generator().manual_seed(0)
    ours = {
        name: torch.randn(shape, generator=generator).requires_grad_()
        for name, shape in {"a": (3, 4), "b": (5,)}.items()
    }
    theirs = [weight.detach().clone().requires_grad_() for weight in ours.values()]
    reference = torch.optim.AdamW(theirs, lr=0.0, betas=(0.9, 0.98), weight_decay=0.01, eps=EPSILON, foreach=True)
    optimizer = AdamW(ours, (0.9, 0.98), 0.01)
    for rate in (3e-3, 1e-3, 5e-2, 1e-2):
        for weight, other in zip(ours.values(), theirs, strict=True):
            weight.grad = torch.randn(weight.shape, generator=generator)
            other.grad = weight.grad.clone()
        before = [weight.detach().clone() for weight in ours.values()]
        reference.param_groups[0]["lr"] = rate
        reference.step()
        optimizer.step(rate)
        for weight, other, old in zip(ours.values(), theirs, before, strict=True):
            assert torch.equal(weight, other)
            assert not torch.equal(weight, old)


def test_one_step_by_hand() -> None:
    """First step: both corrected moments are g and g^2, so a weight moves by -rate (sign(g) + decay * weight)."""
    weight = torch.tensor([2.0, -1.0], requires_grad=True)
    weight.grad = torch.tensor([0.5, -4.0])
    AdamW({"w": weight}, (0.9, 0.999), 0.1).step(0.01)
    torch.testing.assert_close(weight.detach(), torch.tensor([2 - 0.01 * (1 + 0.2), -1 - 0.01 * (-1 - 0.1)]))


def test_state_survives_a_round_trip_and_is_a_copy() -> None:
    weight = torch.tensor([1.0], requires_grad=True)
    weight.grad = torch.tensor([1.0])
    one, two = AdamW({"w": weight}, (0.9, 0.999), 0.0), AdamW({"w": weight}, (0.9, 0.999), 0.0)
    one.step(0.1)
    kept = one.tensors()
    assert sorted(kept) == ["w/first_moment", "w/second_moment", "w/step"]
    two.load(kept)
    one.step(0.1)
    assert two.tensors()["w/step"].item() == 1
    assert one.tensors()["w/step"].item() == 2
