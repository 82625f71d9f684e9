"""A transformers checkpoint that scores stored responses."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from acpo.objectives import TokenBatch
from acpo.probes.responses import StoredResponses
from acpo.store import StoreError
from acpo.tasks.base import Problem

GROUP_SIZE = 20_000_000


def load_policy(directory: Path, device: str) -> Any:
    """Load a causal language model from a local checkpoint, in float32, without dropout.

    Raises:
        StoreError: not a checkpoint that transformers can load.
    """
    from transformers import AutoModelForCausalLM

    try:
        model = AutoModelForCausalLM.from_pretrained(
            directory, dtype=torch.float32, local_files_only=True, use_safetensors=True
        )
    except (OSError, ValueError) as error:
        raise StoreError(f"{directory}: not a transformers checkpoint ({error})") from error
    model.eval()
    return torch.nn.Module.to(model, device)


def score(model: Any, responses: StoredResponses, temperature: float) -> TokenBatch:
    """Return responses as the token batch of an objective, scored by a model.

    Args:
        model: The current policy; gradients flow into `log_prob`.
        responses: One micro-batch.
        temperature: Divides the logits, as in sampling.
    """
    device = model.device
    longest = max(map(len, responses.prompts))
    width = responses.tokens.shape[1]
    prompts = torch.zeros(len(responses), longest, dtype=torch.long)
    seen = torch.zeros(len(responses), longest, dtype=torch.bool)
    for row, prompt in enumerate(responses.prompts):
        prompts[row, longest - len(prompt) :] = torch.tensor(prompt)
        seen[row, longest - len(prompt) :] = True
    attention = torch.cat([seen, responses.mask], 1).to(device)
    logits = model(
        input_ids=torch.cat([prompts, responses.tokens], 1).to(device),
        attention_mask=attention.long(),
        position_ids=(attention.long().cumsum(1) - 1).clamp(min=0),
        logits_to_keep=width + 1,
        use_cache=False,
    ).logits[:, :-1]
    log_softmax = torch.log_softmax(logits.float() / temperature, -1)
    log_prob = log_softmax.gather(-1, responses.tokens.to(device)[..., None]).squeeze(-1)
    with torch.no_grad():
        entropy = -(log_softmax.exp() * log_softmax).sum(-1)
    return TokenBatch(
        log_prob=log_prob,
        old_log_prob=responses.old_log_prob.to(device),
        mask=responses.mask.to(device),
        advantage=responses.advantage.to(device),
        entropy=entropy,
    )


def parameter_groups(model: Any, at_most: int = GROUP_SIZE) -> list[list[str]]:
    """Divide the names of a model's parameters, in order, into groups whose gradients are in memory together.

    Args:
        model: A decoder of transformers.
        at_most: Numbers in a group; a layer is never split, and one that is larger is a group of its own.

    Returns:
        Groups of whole layers; parameters of no layer count as one more layer.
    """
    layers: dict[str, list[str]] = {}
    sizes: dict[str, int] = {}
    for name, parameter in model.named_parameters():
        found = re.search(r"\.layers\.\d+\.", name)
        layer = found[0] if found else ""
        layers.setdefault(layer, []).append(name)
        sizes[layer] = sizes.get(layer, 0) + parameter.numel()
    groups: list[list[str]] = []
    room = 0
    for layer, names in layers.items():
        if not groups or sizes[layer] > room:
            groups.append([])
            room = at_most
        groups[-1] += names
        room -= sizes[layer]
    return groups


def is_projection(name: str, parameter: Tensor) -> bool:
    """Say whether a parameter is the weight of an attention or MLP projection (App. D.6)."""
    return parameter.ndim == 2 and name.endswith("proj.weight")


def tokenized_prompts(checkpoint: Path, problems: Sequence[Problem]) -> dict[str, list[int]]:
    """Return the token ids of each question's prompt, by its id, with the tokenizer of a checkpoint.

    Raises:
        StoreError: the checkpoint has no tokenizer.
    """
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(checkpoint, local_files_only=True)
    except (OSError, ValueError) as error:
        raise StoreError(f"{checkpoint}: no tokenizer that transformers can load ({error})") from error
    encoded = tokenizer([problem.prompt for problem in problems])["input_ids"]
    return {problem.id: ids for problem, ids in zip(problems, encoded, strict=True)}
