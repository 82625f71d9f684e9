"""Bugs users of other codes met: ratio, clipping, shapes (L21 to L32)."""

import math

import pytest
import torch
from objective_cases import evaluate, every_method, from_probabilities, from_ratios, paper, preset, random_batch

from acpo.objectives import TokenBatch


@every_method
def test_l21_first_update_is_exactly_on_policy(name):
    batch = random_batch(11, spread=0.0, dtype=torch.float32)
    logged = evaluate(preset(name), batch).summary
    assert (logged["ratio_mean"], logged["ratio_max"], logged["approx_kl"]) == (1, 1, 0)
    assert logged["clip_fraction"] == 0
    assert all(logged[f"bin{b}/ratio_std"] == 0 for b in range(1, 6) if logged[f"bin{b}/count"])


def test_l21_acpo_on_policy_keeps_the_base_width():
    batch = random_batch(11, spread=0.0)
    assert evaluate(paper("acpo"), batch).summary["clip_width_max"] == 0.2
    floored = evaluate(paper("acpo", sigma_floor=1e-8), batch).summary["clip_width_max"]
    assert floored == pytest.approx(0.2 + 3e-4, abs=1e-9)


def test_l22_a_moved_policy_shows_in_the_ratio():
    ratios = [0.8, 1.0, 1.3]
    logged = evaluate(paper("dapo"), from_ratios(ratios, [1.0] * 3)).summary
    mean = sum(ratios) / 3
    assert logged["bin1/ratio_std"] == pytest.approx((sum((r - mean) ** 2 for r in ratios) / 3) ** 0.5)


def test_l25_clip_fraction_follows_the_sign_of_the_advantage():
    ratio = [1.5, 1.5, 0.5, 0.5, 1.5, 0.5]
    advantage = [1.0, -1.0, 1.0, -1.0, 0.0, 0.0]
    outcome = evaluate(paper("dapo"), from_ratios(ratio, advantage))
    assert outcome.summary["clip_fraction"] == pytest.approx(2 / 6)
    assert outcome.summary["bin1/clip_high_fraction"] == pytest.approx(1 / 6)
    assert outcome.summary["bin1/clip_low_fraction"] == pytest.approx(1 / 6)
    assert outcome.gradient.flatten().tolist() == pytest.approx([0, 1.5 / 6, -0.5 / 6, 0, 0, 0])


def test_l26_dual_clip_is_a_switch():
    batch = from_ratios([10.0, 2.5], [-1.0, -1.0])
    plain, dual = evaluate(paper("dapo"), batch), evaluate(paper("dapo", dual_clip=3.0), batch)
    assert (plain.value, dual.value) == pytest.approx((12.5 / 2, 5.5 / 2))
    assert plain.gradient.flatten().tolist() == pytest.approx([5, 1.25])
    assert dual.gradient.flatten().tolist() == pytest.approx([0, 1.25])
    assert (plain.summary["dual_clip_fraction"], dual.summary["dual_clip_fraction"]) == (0, 0.5)


def test_l26_acpo_width_may_exceed_the_dual_clip():
    # sigma of (1, 8) is 3.5, so the width is capped at 3 and the window ends at 4, above the dual clip's 3.
    for advantage, ratio, dual, coefficient in (
        (1.0, 3.5, 3.0, -3.5),
        (-1.0, 3.5, 3.0, 0.0),
        (-1.0, 3.5, None, 3.5),
    ):
        batch = from_ratios([ratio, 1.0, 8.0], [advantage, 0.0, 0.0])
        outcome = evaluate(paper("acpo", dual_clip=dual, clip_base=3.0), batch)
        assert outcome.summary["clip_width_max"] == 3
        assert outcome.gradient[0].item() == pytest.approx(coefficient / 3)


def test_l27_cispo_keeps_the_gradient_of_a_far_token():
    batch = from_ratios([5.0, 1.2, 0.1, 5.0], [1.0, 1.0, 1.0, -2.0])
    outcome = evaluate(paper("cispo"), batch)
    expected = [-1.45 / 4, -1.2 / 4, -0.1 / 4, 2 * 1.45 / 4]
    assert outcome.gradient.flatten().tolist() == pytest.approx(expected)
    log_prob = batch.log_prob.detach().flatten()
    assert outcome.value == pytest.approx((torch.tensor(expected) * log_prob).sum().item())
    # The lower bound, which 1 - 1.0 = 0 never shows, is there.
    narrow = evaluate(paper("cispo", clip_low=0.5), batch)
    assert narrow.gradient[2].item() == pytest.approx(-0.5 / 4)


def test_l28_entropy_is_a_mean_over_response_tokens():
    p = [[0.5] * 3] * 2
    batch = from_probabilities(p, p, [1.0, 1.0], [2, 1], [[1.0, 2.0, -50.0], [3.0, math.nan, -50.0]])
    assert evaluate(paper("dapo"), batch).summary["entropy"] == 2


def test_l32_shapes_are_checked():
    good = random_batch(12, responses=3, tokens=5)
    fields = {name: getattr(good, name) for name in ("log_prob", "old_log_prob", "mask", "advantage", "entropy")}
    for name, wrong, message in (
        ("old_log_prob", fields["old_log_prob"].T, r"old_log_prob: expected the shape of log_prob, \(3, 5\)"),
        ("entropy", fields["entropy"][:, :1], r"entropy: .*got \(3, 1\)"),
        ("mask", fields["mask"].long(), "mask: expected dtype torch.bool, got torch.int64"),
        ("advantage", fields["advantage"].unsqueeze(1), r"advantage: .*\(3,\), got \(3, 1\)"),
        ("advantage", torch.zeros(5), r"advantage: .*\(3,\), got \(5,\)"),
        ("log_prob", fields["log_prob"].flatten(), r"log_prob: expected the shape \(responses, tokens\)"),
    ):
        with pytest.raises(ValueError, match=message):
            TokenBatch(**fields | {name: wrong})
