"""Properties of the losses over random batches."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from objective_cases import (
    accumulate,
    assert_same,
    evaluate,
    every_aggregation,
    every_variant,
    from_ratios,
    paper,
    preset,
    random_batch,
    rows,
    split,
    widened,
)

from acpo.objectives.binning import bin_index

seeds = st.integers(0, 10**6)
quick = settings(derandomize=True, deadline=None, max_examples=6)
thorough = settings(derandomize=True, deadline=None, max_examples=40)


@every_aggregation
@every_variant
@quick
@given(seed=seeds, size=st.sampled_from([1, 2, 4]), cut=st.integers(1, 7), spread=st.sampled_from([0.1, 1.5]))
def test_any_split_into_micro_batches_and_ranks_is_the_mini_batch(name, change, aggregation, seed, size, cut, spread):
    batch, objective = random_batch(seed, spread=spread), preset(name, **change, aggregation=aggregation)
    for stage in objective.stages:
        whole = evaluate(objective, batch, stage)
        assert_same(accumulate(objective, [split(batch, size)], stage), whole)
        ranks = [split(rows(batch, 0, cut), size), split(rows(batch, cut, 8), size)]
        assert_same(accumulate(objective, ranks, stage), whole)


@every_variant
@quick
@given(seed=seeds, junk=st.sampled_from([math.nan, math.inf, -math.inf, 0.0, 1e30]))
def test_padding_leaves_no_trace(name, change, seed, junk):
    batch, objective = random_batch(seed), preset(name, **change)
    width = batch.mask.shape[1]
    for stage in objective.stages:
        plain, wide = evaluate(objective, batch, stage), evaluate(objective, widened(batch, junk), stage)
        assert not wide.gradient[:, width:].any()
        wide.gradient = wide.gradient[:, :width]
        assert_same(wide, plain)


@thorough
@given(seed=seeds, base=st.floats(0.0, 1.5), dual=st.sampled_from([None, 3.0]))
def test_acpo_without_alpha_is_symmetric_clipping(seed, base, dual):
    batch = random_batch(seed)
    adaptive = evaluate(paper("acpo", alpha=0.0, clip_base=base, dual_clip=dual), batch)
    assert_same(adaptive, evaluate(paper("grpo", clip=base, dual_clip=dual), batch), 1e-14)


@every_variant
@quick
@given(seed=seeds)
def test_gradient_is_the_logged_coefficient_and_zero_where_the_gate_is_closed(name, change, seed):
    batch, objective = random_batch(seed, spread=1.5), preset(name, **change)
    statistics = objective.statistics(batch)
    for stage in objective.stages:
        terms = objective.terms(batch, statistics, stage)
        (gradient,) = torch.autograd.grad(terms.loss.sum(), batch.log_prob)
        inside = torch.where(batch.mask, terms.coefficient, 0.0)
        torch.testing.assert_close(gradient, inside, rtol=1e-12, atol=0)
        closed = terms.clipped_low | terms.clipped_high | terms.dual_clipped | ~terms.selected | ~batch.mask
        assert not gradient[closed].any()
        assert gradient[~closed].all()


@pytest.mark.parametrize("name", ["grpo", "dapo", "acpo", "high_entropy", "low_entropy", "ar_lopti"])
@quick
@given(seed=seeds)
def test_gradient_is_the_derivative_of_the_loss(name, seed):
    batch, objective = random_batch(seed, responses=3, tokens=4), paper(name)
    statistics = objective.statistics(batch)  # held fixed: a clip width carries no gradient

    def value(log_prob):
        moved = type(batch)(log_prob, batch.old_log_prob, batch.mask, batch.advantage, batch.entropy)
        return objective.loss(moved, statistics, objective.stages[0]).value

    assert torch.autograd.gradcheck(value, batch.log_prob, eps=1e-7, atol=1e-5)


@thorough
@given(seed=seeds)
def test_the_two_lopti_passes_share_the_tokens(seed):
    batch, objective = random_batch(seed), paper("ar_lopti", threshold=0.5)
    passes = [evaluate(objective, batch, stage) for stage in objective.stages]
    everything = evaluate(paper("ar_lopti", threshold=1 - 1e-9), batch, "low_probability")
    assert sum(p.value for p in passes) == pytest.approx(everything.value, abs=1e-12)
    torch.testing.assert_close(passes[0].gradient + passes[1].gradient, everything.gradient)
    assert sum(p.summary["selected_fraction"] for p in passes) == pytest.approx(1)


@settings(derandomize=True, deadline=None, max_examples=150)
@given(
    seed=seeds,
    spread=st.floats(0.01, 3.0),
    outliers=st.integers(0, 6),
    size=st.floats(1.0, 60.0),
    sign=st.sampled_from([-1.0, 1.0]),
)
def test_chebyshev_bounds_the_clip_fraction_of_every_bin(seed, spread, outliers, size, sign):
    g = torch.Generator().manual_seed(seed)
    ratio = (spread * torch.randn(60, generator=g)).exp()
    ratio = ratio / ratio.mean()
    ratio[:outliers] = size
    batch = from_ratios(ratio.tolist(), [sign] * 60)
    logged = evaluate(paper("acpo", clip_max=1e9), batch).summary
    if abs(logged["bin1/ratio_mean"] - 1) <= 0.2:
        assert logged["bin1/clip_fraction"] <= 1 / 9


def test_chebyshev_is_not_vacuous():
    # 1 of 60 tokens at 12: mean 1.18, sigma 1.41, width 4.4: clipped by ACPO, and allowed by the bound.
    batch = from_ratios([12.0] + [1.0] * 59, [1.0] * 60)
    logged = evaluate(paper("acpo", clip_max=1e9), batch).summary
    assert logged["bin1/clip_fraction"] == pytest.approx(1 / 60)
    # A fixed width has no such bound: every third ratio off by 0.5 clips a third.
    noisy = from_ratios([1.5, 1.0, 0.5] * 20, [1.0] * 60)
    assert evaluate(paper("grpo"), noisy).summary["bin1/clip_fraction"] == pytest.approx(1 / 3)
    assert evaluate(paper("acpo"), noisy).summary["bin1/clip_fraction"] == 0


@pytest.mark.parametrize("bins", [1, 2, 3, 4, 5, 6, 7, 10])
def test_bin_edges_land_where_the_floor_says(bins):
    edges = torch.tensor([[k / bins for k in range(bins + 1)]], dtype=torch.float64)
    mask = torch.ones_like(edges, dtype=torch.bool)
    expected = [min(bins, k + 1) - 1 for k in range(bins + 1)]
    for dtype in (torch.float32, torch.float64):
        assert bin_index(edges.to(dtype), mask, bins)[0].tolist() == expected


def test_bins_of_odd_probabilities():
    p = torch.tensor([[0.0, 1e-40, 0.1999, 0.2001, 1.0, 1.0000001, 3.0, math.inf, 0.5]])
    mask = torch.tensor([[True] * 8 + [False]])
    assert bin_index(p, mask, 5)[0].tolist() == [0, 0, 0, 1, 4, 4, 4, 4, 5]
