"""Sampling many responses at once, with a key/value cache that finished rows leave."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from acpo.engines.tiny.model import Model, feed_forward, normalise, read_prompts, rotate


@dataclass(frozen=True)
class Responses:
    """Sampled responses, `samples` per prompt, those of one prompt together.

    tokens: (responses, longest) token ids, zero behind each end.
    lengths: (responses,) tokens in each, the end token included.
    log_prob: (responses, longest) log-probability of each token at the sampling temperature.
    finished: (responses,) False where the limit cut the response off.
    """

    tokens: Tensor
    lengths: Tensor
    log_prob: Tensor
    finished: Tensor


@dataclass
class _Cache:
    """Keys and values of a batch: one (rows, key/value heads, positions, head size) tensor per layer."""

    keys: list[Tensor]
    values: list[Tensor]

    def keep(self, rows: Tensor) -> None:
        self.keys = [tensor[rows] for tensor in self.keys]
        self.values = [tensor[rows] for tensor in self.values]


@torch.no_grad()
def sample(
    model: Model,
    prompts: Sequence[Sequence[int]],
    samples: int,
    uniforms: np.ndarray,
    temperature: float,
    end_tokens: frozenset[int],
    batch_size: int,
) -> Responses:
    """Sample responses by inverting the cumulative distribution at given uniforms.

    Row i's tokens depend on row i's uniforms only, not on how rows are batched.

    Args:
        model: The model.
        prompts: Token ids of each prompt.
        samples: Responses per prompt.
        uniforms: (prompts * samples, most response tokens) in [0, 1).
        temperature: Divides the logits.
        end_tokens: Tokens that end a response.
        batch_size: Responses sampled at once.

    Returns:
        The responses, in the order of the prompts.
    """
    limit = uniforms.shape[1]
    rows = len(prompts) * samples
    tokens = torch.zeros(rows, limit, dtype=torch.long)
    log_prob = torch.zeros(rows, limit)
    lengths = torch.full((rows,), limit)
    finished = torch.zeros(rows, dtype=torch.bool)
    ends = torch.zeros(model.sizes.vocabulary, dtype=torch.bool)
    ends[list(end_tokens)] = True
    draws = torch.from_numpy(uniforms)
    for chosen in _batches(prompts, max(1, batch_size // samples)):
        prompt = torch.tensor([prompts[i] for i in chosen])
        logits, cache = _prefill(model, prompt, samples, limit)
        alive = (torch.tensor(chosen)[:, None] * samples + torch.arange(samples)).flatten()
        for step in range(limit):
            token, chosen_log_prob = _draw(logits / temperature, draws[alive, step])
            tokens[alive, step] = token
            log_prob[alive, step] = chosen_log_prob
            ended = ends[token]
            if bool(ended.any()):
                lengths[alive[ended]] = step + 1
                finished[alive[ended]] = True
                going = (~ended).nonzero().squeeze(1)
                alive, token = alive[going], token[going]
                cache.keep(going)
            if len(alive) == 0 or step + 1 == limit:
                break
            logits = _step(model, token, cache, prompt.shape[1] + step)
    longest = int(lengths.max())
    return Responses(tokens[:, :longest], lengths, log_prob[:, :longest], finished)


def _batches(prompts: Sequence[Sequence[int]], size: int) -> list[list[int]]:
    """Group prompt numbers into batches of equal length, so that nothing is ever padded."""
    by_length: dict[int, list[int]] = {}
    for number, prompt in enumerate(prompts):
        by_length.setdefault(len(prompt), []).append(number)
    return [group[i : i + size] for group in by_length.values() for i in range(0, len(group), size)]


def _draw(logits: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """Draw one token a row: the first whose cumulative probability exceeds the row's uniform.

    Uniforms are multiples of 2^-24; the first cell's middle stands for 0, and rounding never reaches the total: a
    token of no probability is not drawn from either end.
    """
    log_prob = torch.log_softmax(logits, -1)
    cumulative = log_prob.exp().cumsum(-1)
    total = cumulative[:, -1]
    bound = torch.minimum(uniform.clamp(min=2.0**-25) * total, torch.nextafter(total, torch.zeros_like(total)))
    token = (cumulative <= bound[:, None]).sum(-1)
    return token, log_prob.gather(1, token[:, None]).squeeze(1)


def _prefill(model: Model, prompt: Tensor, samples: int, limit: int) -> tuple[Tensor, _Cache]:
    """Read each prompt once and return its next-token logits and cache, repeated for its samples."""
    read = read_prompts(model, prompt)
    logits = F.linear(normalise(read.last, model.norm), model.head)
    room = (0, 0, 0, limit)
    keys, values = (
        [F.pad(tensor, room).repeat_interleave(samples, 0) for tensor in kept] for kept in (read.keys, read.values)
    )
    return logits.repeat_interleave(samples, 0), _Cache(keys, values)


def _step(model: Model, token: Tensor, cache: _Cache, position: int) -> Tensor:
    """Read one more token of every row and return the next token's logits.

    Rows stay two-dimensional, unlike in `project`: with one token a row, shapes cost as much as arithmetic.
    """
    sizes = model.sizes
    rows, shared, size = len(token), sizes.key_value_heads, sizes.head_size
    cosine, sine = model.cosine[position], model.sine[position]
    x = F.embedding(token, model.embedding)
    for layer, keys, values in zip(model.layers, cache.keys, cache.values, strict=True):
        joined = F.linear(normalise(x, layer.attention_norm), layer.query_key_value).view(rows, -1, size)
        turned = rotate(joined[:, :-shared], cosine, sine)
        keys[:, :, position] = turned[:, sizes.heads :]
        values[:, :, position] = joined[:, -shared:]
        query = turned[:, : sizes.heads].reshape(rows * shared, -1, size)
        seen_keys, seen_values = (kept.view(rows * shared, -1, size)[:, : position + 1] for kept in (keys, values))
        weights = (torch.bmm(query, seen_keys.transpose(1, 2)) * size**-0.5).softmax(-1)
        x = torch.addmm(x, torch.bmm(weights, seen_values).view(rows, -1), layer.attention_out.T)
        x = feed_forward(x, layer)
    return F.linear(normalise(x, model.norm), model.head)
