"""Where the released code and the paper disagree (R1 to R10), both reproduced by named parameters."""

import math

import pytest
from objective_cases import (
    GATE,
    accumulate,
    empty_batch,
    evaluate,
    from_probabilities,
    from_ratios,
    paper,
    random_batch,
    released,
    split,
)

from acpo.objectives import pooled_statistics
from acpo.objectives.acpo import bin_widths


def widths(objective, batch) -> list[float]:
    return bin_widths(objective.statistics(batch).sums, objective.parameters).tolist()


def test_r1_bins_by_behavior_or_by_current_probability():
    # pi_old .19 and .15 are in bin 1; pi .57 (ratio 3) and .15 (ratio 1) in bins 3 and 1.
    batch = from_probabilities([[0.19, 0.15]], [[0.57, 0.15]], [1.0])
    by_behavior = widths(paper("acpo"), batch)
    by_current = widths(paper("acpo", probability="current"), batch)
    assert by_behavior[0] == pytest.approx(3.0)  # sigma of (3, 1) is 1: 3.2, capped
    assert math.isnan(by_behavior[2])
    assert (by_current[0], by_current[2]) == pytest.approx((0.2, 0.2))
    assert evaluate(paper("acpo"), batch).gradient[0, 0] == pytest.approx(-1.5)
    assert evaluate(paper("acpo", probability="current"), batch).gradient[0, 0] == 0
    # Logged bins stay on the behavior probability.
    logged = evaluate(paper("acpo", probability="current"), batch).summary
    assert (logged["bin1/count"], logged["bin3/count"]) == (2, 0)


@pytest.mark.parametrize("pool", ["microbatch", "ranks"])
def test_r2_statistics_depend_on_the_micro_batch_only_if_asked(pool):
    batch, text, code = random_batch(20), paper("acpo"), paper("acpo", pool=pool)
    whole = evaluate(text, batch)
    assert accumulate(text, [split(batch, 2)]).summary == pytest.approx(whole.summary, nan_ok=True)
    apart = accumulate(code, [split(batch, 2)])
    assert apart.summary["clip_width_mean"] < whole.summary["clip_width_mean"] - 0.01


def test_r2_pool_over_ranks_joins_the_ith_micro_batches():
    # Ratios 1 and 3 meet in step 1 (sigma 1), 1 and 2 in step 2 (sigma 0.5); each rank alone would mix them.
    objective = paper("acpo", pool="ranks", clip_max=9.0)
    ranks = [[from_ratios([r], [1.0]) for r in ratios] for ratios in ((1.0, 1.0), (3.0, 2.0))]
    pooled = pooled_statistics(objective, ranks)
    got = [[bin_widths(one.sums, objective.parameters)[0].item() for one in rank] for rank in pooled]
    assert got == [pytest.approx([3.2, 1.7])] * 2
    assert {one.responses.item() for rank in pooled for one in rank} == {4}
    with pytest.raises(ValueError, match=r"as many micro-batches on every rank, got \[2, 1\]"):
        pooled_statistics(objective, [ranks[0], ranks[1][:1]])


def test_r3_a_bin_of_one_token_has_the_base_width():
    batch = from_probabilities([[0.1, 0.9]], [[0.15, 0.8]], [1.0])
    text, code = widths(paper("acpo"), batch), widths(paper("acpo", sigma_floor=1e-8), batch)
    assert (text[0], text[4]) == (0.2, 0.2)
    assert (code[0], code[4]) == pytest.approx((0.2003, 0.2003), abs=1e-12)
    assert all(math.isnan(width) for width in text[1:4])
    logged = evaluate(paper("acpo"), batch).summary
    assert math.isnan(logged["bin2/clip_width_high"])
    assert logged["bin2/count"] == 0


def test_r4_width_is_clamped_and_the_lower_bound_may_be_negative():
    batch = from_ratios([1.0, 9.0], [-1.0, -1.0])
    assert widths(paper("acpo"), batch)[0] == 3.0  # .2 + 3 * 4
    assert widths(paper("acpo", alpha=1.0, clip_min=0.05, clip_max=0.5), batch)[0] == 0.5
    assert widths(paper("acpo", alpha=0.0, clip_base=0.01, clip_min=0.05), batch)[0] == 0.05
    low = from_ratios([1e-8, 9.0], [-1.0, 0.0])
    assert evaluate(paper("acpo"), low).summary["clip_fraction"] == 0


@pytest.mark.parametrize("name", ["grpo", "dapo", "acpo", "high_entropy", "low_entropy", "ar_lopti"])
def test_r5_dual_clip_bounds_negative_advantages_when_released(name):
    batch = from_ratios([50.0], [-1.0])
    scale = 0.3 * 0.01 + 0.7 if name == "ar_lopti" else 1.0
    assert evaluate(paper(name), batch).value == pytest.approx(50 * scale)
    assert evaluate(released(name), batch).value == pytest.approx(3 * scale)


def test_r6_released_cispo_gates_strictly():
    ratio, advantage = [1.31, 1.29, 0.79, 0.81, 1.31, 0.79], [1.0, 1.0, -1.0, -1.0, -1.0, 1.0]
    outcome = evaluate(released("cispo"), from_ratios(ratio, advantage))
    expected = [0, -1.29, 0, 0.81, 1.31, -0.79]
    assert outcome.gradient.flatten().tolist() == pytest.approx([g / 6 for g in expected])
    assert outcome.summary["clip_fraction"] == pytest.approx(2 / 6)
    assert evaluate(paper("cispo"), from_ratios(ratio, advantage)).gradient.all()
    # On the bound itself a token is kept.
    batch = from_ratios([1.5, 0.75], [1.0, -1.0])
    high, low = (batch.log_prob.detach() - batch.old_log_prob).exp().flatten().tolist()
    gate = {"gate": {"clip_low": 1 - low, "clip_high": high - 1}}
    assert (1 + gate["gate"]["clip_high"], 1 - gate["gate"]["clip_low"]) == (high, low)
    assert evaluate(paper("cispo", **gate), batch).gradient.all()
    assert GATE["gate"] == {"clip_low": 0.2, "clip_high": 0.3}


@pytest.mark.parametrize("name", ["high_entropy", "low_entropy", "dapo"])
def test_r7_an_all_masked_row_gives_no_nan(name):
    outcome = evaluate(released(name), empty_batch())
    assert outcome.value == 0
    assert not outcome.gradient.any()


def test_r7_selection_replaces_the_denominator():
    p = [[0.5] * 10]
    batch = from_probabilities(p, p, [1.0])
    assert evaluate(released("high_entropy"), batch).value == pytest.approx(-1.0)
    assert evaluate(released("high_entropy", denominator="all"), batch).value == pytest.approx(-0.2)


def test_r8_selection_is_per_response_with_at_least_one_token():
    p = [[0.5] * 4] * 2
    batch = from_probabilities(p, p, [1.0, 1.0], [4, 3], [[9.0, 8.0, 7.0, 6.0], [0.1, 0.3, 0.2, 50.0]])
    gradient = evaluate(released("high_entropy"), batch).gradient
    assert gradient.tolist() == [[-0.5, 0, 0, 0], [0, -0.5, 0, 0]]
    # Bottom 80 % of 4 and 3 tokens: 3 and 2.
    gradient = evaluate(released("low_entropy"), batch).gradient
    assert gradient.bool().tolist() == [[False, True, True, True], [True, False, True, False]]


def test_r9_released_ar_lopti_clips_at_a_lower_bound():
    batch = from_ratios([1.27], [1.0])
    scale = 0.3 * 0.01 + 0.7
    assert evaluate(paper("ar_lopti"), batch).value == pytest.approx(-1.27 * scale)
    assert evaluate(released("ar_lopti"), batch).value == pytest.approx(-1.24 * scale)


def test_r9_negative_weight_acts_on_negative_advantages_only():
    batch = from_ratios([1.0, 1.0], [1.0, -1.0])
    scale = 0.3 * 0.01 + 0.7
    gradient = evaluate(paper("ar_lopti", w_neg=0.5), batch).gradient.flatten()
    assert gradient.tolist() == pytest.approx([-scale / 2, 0.5 * scale / 2])


def test_r10_one_outlier_saturates_the_width():
    batch = from_probabilities([[1e-30] + [0.1] * 99], [[1.0] + [0.1] * 99], [1.0])
    logged = evaluate(paper("acpo", clip_max=1e12), batch).summary
    rho = math.exp(20)
    assert logged["ratio_max"] == pytest.approx(rho)
    assert logged["bin1/ratio_std"] == pytest.approx((rho - 1) * math.sqrt(99) / 100, rel=1e-9)
    assert logged["bin1/clip_width_high"] == pytest.approx(0.2 + 3 * (rho - 1) * math.sqrt(99) / 100, rel=1e-9)
    assert evaluate(paper("acpo"), batch).summary["bin1/clip_width_high"] == 3
