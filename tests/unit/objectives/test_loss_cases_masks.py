"""Bugs users of other codes met: normalisation, padding, overflow (L01 to L12)."""

import math

import pytest
import torch
from objective_cases import (
    AGGREGATIONS,
    accumulate,
    assert_identical,
    assert_same,
    batch_of,
    empty_batch,
    evaluate,
    every_aggregation,
    every_method,
    every_variant,
    on_policy,
    paper,
    preset,
    random_batch,
    rows,
    split,
    widened,
)

from acpo.objectives.acpo import bin_widths


@every_aggregation
@pytest.mark.parametrize("size", [1, 2, 4])
def test_l01_micro_batch_size_changes_nothing(aggregation, size):
    batch, objective = random_batch(1), paper("dapo", aggregation=aggregation)
    assert_same(accumulate(objective, [split(batch, size)]), evaluate(objective, batch))


def test_l01_token_mean_divides_by_the_tokens_of_the_mini_batch():
    # One token with A = 1 and three with A = -1: (-1 + 3) / 4, where averaging micro-batches would give 0.
    parts = split(on_policy([1, -1], [1, 3]), 1)
    assert accumulate(paper("dapo", aggregation="token-mean"), [parts]).value == pytest.approx(0.5)


@pytest.mark.parametrize("name", ["grpo", "dapo", "acpo", "high_entropy", "low_entropy"])
def test_l02_balanced_groups_on_policy(name):
    batch = on_policy([1, -1], [2, 6])
    assert evaluate(paper(name), batch).value == pytest.approx(0, abs=1e-12)
    if "entropy" not in name:
        token_mean = evaluate(paper(name, aggregation="token-mean"), batch).value
        assert token_mean == pytest.approx((-2 + 6) / 8)


@pytest.mark.parametrize(
    ("aggregation", "loss"), list(zip(AGGREGATIONS, [0, 4 / 12, 4 / 4, 4 / (4 * 7)], strict=True)), ids=str
)
def test_l03_modes_differ_on_two_prompts(aggregation, loss):
    # Token losses sum to (-1 + 3) + (-3 + 5) = 4 over 12 tokens of 4 responses. A mean over the tokens of
    # each prompt, which no mode is, would give (2/4 + 2/8) / 2 = 0.375.
    batch = on_policy([1, -1, 1, -1], [1, 3, 3, 5])
    assert evaluate(paper("dapo", aggregation=aggregation), batch).value == pytest.approx(loss, abs=1e-12)


@every_aggregation
def test_l04_padded_width_is_no_divisor(aggregation):
    batch, objective = random_batch(2), paper("dapo", aggregation=aggregation)
    narrow, wide = evaluate(objective, batch), evaluate(objective, widened(batch, 0.0))
    assert narrow.value == pytest.approx(wide.value, abs=1e-12)
    width = batch.mask.shape[1]
    torch.testing.assert_close(wide.gradient[:, :width], narrow.gradient, rtol=0, atol=1e-14)
    assert not wide.gradient[:, width:].any()


@every_aggregation
@every_method
def test_l05_short_and_long_ranks(name, aggregation):
    g = torch.Generator().manual_seed(3)
    old = -2 * torch.rand(4, 500, generator=g, dtype=torch.float64)
    new = old + 0.4 * torch.randn(old.shape, generator=g, dtype=torch.float64)
    mask = torch.arange(500) < torch.tensor([[4], [6], [500], [500]])
    entropy = torch.rand(old.shape, generator=g, dtype=torch.float64)
    batch = batch_of(new, old, mask, torch.tensor([1.0, -1.0, 0.5, -2.0], dtype=torch.float64), entropy)
    objective = preset(name, aggregation=aggregation)
    ranks = [[rows(batch, 0, 2)], [rows(batch, 2, 4)]]
    assert_same(accumulate(objective, ranks), evaluate(objective, batch))


@every_variant
def test_l06_a_padding_micro_batch_changes_nothing(name, change):
    batch, objective = random_batch(4), preset(name, **change)
    padded = accumulate(objective, [[*split(batch, 4), empty_batch()]])
    plain = accumulate(objective, [split(batch, 4)])
    assert padded.value == plain.value
    assert torch.equal(padded.gradient[:8], plain.gradient)
    assert not padded.gradient[8:].any()
    assert padded.summary == pytest.approx(plain.summary, nan_ok=True, rel=1e-15)


@every_aggregation
@every_variant
def test_l07_nothing_but_padding(name, change, aggregation):
    for batch in (empty_batch(), empty_batch(0), empty_batch(2, 0)):
        outcome = evaluate(preset(name, **change, aggregation=aggregation), batch)
        assert outcome.value == 0
        assert not outcome.gradient.any()
        assert outcome.summary["tokens"] == outcome.summary["responses"] == outcome.summary["bin3/count"] == 0


@every_aggregation
@every_variant
def test_l07_an_empty_response_is_not_counted(name, change, aggregation):
    batch, objective = random_batch(5), preset(name, **change, aggregation=aggregation)
    hole = empty_batch(1)
    with_hole = batch_of(
        torch.cat([batch.log_prob, hole.log_prob]),
        torch.cat([batch.old_log_prob, hole.old_log_prob]),
        torch.cat([batch.mask, hole.mask]),
        torch.cat([batch.advantage, hole.advantage]),
        torch.cat([batch.entropy, hole.entropy]),
    )
    holed, plain = evaluate(objective, with_hole), evaluate(objective, batch)
    assert holed.value == pytest.approx(plain.value, abs=1e-12)
    torch.testing.assert_close(holed.gradient[:-1], plain.gradient, rtol=0, atol=1e-14)
    assert not holed.gradient[-1].any()
    assert holed.summary == pytest.approx(plain.summary, nan_ok=True)


@pytest.mark.parametrize("junk", [math.nan, math.inf, -math.inf])
@every_variant
def test_l08_masked_slots_may_hold_anything(name, change, junk):
    batch, objective = random_batch(6), preset(name, **change)

    def spoiled(x):
        return torch.where(batch.mask, x.detach(), junk)

    bad = batch_of(
        spoiled(batch.log_prob),
        spoiled(batch.old_log_prob),
        batch.mask,
        batch.advantage,
        spoiled(batch.entropy),
    )
    for stage in objective.stages:
        assert_identical(evaluate(objective, bad, stage), evaluate(objective, batch, stage))


@every_variant
def test_l09_extreme_log_ratios_stay_finite(name, change):
    inf = math.inf
    new = [0.0, -200.0, -inf, -1.0, -inf, -1.0, -210.0, -0.5]
    old = [-200.0, 0.0, -1.0, -inf, -inf, -1.1, -10.0, -0.4]
    mask = torch.tensor([[True] * 8, [True] * 8, [False] * 8])
    for dtype in (torch.float32, torch.float64):
        new_log_prob, old_log_prob = (
            torch.tensor([new] * 3, dtype=dtype),
            torch.tensor([old] * 3, dtype=dtype),
        )
        batch = batch_of(new_log_prob, old_log_prob, mask, torch.tensor([1.0, -1.0, 1.0], dtype=dtype))
        objective = preset(name, **change)
        for stage in objective.stages:
            outcome = evaluate(objective, batch, stage)
            assert math.isfinite(outcome.value)
            assert outcome.gradient.isfinite().all()
            finite = {key: value for key, value in outcome.summary.items() if not key.startswith("bin")}
            assert all(math.isfinite(value) for value in finite.values()), finite


def test_l09_both_probabilities_zero_is_a_ratio_of_one():
    impossible = torch.full((1, 1), -math.inf, dtype=torch.float64)
    batch = batch_of(impossible, impossible, torch.ones(1, 1, dtype=torch.bool), torch.ones(1).double())
    outcome = evaluate(paper("dapo"), batch)
    assert (outcome.value, outcome.summary["ratio_mean"], outcome.summary["approx_kl"]) == (-1, 1, 0)


def test_l09_the_clamp_bounds_the_ratio():
    batch = batch_of(torch.zeros(1, 1), torch.full((1, 1), -200.0), torch.ones(1, 1, dtype=torch.bool), -torch.ones(1))
    outcome = evaluate(paper("dapo"), batch)
    assert outcome.value == pytest.approx(math.exp(20), rel=1e-6)
    assert outcome.gradient.item() == 0
    terms = paper("dapo").terms(batch, paper("dapo").statistics(batch), "all")
    assert terms.coefficient.item() == 0


@every_variant
def test_l11_l12_l13_padding_width_and_content_leave_no_trace(name, change):
    batch, objective = random_batch(7), preset(name, **change)
    width = batch.mask.shape[1]
    plain = evaluate(objective, batch)
    for junk in (50.0, math.nan):
        wide = evaluate(objective, widened(batch, junk))
        assert wide.value == pytest.approx(plain.value, abs=1e-12)
        torch.testing.assert_close(wide.gradient[:, :width], plain.gradient, rtol=0, atol=1e-14)
        assert wide.summary == pytest.approx(plain.summary, nan_ok=True)


def test_l12_acpo_widths_ignore_padding():
    batch, objective = random_batch(8), paper("acpo")
    a, b = objective.statistics(batch).sums, objective.statistics(widened(batch, 3.0)).sums
    torch.testing.assert_close(bin_widths(a, objective.parameters), bin_widths(b, objective.parameters))
