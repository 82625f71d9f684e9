"""Rollouts: responses of the behavior policy with their rewards and advantages."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from acpo.engines.tiny.model import Model
from acpo.engines.tiny.policy import token_mask
from acpo.engines.tiny.sampler import Responses, sample
from acpo.engines.tiny.vocabulary import Vocabulary
from acpo.objectives import group_advantage
from acpo.sections import Training
from acpo.streams import stream, uniforms
from acpo.tasks.base import EmbeddedTask, Problem


@dataclass(frozen=True)
class Rollout:
    """A train batch of prompts with `group_size` responses each, those of one prompt together."""

    problems: list[Problem]
    prompts: Tensor
    responses: Responses
    reward: Tensor
    advantage: Tensor

    @property
    def mask(self) -> Tensor:
        """(responses, longest) response tokens."""
        return token_mask(self.responses.lengths, self.responses.tokens.shape[1])

    def facts(self) -> dict[str, float]:
        """Return the numbers that are logged once a rollout."""
        groups = self.reward.view(len(self.problems), -1)
        return {
            "reward_mean": self.reward.mean().item(),
            "response_tokens_mean": self.responses.lengths.double().mean().item(),
            "truncation_rate": 1 - self.responses.finished.double().mean().item(),
            "zero_variance_fraction": (groups.std(1) == 0).double().mean().item(),
        }


def rollout_problems(problems: Sequence[Problem], number: int, size: int, root_seed: int, seed: int) -> list[Problem]:
    """Return the prompts of one rollout: each pass over the training set has its own shuffle.

    Args:
        problems: The training set.
        number: Which rollout, from 0.
        size: Prompts a rollout.
        root_seed: Root of the stream ("data", seed, pass).
        seed: The training seed.
    """
    chosen: list[Problem] = []
    position = number * size
    while len(chosen) < size:
        epoch, start = divmod(position, len(problems))
        order = stream(root_seed, "data", seed, epoch).permutation(len(problems))
        taken = order[start : start + size - len(chosen)]
        chosen += [problems[i] for i in taken]
        position += len(taken)
    return chosen


def grade_responses(
    task: EmbeddedTask, vocabulary: Vocabulary, problems: Sequence[Problem], responses: Responses
) -> Tensor:
    """Return the reward of each response: 1 where the task's grader calls it correct, else 0."""
    samples = len(responses.lengths) // len(problems)
    rows = zip(responses.tokens.tolist(), responses.lengths.tolist(), strict=True)
    texts = (vocabulary.decode(tokens[:length]) for tokens, length in rows)
    return torch.tensor([float(task.grade(text, problems[i // samples].gold).correct) for i, text in enumerate(texts)])


def collect(
    model: Model,
    task: EmbeddedTask,
    problems: list[Problem],
    training: Training,
    batch_size: int,
    root_seed: int,
    *names: str | int,
) -> Rollout:
    """Sample and grade one rollout with the stream ("rollout", *names)."""
    vocabulary = Vocabulary.of(task)
    prompts = vocabulary.encode_prompts([problem.prompt for problem in problems])
    count = len(problems) * training.group_size
    draws = uniforms((count, training.max_response_tokens), root_seed, "rollout", *names)
    responses = sample(
        model, prompts, training.group_size, draws, training.temperature, vocabulary.end_tokens, batch_size
    )
    reward = grade_responses(task, vocabulary, problems, responses)
    group = torch.arange(len(problems)).repeat_interleave(training.group_size)
    rows = torch.tensor(prompts).repeat_interleave(training.group_size, 0)
    return Rollout(problems, rows, responses, reward, group_advantage(reward, group))
