"""Rollouts and updates of the embedded engine."""

from collections import Counter
from dataclasses import replace

import pytest
import torch
from small_study import SmallStudy, small_values
from torch import Tensor

from acpo.config import Study, parse_study
from acpo.engines.tiny.checkpoint import architecture_of, load_weights
from acpo.engines.tiny.model import Model
from acpo.engines.tiny.rollout import Rollout, collect, grade_responses, rollout_problems
from acpo.engines.tiny.sampler import Responses
from acpo.engines.tiny.trainer import RatioError, _check_ratios
from acpo.engines.tiny.update import Learner, update
from acpo.engines.tiny.vocabulary import Vocabulary
from acpo.methods import method_objective
from acpo.objectives import group_advantage
from acpo.tasks.base import Problem
from acpo.tasks.countdown_mini import TASK

STUDY = parse_study(small_values())
# Settings of Table 5 are ACPO with other numbers.
METHODS = sorted({*STUDY.methods} - {*STUDY.ablations["table5"].methods} | {"acpo"})
POOLED = [name for name in METHODS if STUDY.methods[name].parameters.get("pool") != "microbatch"]
PROBLEMS = list(TASK.problems("train", 0, {}))[:200]
MEASURED = {"grpo_clip_avg": {"clip": 0.3}, "dapo_clip_max": {"clip_high": 0.5}}


def learner(small: SmallStudy, method: str, micro_batch_size: int | None = None, study: Study = STUDY) -> Learner:
    suite = study.suites["mini"]
    engine = suite.engine.model_copy(update={"micro_batch_size": micro_batch_size})
    objective = method_objective(study, method, MEASURED.get(method, {}))
    return Learner.of(load_weights(small.base), architecture_of(small.base), objective, suite.training, engine)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def rollout(small_base: SmallStudy) -> Rollout:
    """Sixteen prompts of eight responses with rewards made up, since the small model solves nearly nothing."""
    training = STUDY.suites["mini"].training.model_copy(update={"group_size": 8})
    model = Model.of(load_weights(small_base.base), architecture_of(small_base.base))
    found = collect(model, TASK, PROBLEMS[:16], training, 64, 0, 0, 0)
    reward = (torch.rand(128, generator=torch.Generator().manual_seed(0)) < 0.4).float()
    group = torch.arange(16).repeat_interleave(8)
    return replace(found, reward=reward, advantage=group_advantage(reward, group))


def steps(
    found: Learner, rollout: Rollout, size: int = 32, stages: tuple[str, ...] | None = None
) -> list[dict[str, float]]:
    return [
        update(found, rollout, slice(start, start + size), stage)[0]
        for stage in stages or found.objective.stages
        for start in range(0, 128, size)
    ]


class TestRolloutProblems:
    def test_each_pass_covers_all_once_in_its_own_order(self) -> None:
        problems = PROBLEMS[:60]
        drawn = [p.id for number in range(30) for p in rollout_problems(problems, number, 14, 0, 0)]  # 420 = 7 passes
        passes = [drawn[i : i + 60] for i in range(0, 420, 60)]
        for order in passes:
            assert sorted(order) == sorted(p.id for p in problems)
        assert len({tuple(order) for order in passes}) == 7

    def test_a_rollout_larger_than_the_data_takes_whole_passes(self) -> None:
        drawn = Counter(p.id for p in rollout_problems(PROBLEMS[:10], 3, 25, 0, 0))
        assert sorted(drawn.values()) == [2] * 5 + [3] * 5

    def test_seeds_shuffle_differently_and_repeat_exactly(self) -> None:
        drawn = {seed: [p.id for p in rollout_problems(PROBLEMS, 0, 50, 0, seed)] for seed in (0, 1)}
        assert drawn[0] != drawn[1]
        assert drawn[0] == [p.id for p in rollout_problems(PROBLEMS, 0, 50, 0, 0)]
        assert drawn[0] != [p.id for p in rollout_problems(PROBLEMS, 0, 50, 1, 0)]


class TestCollect:
    def test_advantages_follow_the_question(self) -> None:
        """L19. Groups (1, 0, 0, 0) and (1, 1, 1, 1): mean 0.25, std 0.5 with ddof 1; and no spread at all."""
        found = group_advantage(torch.tensor([1.0, 0, 0, 0, 1, 1, 1, 1]), torch.tensor([0, 0, 0, 0, 1, 1, 1, 1]))
        expected = torch.tensor([1.5, -0.5, -0.5, -0.5, 0, 0, 0, 0])
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)

    def test_rewards_are_the_graders_in_the_prompts_order(self) -> None:
        vocabulary = Vocabulary.of(TASK)
        problems = [Problem("2 5 9 to 19", "", "2 5 9 to 19"), Problem("1 2 3 to 6", "", "1 2 3 to 6")]
        texts = [
            "2 * 5 = 10 , 10 + 9 = 19 yes", "1 + 2 = 3 , 3 + 3 = 6 yes",
            "1 + 2 = 3 , 3 + 3 = 6 yes", "1 * 2 = 2 , 2 * 3 = 6 yes",
        ]  # fmt: skip
        tokens = torch.tensor(vocabulary.encode(texts))
        junk = torch.cat([tokens, torch.full((4, 5), 9)], 1)  # behind the lengths: must not be read
        lengths = torch.full((4,), 12)
        responses = Responses(junk, lengths, torch.zeros(4, 17), torch.ones(4, dtype=torch.bool))
        assert grade_responses(TASK, vocabulary, problems, responses).tolist() == [1, 0, 1, 1]

    def test_rollout_and_training_seed_name_the_draws(self, small_base: SmallStudy) -> None:
        """L31."""
        model = Model.of(load_weights(small_base.base), architecture_of(small_base.base))
        training = STUDY.suites["mini"].training

        def tokens(*names: int) -> list[list[int]]:
            return collect(model, TASK, PROBLEMS[:4], training, 64, *names).responses.tokens.tolist()

        assert tokens(0, 0, 0) == tokens(0, 0, 0)
        assert len({str(tokens(*names)) for names in ((0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0))}) == 4

    def test_facts(self, rollout: Rollout) -> None:
        groups = rollout.reward.view(16, 8)
        facts = rollout.facts()
        assert facts["reward_mean"] == pytest.approx(float(rollout.reward.sum()) / 128)
        assert facts["response_tokens_mean"] == pytest.approx(float(rollout.mask.sum()) / 128)
        assert facts["truncation_rate"] == pytest.approx(int((~rollout.responses.finished).sum()) / 128)
        same = sum(len(set(group.tolist())) == 1 for group in groups)
        assert facts["zero_variance_fraction"] == pytest.approx(same / 16)

    def test_prompts_and_responses_stay_together(self, rollout: Rollout) -> None:
        expected = Vocabulary.of(TASK).encode_prompts([p.prompt for p in rollout.problems])
        assert [rollout.prompts[8 * i + j].tolist() for i in range(16) for j in range(8)] == [
            prompt for prompt in expected for _ in range(8)
        ]


def largest_difference(one: dict[str, Tensor], other: dict[str, Tensor]) -> float:
    return max((one[name] - other[name]).abs().max().item() for name in one)


class TestMicroBatches:
    @pytest.mark.parametrize("method", POOLED)
    def test_their_size_does_not_change_the_update(self, small_base: SmallStudy, rollout: Rollout, method: str) -> None:
        """Gradients, not weights: Adam's first steps turn rounding errors of tiny gradients into full steps."""
        gradients = {}
        for micro in (None, 5, 32):
            found = learner(small_base, method, micro)
            steps(found, rollout, stages=found.objective.stages[:1])
            gradients[micro] = {}
            for stage in found.objective.stages:
                update(found, rollout, slice(0, 32), stage)
                for name, tensor in found.weights.items():
                    assert tensor.grad is not None
                    gradients[micro][f"{stage} {name}"] = tensor.grad.clone()
        scale = max(gradient.abs().max().item() for gradient in gradients[None].values())
        assert scale > 0
        assert largest_difference(gradients[None], gradients[32]) == 0
        assert largest_difference(gradients[None], gradients[5]) < 2e-3 * scale

    def test_released_acpo_pools_over_a_micro_batch(self, small_base: SmallStudy, rollout: Rollout) -> None:
        """R2: its widths depend on the split; the paper's do not."""
        widths = {}
        for method in ("acpo", "acpo_released"):
            for micro in (None, 2):
                found = learner(small_base, method, micro)
                widths[method, micro] = steps(found, rollout)[-1]["clip_width_mean"]
        assert widths["acpo", 2] == pytest.approx(widths["acpo", None], rel=1e-3)
        assert abs(widths["acpo_released", 2] - widths["acpo_released", None]) > 2e-3


class TestUpdate:
    def test_ratio_is_1_at_first_and_then_moves(self, small_base: SmallStudy, rollout: Rollout) -> None:
        """L21, L22: old log-probabilities are the sampler's, and stay so for the whole rollout."""
        first, *later = steps(learner(small_base, "dapo"), rollout)
        spreads = [
            max(facts[f"bin{b}/ratio_std"] for b in range(1, 6) if facts[f"bin{b}/count"]) for facts in (first, *later)
        ]
        assert abs(first["ratio_max"] - 1) < 1e-5
        assert spreads[0] < 1e-5
        assert abs(first["approx_kl"]) < 1e-6
        assert all(spread > 1e-3 for spread in spreads[1:])

    def test_old_log_probabilities_are_frozen(self, small_base: SmallStudy, rollout: Rollout) -> None:
        found = learner(small_base, "dapo")
        before = rollout.responses.log_prob.clone()
        for start in (0, 32, 0):
            _, batches = update(found, rollout, slice(start, start + 32), "all")
            assert torch.equal(batches[0].old_log_prob, before[start : start + 32])
        assert (batches[0].log_prob - batches[0].old_log_prob).abs().max() > 1e-3

    def test_one_step_raises_the_odds_of_what_was_rewarded(self, small_base: SmallStudy, rollout: Rollout) -> None:
        found = learner(small_base, "dapo")
        _, batches = update(found, rollout, slice(0, 128), "all")
        _, after = update(found, rollout, slice(0, 128), "all")
        rise = torch.where(batches[0].mask, after[0].log_prob - batches[0].log_prob, 0.0).detach().sum(1)
        assert (rise * rollout.advantage).sum() > 0

    def test_first_step_by_hand(self, small_base: SmallStudy, rollout: Rollout) -> None:
        """Adam's first step is lr times the sign of the gradient, nearly, and the loss is -mean advantage."""
        found = learner(small_base, "dapo")
        before = {name: tensor.detach().clone() for name, tensor in found.weights.items()}
        facts, _ = update(found, rollout, slice(0, 128), "all")
        assert facts["loss"] == pytest.approx(-rollout.advantage.mean().item(), abs=1e-6)
        assert facts["skipped"] == 0
        head = found.weights["lm_head.weight"]
        assert head.grad is not None
        strong = head.grad.abs() > 1e-5
        moved = (head.detach() - before["lm_head.weight"])[strong]
        torch.testing.assert_close(moved, -3e-4 * head.grad[strong].sign(), atol=2e-6, rtol=0.02)

    @pytest.mark.parametrize("method", ["dapo", "acpo"])
    def test_a_gradient_that_is_no_number_skips_the_step(
        self, small_base: SmallStudy, rollout: Rollout, method: str
    ) -> None:
        found = learner(small_base, method)
        steps(found, rollout)
        before = {name: tensor.detach().clone() for name, tensor in found.weights.items()}
        state = {key: tensor.clone() for key, tensor in found.optimizer.tensors().items()}
        broken = replace(rollout, advantage=torch.full_like(rollout.advantage, torch.nan))
        facts, _ = update(found, broken, slice(0, 32), "all")
        assert facts["skipped"] == 1
        assert not torch.isfinite(torch.tensor(facts["gradient_norm"]))
        assert largest_difference(before, {n: t.detach() for n, t in found.weights.items()}) == 0
        assert all(torch.equal(tensor, state[key]) for key, tensor in found.optimizer.tensors().items())
        facts, _ = update(found, rollout, slice(0, 32), "all")
        assert facts["skipped"] == 0
        assert largest_difference(before, {n: t.detach() for n, t in found.weights.items()}) > 0

    def test_the_gradient_is_clipped(self, small_base: SmallStudy, rollout: Rollout) -> None:
        large = replace(rollout, advantage=rollout.advantage * 1000)
        found = learner(small_base, "dapo")
        facts, _ = update(found, large, slice(0, 128), "all")
        assert facts["gradient_norm"] > 10
        norm = torch.stack([t.grad.norm() for t in found.weights.values() if t.grad is not None]).norm()
        assert norm.item() == pytest.approx(1.0, rel=1e-3)

    def test_ar_lopti_passes_twice(self, small_base: SmallStudy, rollout: Rollout) -> None:
        assert len(steps(learner(small_base, "dapo"), rollout)) == 4
        facts = steps(learner(small_base, "ar_lopti"), rollout)
        assert len(facts) == 8
        shares = [
            sum(facts[i]["selected_fraction"] * facts[i]["tokens"] for i in part) for part in (range(4), range(4, 8))
        ]
        assert sum(shares) == pytest.approx(float(rollout.mask.sum()))  # each token in one of its two passes

    def test_optimizer_survives_a_round_trip(self, small_base: SmallStudy, rollout: Rollout) -> None:
        one = learner(small_base, "acpo")
        steps(one, rollout)
        two = Learner.of(one.weights, one.sizes, one.objective, one.training, one.engine)
        two.optimizer.load({key: tensor.clone() for key, tensor in one.optimizer.tensors().items()})
        for found in (one, two):
            steps(found, rollout)
        assert largest_difference(*({n: t.detach() for n, t in found.weights.items()} for found in (one, two))) == 0


class TestRatioCheck:
    def test_wrong_old_log_probabilities_are_noticed(self, small_base: SmallStudy, rollout: Rollout) -> None:
        """L24: a tenth of a nat on one token in a thousand is enough."""
        facts, _ = update(learner(small_base, "dapo"), rollout, slice(0, 32), "all")
        _check_ratios(facts, first=True, rollout=1)
        log_prob = rollout.responses.log_prob.clone()
        log_prob[3, 2] -= 0.1
        tampered = replace(rollout, responses=replace(rollout.responses, log_prob=log_prob))
        facts, _ = update(learner(small_base, "dapo"), tampered, slice(0, 32), "all")
        with pytest.raises(RatioError, match=r"rollout 5: .* before any update is up to 1\.10.* expected 1"):
            _check_ratios(facts, first=True, rollout=5)
        _check_ratios(facts, first=False, rollout=5)

    def test_ratios_below_1_are_noticed_too(self, small_base: SmallStudy, rollout: Rollout) -> None:
        tampered = replace(rollout, responses=replace(rollout.responses, log_prob=rollout.responses.log_prob * 0.99))
        facts, _ = update(learner(small_base, "dapo"), tampered, slice(0, 32), "all")
        assert facts["ratio_max"] <= 1
        with pytest.raises(RatioError):
            _check_ratios(facts, first=True, rollout=1)
