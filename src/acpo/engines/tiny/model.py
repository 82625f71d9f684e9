"""A Llama decoder as plain functions on named weights.

The names, shapes and arithmetic are those of transformers' `LlamaForCausalLM` (float32, untied head), so that a
checkpoint of either loads in the other. Here because training and sampling a model this small is bound by the
overhead that a general library must have: this one is two to three times as fast on a CPU thread. Not Qwen2, whose
checkpoints `AutoTokenizer` gives a tokenizer of their own that splits words differently.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from acpo.sections import BuiltModel

Weights = dict[str, Tensor]

ROPE_BASE = 10000.0
NORM_EPSILON = 1e-6
INITIAL_SPREAD = 0.05


@dataclass(frozen=True)
class Architecture:
    """The sizes of a model; `positions` is the longest prompt plus response."""

    vocabulary: int
    hidden: int
    layers: int
    heads: int
    key_value_heads: int
    feed_forward: int
    positions: int

    @property
    def head_size(self) -> int:
        """Width of one attention head."""
        return self.hidden // self.heads

    @classmethod
    def of(cls, model: BuiltModel, vocabulary: int, positions: int) -> "Architecture":
        """Take the sizes from a configured model."""
        return cls(
            vocabulary, model.hidden_size, model.layers, model.attention_heads, model.key_value_heads,
            model.feed_forward_size, positions,
        )  # fmt: skip


def weight_shapes(sizes: Architecture) -> dict[str, tuple[int, ...]]:
    """Return the name and shape of every weight."""
    key_value = sizes.key_value_heads * sizes.head_size
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (sizes.vocabulary, sizes.hidden)}
    for layer in range(sizes.layers):
        prefix = f"model.layers.{layer}"
        for name, rows in (("q", sizes.hidden), ("k", key_value), ("v", key_value)):
            shapes[f"{prefix}.self_attn.{name}_proj.weight"] = (rows, sizes.hidden)
        shapes[f"{prefix}.self_attn.o_proj.weight"] = (sizes.hidden, sizes.hidden)
        shapes[f"{prefix}.mlp.gate_proj.weight"] = (sizes.feed_forward, sizes.hidden)
        shapes[f"{prefix}.mlp.up_proj.weight"] = (sizes.feed_forward, sizes.hidden)
        shapes[f"{prefix}.mlp.down_proj.weight"] = (sizes.hidden, sizes.feed_forward)
        shapes[f"{prefix}.input_layernorm.weight"] = (sizes.hidden,)
        shapes[f"{prefix}.post_attention_layernorm.weight"] = (sizes.hidden,)
    shapes["model.norm.weight"] = (sizes.hidden,)
    shapes["lm_head.weight"] = (sizes.vocabulary, sizes.hidden)
    return shapes


def initial_weights(sizes: Architecture, seed: int) -> Weights:
    """Draw untrained weights: norms 1, the rest normal."""
    generator = torch.Generator().manual_seed(seed)
    weights = {}
    for name, shape in weight_shapes(sizes).items():
        if name.endswith("norm.weight"):
            weights[name] = torch.ones(shape)
        else:
            weights[name] = torch.randn(shape, generator=generator) * INITIAL_SPREAD
    return weights


@dataclass(frozen=True)
class LayerWeights:
    """One layer's weights, with the projections of attention joined into one product."""

    attention_norm: Tensor
    query_key_value: Tensor
    attention_out: Tensor
    feed_forward_norm: Tensor
    gate: Tensor
    up: Tensor
    down: Tensor


@dataclass(frozen=True)
class Model:
    """Weights made ready for use; building it is differentiable, so gradients reach the named weights."""

    sizes: Architecture
    embedding: Tensor
    layers: tuple[LayerWeights, ...]
    norm: Tensor
    head: Tensor
    cosine: Tensor
    sine: Tensor

    @classmethod
    def of(cls, weights: Mapping[str, Tensor], sizes: Architecture) -> "Model":
        """Join the named weights and tabulate the rotary angles.

        Args:
            weights: As named by `weight_shapes`.
            sizes: The architecture.
        """
        cosine, sine = _rotary_tables(sizes)
        layers = tuple(_layer(weights, f"model.layers.{layer}") for layer in range(sizes.layers))
        return cls(
            sizes, weights["model.embed_tokens.weight"], layers, weights["model.norm.weight"],
            weights["lm_head.weight"], cosine, sine,
        )  # fmt: skip


def _layer(weights: Mapping[str, Tensor], prefix: str) -> LayerWeights:
    attention, feed_forward = f"{prefix}.self_attn", f"{prefix}.mlp"
    return LayerWeights(
        attention_norm=weights[f"{prefix}.input_layernorm.weight"],
        query_key_value=torch.cat([weights[f"{attention}.{name}_proj.weight"] for name in "qkv"]),
        attention_out=weights[f"{attention}.o_proj.weight"],
        feed_forward_norm=weights[f"{prefix}.post_attention_layernorm.weight"],
        gate=weights[f"{feed_forward}.gate_proj.weight"],
        up=weights[f"{feed_forward}.up_proj.weight"],
        down=weights[f"{feed_forward}.down_proj.weight"],
    )


def _rotary_tables(sizes: Architecture) -> tuple[Tensor, Tensor]:
    """Tabulate cosines and signed sines so that a rotation is two products and a roll."""
    half = sizes.head_size // 2
    frequencies = ROPE_BASE ** (-torch.arange(0, half) * 2 / sizes.head_size)
    angles = torch.arange(sizes.positions)[:, None] * frequencies
    return torch.cat([angles.cos(), angles.cos()], -1), torch.cat([-angles.sin(), angles.sin()], -1)


def normalise(x: Tensor, weight: Tensor) -> Tensor:
    """Apply root-mean-square normalisation over the last dimension."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + NORM_EPSILON) * weight


def rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Apply rotary position embedding to (..., positions, head size)."""
    return x * cosine + x.roll(x.shape[-1] // 2, -1) * sine


def feed_forward(x: Tensor, layer: LayerWeights) -> Tensor:
    """Apply a layer's gated feed-forward block, residual included."""
    seen = normalise(x, layer.feed_forward_norm)
    return x + F.linear(F.silu(F.linear(seen, layer.gate)) * F.linear(seen, layer.up), layer.down)


def project(x: Tensor, layer: LayerWeights, model: Model, positions: slice) -> tuple[Tensor, Tensor, Tensor]:
    """Return rotated queries and keys, and values.

    Args:
        x: (rows, tokens, hidden).
        layer: The layer.
        model: For sizes and rotary tables.
        positions: Which positions the tokens stand at.

    Returns:
        Queries (rows, heads, tokens, head size), keys and values (rows, key/value heads, tokens, head size).
    """
    rows, tokens, _ = x.shape
    sizes = model.sizes
    joined = F.linear(normalise(x, layer.attention_norm), layer.query_key_value)
    joined = joined.view(rows, tokens, sizes.heads + 2 * sizes.key_value_heads, sizes.head_size).transpose(1, 2)
    turned = rotate(joined[:, : -sizes.key_value_heads], model.cosine[positions], model.sine[positions])
    return turned[:, : sizes.heads], turned[:, sizes.heads :], joined[:, -sizes.key_value_heads :]


def causal_attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Attend each position to itself and those before it; heads share keys in groups.

    Args:
        query: (rows, heads, tokens, head size), the last positions of those that have keys.
        key: (rows, key/value heads, positions, head size).
        value: As `key`.

    Returns:
        (rows, tokens, heads * head size).
    """
    rows, heads, tokens, size = query.shape
    _, shared, positions, _ = key.shape
    groups = heads // shared
    future = torch.full((tokens, positions), float("-inf")).triu(1 + positions - tokens)
    stacked = query.reshape(rows * shared, groups * tokens, size)
    scores = torch.bmm(stacked, key.reshape(rows * shared, positions, size).transpose(1, 2)) * size**-0.5
    weights = (scores.view(rows * shared, groups, tokens, positions) + future).softmax(-1).view_as(scores)
    mixed = torch.bmm(weights, value.reshape(rows * shared, positions, size))
    return mixed.view(rows, heads, tokens, size).transpose(1, 2).reshape(rows, tokens, heads * size)


@dataclass(frozen=True)
class ReadPrompts:
    """Prompts that the model has read: what their responses need to know of them.

    last: (prompts, hidden) state of the last token, from which the first response token is predicted.
    keys, values: for each layer (prompts, key/value heads, prompt tokens, head size).
    """

    last: Tensor
    keys: tuple[Tensor, ...]
    values: tuple[Tensor, ...]

    def rows(self, index: Tensor) -> "ReadPrompts":
        """Return the prompts of some responses, one a response."""
        keys, values = (tuple(tensor[index] for tensor in kept) for kept in (self.keys, self.values))
        return ReadPrompts(self.last[index], keys, values)


def read_prompts(model: Model, tokens: Tensor) -> ReadPrompts:
    """Read equally long prompts, (prompts, prompt tokens) ids."""
    x = F.embedding(tokens, model.embedding)
    keys, values = [], []
    for layer in model.layers:
        query, key, value = project(x, layer, model, slice(0, x.shape[1]))
        keys.append(key)
        values.append(value)
        x = feed_forward(x + F.linear(causal_attention(query, key, value), layer.attention_out), layer)
    return ReadPrompts(x[:, -1], tuple(keys), tuple(values))


def response_logits(model: Model, prompts: ReadPrompts, responses: Tensor) -> Tensor:
    """Score responses.

    Args:
        model: The model.
        prompts: The prompt of each response.
        responses: (rows, tokens) token ids; what stands behind a response's end does not matter.

    Returns:
        (rows, tokens, vocabulary) logits of each response token.
    """
    start = prompts.keys[0].shape[2]
    x = F.embedding(responses[:, :-1], model.embedding)
    for layer, prompt_key, prompt_value in zip(model.layers, prompts.keys, prompts.values, strict=True):
        query, key, value = project(x, layer, model, slice(start, start + x.shape[1]))
        seen_key, seen_value = torch.cat([prompt_key, key], 2), torch.cat([prompt_value, value], 2)
        x = feed_forward(x + F.linear(causal_attention(query, seen_key, seen_value), layer.attention_out), layer)
    x = torch.cat([prompts.last[:, None], x], 1)
    return F.linear(normalise(x, model.norm), model.head)
