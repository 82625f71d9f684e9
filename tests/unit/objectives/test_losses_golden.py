"""Every number of tests/golden/losses.json, at 2e-6."""

import json
from pathlib import Path

import pytest
import torch
from objective_cases import GATE, MEAN, evaluate, paper

from acpo.objectives import TokenBatch
from acpo.objectives.ar_lopti import reweighted_advantage

CASES = json.loads((Path(__file__).parents[2] / "golden" / "losses.json").read_text())["cases"]
FLOOR = {"sigma_floor": 1e-8}
VARIANTS = {
    "grpo": ("grpo", {}),
    "dapo": ("dapo", {}),
    "cispo": ("cispo", {}),
    "cispo_gated": ("cispo", GATE),
    "acpo": ("acpo", FLOOR),
    "acpo_bins4": ("acpo", FLOOR | {"bins": 4}),
    "acpo_bins6": ("acpo", FLOOR | {"bins": 6}),
    "acpo_released": ("acpo", FLOOR | {"probability": "current", "dual_clip": 3.0}),
    "high_entropy": ("high_entropy", {}),
    "low_entropy": ("low_entropy", {}),
}
VARIANTS |= {
    f"{key}_dual3": (VARIANTS[key][0], VARIANTS[key][1] | {"dual_clip": 3.0})
    for key in ("grpo", "dapo", "acpo", "high_entropy", "low_entropy")
}
every_case = pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])


def batch_from(case: dict) -> TokenBatch:
    fields = {key: torch.tensor(value) for key, value in case["input"].items()}
    fields["mask"] = fields["mask"].bool()
    fields["log_prob"].requires_grad_()
    return TokenBatch(**fields)


def test_every_golden_key_is_tested():
    own = {"acpo_clip_width", "ar_advantage", "lopti_low_mask", "lopti_high_mask"}
    modes = {"dapo_token-mean", "dapo_seq-mean-token-sum", "dapo_seq-mean-token-mean"}
    for case in CASES:
        assert set(case["expected"]) == set(VARIANTS) | own | modes


@every_case
@pytest.mark.parametrize("key", list(VARIANTS))
def test_loss_gradient_and_metrics(case, key):
    name, change = VARIANTS[key]
    expected = case["expected"][key]
    outcome = evaluate(paper(name, **change), batch_from(case))
    assert outcome.value == pytest.approx(expected["loss"], abs=2e-6)
    torch.testing.assert_close(outcome.gradient, torch.tensor(expected["grad"]), rtol=0, atol=2e-6)
    assert outcome.summary["clip_fraction"] == pytest.approx(expected["clip_fraction"], abs=2e-6)
    assert outcome.summary["approx_kl"] == pytest.approx(expected["approx_kl"], abs=2e-6)
    # CISPO has no dual clip: the released code logs one that never touches its loss.
    dual = 0.0 if name == "cispo" else expected["dual_clip_fraction"]
    assert outcome.summary["dual_clip_fraction"] == pytest.approx(dual, abs=2e-6)


@every_case
@pytest.mark.parametrize("mode", ["token-mean", "seq-mean-token-sum", MEAN])
def test_aggregation_modes(case, mode):
    value = evaluate(paper("dapo", aggregation=mode), batch_from(case)).value
    assert value == pytest.approx(case["expected"][f"dapo_{mode}"], abs=2e-6)


@every_case
def test_acpo_clip_width_of_each_token(case):
    batch, objective = batch_from(case), paper("acpo", **FLOOR)
    terms = objective.terms(batch, objective.statistics(batch), "all")
    expected = torch.tensor(case["expected"]["acpo_clip_width"])
    torch.testing.assert_close(terms.clip_low, expected, rtol=0, atol=2e-6)
    torch.testing.assert_close(terms.clip_high, expected, rtol=0, atol=2e-6)


@every_case
def test_ar_advantage_and_lopti_masks(case):
    batch, objective = batch_from(case), paper("ar_lopti")
    expected = torch.tensor(case["expected"]["ar_advantage"])
    actual = reweighted_advantage(batch, objective.parameters)
    torch.testing.assert_close(actual[batch.mask], expected[batch.mask], rtol=0, atol=2e-6)
    for stage, key in (("low_probability", "lopti_low_mask"), ("high_probability", "lopti_high_mask")):
        selected = objective.terms(batch, objective.statistics(batch), stage).selected
        assert torch.equal(selected, torch.tensor(case["expected"][key]).bool() & batch.mask)
