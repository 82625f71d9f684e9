"""Gradients of variants against gradients worked out directly, on a random model and random responses."""

from pathlib import Path

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from acpo.objectives import make_objective
from acpo.probes.gradients import GradientProbe, Measured
from acpo.probes.policy import parameter_groups, score
from acpo.probes.responses import StoredResponses
from acpo.probes.variants import Variant, advantage_sign, high_entropy, high_probability, low_probability
from acpo.store import StoreError

ROWS, LONGEST, WORDS = 12, 7, 23
GRPO = make_objective("grpo", {"clip": 0.2, "dual_clip": None, "aggregation": "seq-mean-token-mean"})
ACPO = make_objective(
    "acpo",
    {
        "alpha": 3.0, "clip_base": 0.2, "clip_min": 0.0, "clip_max": 3.0, "bins": 5, "probability": "behavior",
        "pool": "minibatch", "sigma_floor": 0.0, "dual_clip": None, "aggregation": "seq-mean-token-mean",
    },
)  # fmt: skip


@pytest.fixture(scope="module")
def model() -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=WORDS, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1,
        intermediate_size=24, max_position_embeddings=32, initializer_range=0.3,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


@pytest.fixture(scope="module")
def responses(model: LlamaForCausalLM) -> StoredResponses:
    """Six questions with two responses each; the behavior policy is the model with noise."""
    draw = torch.Generator().manual_seed(1)
    lengths = torch.randint(1, LONGEST + 1, (ROWS,), generator=draw)
    mask = torch.arange(LONGEST) < lengths[:, None]
    blank = StoredResponses(
        questions=[f"q{i // 2}" for i in range(ROWS)],
        prompts=[[1, *torch.randint(2, WORDS, (2 + i // 2,), generator=draw).tolist()] for i in range(ROWS)],
        tokens=torch.where(mask, torch.randint(2, WORDS, (ROWS, LONGEST), generator=draw), 0),
        mask=mask,
        old_log_prob=torch.zeros(ROWS, LONGEST),
        advantage=torch.where(torch.arange(ROWS) % 2 == 0, 0.7, -0.7) * (1 + torch.arange(ROWS)),
    )
    with torch.no_grad():
        log_prob = score(model, blank, 1.0).log_prob
    noise = 0.25 * torch.randn(log_prob.shape, generator=draw)
    blank.old_log_prob[:] = torch.where(mask, (log_prob + noise).clamp(max=-1e-3), 0.0)
    return blank


def probe(model: LlamaForCausalLM, responses: StoredResponses, size: int = 4, rank: int = 3) -> GradientProbe:
    return GradientProbe({"current": model}, responses.halves(), 1.0, size, rank)


def direct_norm(model: LlamaForCausalLM, responses: StoredResponses, objective) -> float:
    model.requires_grad_()
    model.zero_grad()
    objective(score(model, responses, 1.0)).value.backward()
    return torch.cat([p.grad.flatten() for p in model.parameters()]).norm().item()


@pytest.mark.parametrize("objective", [GRPO, ACPO])
@pytest.mark.parametrize("size", [1, 4, 100])
def test_the_norm_is_that_of_the_objective_whatever_the_micro_batch(model, responses, objective, size: int) -> None:
    [found], _ = probe(model, responses, size).measure([Measured(Variant("all", objective), "current")], "all")
    assert found.norm == pytest.approx(direct_norm(model, responses, objective), rel=1e-4)
    assert (found.norm_percent, found.cosine) == (pytest.approx(100), pytest.approx(1))
    assert found.tokens == int(responses.mask.sum())


def test_only_projections_have_angles_and_the_reference_has_none_to_itself(model, responses) -> None:
    [found], _ = probe(model, responses).measure([Measured(Variant("all", GRPO), "current")], "all")
    assert len(found.matrices) == 2 * 7
    assert {matrix.name.split(".")[-2] for matrix in found.matrices} == {
        "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj",
    }  # fmt: skip
    assert all(matrix.angle < 0.1 < matrix.split_half_angle for matrix in found.matrices)


def residual(model, responses, *parts: Variant) -> float:
    measured = [Measured(variant, "current") for variant in (Variant("all", GRPO), *parts)]
    _, found = probe(model, responses).measure(measured, "all", [part.name for part in parts])
    return found


def test_parts_that_divide_the_tokens_add_up(model, responses) -> None:
    signs = [Variant(f"sign{sign}", GRPO, advantage_sign(sign)) for sign in (True, False)]
    assert residual(model, responses, *signs) < 1e-5
    low, high = Variant("low", GRPO, low_probability(0.05)), Variant("high", GRPO, high_probability(0.05))
    assert residual(model, responses, low, high) < 1e-5


def test_parts_that_do_not_divide_the_tokens_do_not_add_up(model, responses) -> None:
    """Dividing by the tokens kept, or leaving tokens out, breaks the sum: the check can fail."""
    high = Variant("high", GRPO, high_probability(0.05))
    assert residual(model, responses, Variant("low", GRPO, low_probability(0.05), "selected"), high) > 0.01
    assert residual(model, responses, Variant("low", GRPO, low_probability(0.01)), high) > 0.01


def test_the_two_denominators_differ_by_the_share_of_tokens(model, responses) -> None:
    """Of one response with one token kept of n, the gradients differ by the factor n."""
    single = StoredResponses(
        questions=["a", "b"], prompts=responses.prompts[:2], tokens=torch.tensor([[5, 6, 7], [8, 0, 0]]),
        mask=torch.tensor([[True, True, True], [True, False, False]]),
        old_log_prob=torch.log(torch.tensor([[0.01, 0.9, 0.9], [0.9, 1.0, 1.0]])), advantage=torch.tensor([-1.0, 0.0]),
    )  # fmt: skip
    unclipped = make_objective("grpo", {"clip": 1e30, "dual_clip": None, "aggregation": "seq-mean-token-mean"})
    kept = [Measured(Variant(d, unclipped, low_probability(0.5), d), "current") for d in ("all", "selected")]
    [first, second], _ = probe(model, single).measure(kept, "all")
    assert (first.tokens, second.tokens) == (1, 1)
    assert second.norm == pytest.approx(3 * first.norm, rel=1e-5)


def test_on_policy_takes_the_ratio_as_one(model, responses) -> None:
    found, _ = probe(model, responses).measure(
        [Measured(Variant("all", GRPO), "current"), Measured(Variant("on", GRPO, on_policy=True), "current")], "all"
    )
    with torch.no_grad():
        own = score(model, responses, 1.0).log_prob
    fresh = StoredResponses(**{**vars(responses), "old_log_prob": own})
    assert found[1].norm == pytest.approx(direct_norm(model, fresh, GRPO), rel=1e-4)
    assert found[1].norm != pytest.approx(found[0].norm, rel=1e-3)


def test_entropy_selection_keeps_its_share(model, responses) -> None:
    [_, found], _ = probe(model, responses).measure(
        [Measured(Variant("all", GRPO), "current"), Measured(Variant("top", GRPO, high_entropy(0.2)), "current")], "all"
    )
    assert found.tokens == sum(max(1, int(0.2 * n)) for n in responses.mask.sum(1).tolist())


def test_a_variant_without_tokens_has_norm_zero_and_no_angles(model, responses) -> None:
    [_, found], _ = probe(model, responses).measure(
        [Measured(Variant("all", GRPO), "current"), Measured(Variant("none", GRPO, low_probability(0.0)), "current")],
        "all",
    )
    assert (found.tokens, found.norm, found.norm_percent, found.cosine, found.matrices) == (0, 0, 0, None, [])


@pytest.mark.parametrize(("at_most", "groups"), [(1, 3), (10**9, 1)])
def test_groups_hold_every_parameter_once(model, at_most: int, groups: int) -> None:
    found = parameter_groups(model, at_most)
    assert sorted(name for group in found for name in group) == sorted(dict(model.named_parameters()))
    assert len(found) == groups


def test_groups_change_nothing(model, responses, monkeypatch) -> None:
    whole, _ = probe(model, responses).measure([Measured(Variant("all", GRPO), "current")], "all")
    monkeypatch.setattr("acpo.probes.gradients.parameter_groups", lambda model: parameter_groups(model, 1))
    parts, _ = probe(model, responses).measure([Measured(Variant("all", GRPO), "current")], "all")
    assert parts[0].norm == pytest.approx(whole[0].norm, rel=1e-6)
    assert sorted(m.name for m in parts[0].matrices) == sorted(m.name for m in whole[0].matrices)


def test_halves_need_two_questions(responses) -> None:
    one = StoredResponses(**{**vars(responses), "questions": ["q"] * ROWS})
    with pytest.raises(StoreError, match="not enough data"):
        one.halves()


def test_scores_are_those_of_the_embedded_engine(small, tmp_path: Path) -> None:
    """Left padding, the shift by one and the temperature are right: the trainer's own scores come out."""
    from acpo.engines.tiny.checkpoint import architecture_of, load_weights
    from acpo.engines.tiny.model import Model
    from acpo.engines.tiny.policy import token_scores
    from acpo.probes.policy import load_policy

    base = load_policy(small.base, "cpu")
    draw = torch.Generator().manual_seed(2)
    lengths = torch.tensor([3, 6, 1])
    mask = torch.arange(6) < lengths[:, None]
    words = base.config.vocab_size
    prompts = torch.randint(2, words, (3, 5), generator=draw)
    tokens = torch.where(mask, torch.randint(2, words, (3, 6), generator=draw), 0)
    stored = StoredResponses(["a", "b", "c"], prompts.tolist(), tokens, mask, torch.zeros(3, 6), torch.zeros(3))
    with torch.no_grad():
        found = score(base, stored, 0.7)
        embedded = Model.of(load_weights(small.base), architecture_of(small.base))
        log_prob, entropy = token_scores(embedded, prompts, tokens, lengths, 0.7, 1)
    assert torch.allclose(found.log_prob[mask], log_prob[mask], atol=2e-5)
    assert torch.allclose(found.entropy[mask], entropy[mask], atol=2e-5)
