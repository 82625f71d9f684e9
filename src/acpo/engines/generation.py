"""Responses by transformers' `generate`: on any device, without vLLM.

Every request has a random stream of its own, so that its response depends on no other request.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, GenerationConfig, LogitsProcessor, LogitsProcessorList

from acpo.engines.sampling import Completion, Generator, Request, SamplingSettings
from acpo.engines.verl.overrides import DTYPES
from acpo.sections import VerlEngine
from acpo.streams import stream


class InverseSampler(LogitsProcessor):
    """Chooses each row's next token by the row's own uniform numbers, and keeps the log-probability that it had."""

    def __init__(self, temperature: Tensor, draws: Tensor):
        """Take `temperature` (rows,) and uniform `draws` (rows, longest response)."""
        self._temperature, self._draws = temperature, draws
        self.log_probs: list[Tensor] = []

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:  # noqa: ARG002
        """Return scores (rows, vocabulary) that leave only the chosen token."""
        log_probs = torch.log_softmax(scores.float() / self._temperature[:, None], -1)
        cumulative = log_probs.double().exp().cumsum(-1)
        draw = self._draws[:, len(self.log_probs), None] * cumulative[:, -1:]
        chosen = torch.searchsorted(cumulative, draw, right=True).clamp_max(scores.shape[1] - 1)
        self.log_probs.append(log_probs.gather(1, chosen)[:, 0])
        return torch.full_like(scores, -torch.inf).scatter(1, chosen, 0.0)


@dataclass(frozen=True)
class Drawn:
    """One response: its tokens, the end token included, and their log-probabilities at the sampling temperature."""

    tokens: list[int]
    log_probs: list[float]


@torch.no_grad()
def generate(
    model: Any,
    prompts: Sequence[Sequence[int]],
    draws: np.ndarray,
    temperature: Sequence[float],
    end_tokens: frozenset[int],
) -> list[Drawn]:
    """Draw one response to each prompt by inverting its cumulative distribution.

    Args:
        model: A causal language model of transformers.
        prompts: Token ids of each prompt; shorter ones are padded on the left.
        draws: (prompts, most response tokens) uniform numbers in [0, 1).
        temperature: Divides the logits, for each prompt.
        end_tokens: Tokens that end a response; the one that does is part of it.
    """
    device, width, padding = model.device, max(map(len, prompts)), min(end_tokens)
    padded = [[padding] * (width - len(prompt)) + list(prompt) for prompt in prompts]
    mask = [[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts]
    sampler = InverseSampler(torch.tensor(temperature, device=device), torch.from_numpy(draws).to(device))
    settings = GenerationConfig(
        do_sample=False, max_new_tokens=draws.shape[1], eos_token_id=sorted(end_tokens), pad_token_id=padding
    )
    rows = model.generate(
        input_ids=torch.tensor(padded, device=device), attention_mask=torch.tensor(mask, device=device),
        generation_config=settings, logits_processor=LogitsProcessorList([sampler]),
    )[:, width:].tolist()  # fmt: skip
    log_probs = torch.stack(sampler.log_probs, 1).tolist()
    drawn = []
    for row, scores in zip(rows, log_probs, strict=True):
        length = next((place + 1 for place, token in enumerate(row) if token in end_tokens), len(row))
        drawn.append(Drawn(row[:length], scores[:length]))
    return drawn


class TransformersGenerator(Generator):
    """Holds a checkpoint and answers requests in batches of prompts of similar length."""

    def __init__(self, checkpoint: Path, engine: VerlEngine, settings: SamplingSettings):
        """Load the checkpoint on the engine's device in the engine's precision."""
        dtype = getattr(torch, DTYPES[engine.precision])
        model: Any = AutoModelForCausalLM.from_pretrained(
            checkpoint, dtype=dtype, attn_implementation="sdpa", local_files_only=True, use_safetensors=True
        )
        self._model = model.to(engine.device).eval()
        self._batch_size, self._settings = engine.micro_batch_size, settings

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """See `Generator.generate`."""
        limit = self._settings.max_response_tokens
        made: dict[int, Drawn] = {}
        order = sorted(range(len(requests)), key=lambda number: len(requests[number].prompt))
        for start in range(0, len(order), self._batch_size):
            numbers = order[start : start + self._batch_size]
            draws = np.stack([stream(*requests[number].stream).random(limit) for number in numbers])
            drawn = generate(
                self._model, [requests[number].prompt for number in numbers], draws,
                [self._settings.temperature] * len(numbers), self._settings.end_tokens,
            )  # fmt: skip
            made.update(zip(numbers, drawn, strict=True))
        tokens = [made[number].tokens for number in range(len(requests))]
        return [Completion(row, row[-1] in self._settings.end_tokens) for row in tokens]

    def close(self) -> None:
        """See `Generator.close`."""
        del self._model
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


GENERATOR = TransformersGenerator
