"""Scoring sampled responses with the current policy."""

import torch
from torch import Tensor

from acpo.engines.tiny.model import Model, read_prompts, response_logits


def token_scores(
    model: Model, prompts: Tensor, responses: Tensor, lengths: Tensor, temperature: float, buckets: int
) -> tuple[Tensor, Tensor]:
    """Return log-probability and entropy of each response token.

    A prompt is read once for all of its responses, and responses are scored in buckets of similar length, each cut at
    its own longest: both save time and change nothing else.

    Args:
        model: The current policy; gradients flow into log-probabilities.
        prompts: (rows, prompt) token ids, equally long.
        responses: (rows, longest) token ids.
        lengths: (rows,) response lengths.
        temperature: Divides the logits, as in sampling.
        buckets: How many buckets.

    Returns:
        log_prob (rows, longest) with gradient and entropy (rows, longest) in nats without; 0 at padding.
    """
    distinct, prompt_of = torch.unique(prompts, dim=0, return_inverse=True)
    read = read_prompts(model, distinct)
    order = torch.argsort(lengths, stable=True)
    log_probs, entropies = [], []
    for rows in order.tensor_split(min(buckets, len(order))):
        longest = int(lengths[rows[-1]])
        answer = responses[rows, :longest]
        logits = response_logits(model, read.rows(prompt_of[rows]), answer) / temperature
        log_softmax = torch.log_softmax(logits, -1)
        log_prob = log_softmax.gather(-1, answer[..., None]).squeeze(-1)
        with torch.no_grad():
            entropy = -(log_softmax.exp() * log_softmax).sum(-1)
        room = (0, responses.shape[1] - longest)
        log_probs.append(torch.nn.functional.pad(log_prob, room))
        entropies.append(torch.nn.functional.pad(entropy, room))
    back = torch.argsort(order)
    mask = token_mask(lengths, responses.shape[1])
    log_prob, entropy = torch.cat(log_probs)[back], torch.cat(entropies)[back]
    return torch.where(mask, log_prob, 0.0), torch.where(mask, entropy, 0.0)


def token_mask(lengths: Tensor, width: int) -> Tensor:
    """Mark the tokens of each response: (rows, width) from (rows,) lengths."""
    return torch.arange(width) < lengths[:, None]
