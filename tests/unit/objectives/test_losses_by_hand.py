"""The hand-sized case: 13 tokens, two responses, and a two-pass bandit."""

import pytest
import torch
from objective_cases import GATE, batch_of, evaluate, from_probabilities, paper, released, rows

from acpo.objectives.acpo import bin_widths

OLD = [[0.10, 0.30, 0.52, 0.90, 0.25, 0.15, 0.95], [0.05, 0.12, 0.45, 0.85, 0.62, 0.55, 0.50]]
NEW = [[0.16, 0.49, 0.57, 0.97, 0.41, 0.06, 0.94], [0.22, 0.04, 0.33, 0.70, 0.66, 0.21, 0.50]]
ENTROPY = [[1.9, 1.1, 0.7, 0.2, 0.15, 2.3, 0.05], [2.8, 0.9, 1.4, 0.5, 1.0, 0.3, 9.9]]


@pytest.fixture
def batch():
    return from_probabilities(OLD, NEW, [1.2, -0.8], [7, 6], ENTROPY)


FLOOR = {"sigma_floor": 1e-8}
DUAL = {"dual_clip": 3.0}


@pytest.mark.parametrize(
    ("name", "change", "loss"),
    [
        ("grpo", {}, -0.034803),
        ("grpo", DUAL, -0.128136),
        ("dapo", {}, -0.060517),
        ("dapo", DUAL, -0.153851),
        ("cispo", {}, 0.223678),
        ("cispo", GATE, -0.038100),
        ("acpo", FLOOR, -0.134238),
        ("acpo", FLOOR | DUAL, -0.227572),
        ("acpo", FLOOR | DUAL | {"probability": "current"}, -0.300714),
        ("high_entropy", DUAL, 0.960000),
        ("low_entropy", DUAL, -0.342804),
    ],
)
def test_losses(batch, name, change, loss):
    assert evaluate(paper(name, **change), batch).value == pytest.approx(loss, abs=2e-6)


@pytest.mark.parametrize(("stage", "loss"), [("low_probability", -0.042682), ("high_probability", -0.092134)])
def test_lopti_passes(batch, stage, loss):
    assert evaluate(released("ar_lopti"), batch, stage).value == pytest.approx(loss, abs=2e-6)


@pytest.mark.parametrize(("row", "loss"), [(0, -1.446298), (1, 0.907053)])
def test_released_acpo_with_one_sequence_per_micro_batch(batch, row, loss):
    assert evaluate(released("acpo"), rows(batch, row, row + 1)).value == pytest.approx(loss, abs=2e-6)


def test_acpo_bins(batch):
    objective = paper("acpo", **FLOOR)
    moments = objective.statistics(batch).sums
    width = bin_widths(moments, objective.parameters)
    assert moments[:, 0].tolist() == [4, 2, 3, 1, 3]
    assert width.tolist() == pytest.approx([3.0, 0.210004, 1.074916, 0.2003, 0.516192], abs=2e-6)
    uncapped = bin_widths(moments, objective.parameters.model_copy(update={"clip_max": 99.0}))
    sigma = ((uncapped - 0.2) / 3).tolist()
    assert sigma == pytest.approx([1.647473, 0.003335, 0.291639, 0.0001, 0.105397], abs=1e-6)
    logged = evaluate(objective, batch).summary
    for number in range(5):
        for key in ("clip_width_low", "clip_width_high"):
            assert logged[f"bin{number + 1}/{key}"] == pytest.approx(width[number].item(), abs=1e-12)
    mean = (4 * 3.0 + 2 * 0.210004 + 3 * 1.074916 + 0.2003 + 3 * 0.516192) / 13
    assert logged["clip_width_mean"] == pytest.approx(mean, abs=1e-6)
    assert logged["clip_width_max"] == 3.0


def test_acpo_gradient(batch):
    expected = [
        [-0.137143, 0, -0.093956, -0.092381, 0, -0.034286, -0.084812],
        [0.293333, 0.022222, 0.048889, 0.054902, 0.070968, 0.025455, 0],
    ]
    gradient = evaluate(paper("acpo", **FLOOR), batch).gradient
    torch.testing.assert_close(gradient, torch.tensor(expected, dtype=gradient.dtype), rtol=0, atol=2e-6)
    assert gradient[0, 1] == gradient[0, 4] == gradient[1, 6] == 0


def test_logged_numbers_of_dapo(batch):
    logged = evaluate(paper("dapo"), batch).summary
    # Bin 1: ratios 1.6 and 0.4 with A > 0, 4.4 and 1/3 with A < 0: one clipped high, one low.
    ratios = [1.6, 0.4, 4.4, 1 / 3]
    mean = sum(ratios) / 4
    assert logged["bin1/count"] == 4
    assert logged["bin1/ratio_mean"] == pytest.approx(mean)
    assert logged["bin1/ratio_std"] == pytest.approx((sum((r - mean) ** 2 for r in ratios) / 4) ** 0.5)
    assert (logged["bin1/clip_high_fraction"], logged["bin1/clip_low_fraction"]) == (0.25, 0.25)
    assert logged["bin1/clip_fraction"] == 0.5
    # Coefficients -rho A gate: 0 (clipped), -0.48, 3.52, 0 (clipped).
    coefficients = [0, -0.48, 3.52, 0]
    mean = sum(coefficients) / 4
    std = (sum((c - mean) ** 2 for c in coefficients) / 4) ** 0.5
    assert logged["bin1/gradient_std"] == pytest.approx(std)
    # Clipped: 1.6, 1.63, 1.64 high; 1/3, 0.73, 0.38 low.
    assert logged["clip_fraction"] == pytest.approx(6 / 13)
    assert (logged["tokens"], logged["responses"], logged["selected_fraction"]) == (13, 2, 1)
    assert logged["entropy"] == pytest.approx((6.4 + 6.9) / 13)
    assert logged["ratio_max"] == pytest.approx(4.4)


def test_selected_fraction_of_the_entropy_methods(batch):
    # floor(0.2 * 7) + floor(0.2 * 6) = 2 and floor(0.8 * 7) + floor(0.8 * 6) = 9 of 13 tokens.
    assert evaluate(paper("high_entropy"), batch).summary["selected_fraction"] == pytest.approx(2 / 13)
    assert evaluate(paper("low_entropy"), batch).summary["selected_fraction"] == pytest.approx(9 / 13)


@pytest.mark.parametrize(
    ("advantage", "change", "loss"),
    [(1.0, {}, -1.627372), (-1.0, {}, 1.827372), (-1.0, DUAL, 1.427372)],
)
def test_width_above_one_never_gates_from_below(advantage, change, loss):
    old, new = [[0.10, 0.08, 0.15, 0.88, 0.92]], [[0.50, 0.01, 0.30, 0.90, 0.91]]
    batch = from_probabilities(old, new, [advantage])
    outcome = evaluate(paper("acpo", **FLOOR, **change), batch)
    assert outcome.value == pytest.approx(loss, abs=2e-6)
    assert outcome.summary["bin1/clip_width_low"] > 1
    assert outcome.summary["bin1/clip_low_fraction"] == 0


def test_lopti_two_passes_on_a_bandit():
    logits = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)
    actions = torch.tensor([0, 0, 1, 2])
    advantage = torch.tensor([1.0, -0.5, 0.5, -1.0], dtype=torch.float64)
    mask = torch.ones(4, 1, dtype=torch.bool)
    old = logits.log_softmax(0)[actions].unsqueeze(1)
    objective, losses, path = released("ar_lopti"), [], []
    for stage in objective.stages:
        leaf = logits.clone().requires_grad_()
        new = leaf.log_softmax(0)[actions].unsqueeze(1)
        batch = batch_of(new, old, mask, advantage)
        outcome = evaluate(objective, batch, stage)
        (gradient,) = torch.autograd.grad(new, leaf, outcome.gradient)
        logits = logits - gradient
        losses.append(outcome.value)
        path.append(logits.tolist())
    assert losses == pytest.approx([0.095448, -0.112427], abs=2e-6)
    assert path[0] == pytest.approx([1.054989, 0.115677, -0.170666], abs=2e-6)
    assert path[1] == pytest.approx([1.100672, 0.089587, -0.190260], abs=2e-6)
