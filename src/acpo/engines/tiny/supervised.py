"""The base model: supervised training on generated, imperfect demonstrations."""

from collections.abc import Sequence
from pathlib import Path

import torch

from acpo.engines.tiny.model import Architecture, Model, Weights, initial_weights
from acpo.engines.tiny.optimizer import AdamW
from acpo.engines.tiny.policy import token_mask, token_scores
from acpo.engines.tiny.vocabulary import Vocabulary
from acpo.progress import Progress
from acpo.sections import BuiltModel
from acpo.streams import stream, stream_seed
from acpo.tasks.base import EmbeddedTask, Problem

LENGTH_BUCKETS = 4
"""How demonstrations are grouped by length for scoring; it decides the order of sums, and so the bits."""


def train_on_demonstrations(
    model: BuiltModel,
    sizes: Architecture,
    task: EmbeddedTask,
    problems: Sequence[Problem],
    root_seed: int,
    progress: Progress,
) -> Weights:
    """Train a model from nothing on demonstrations drawn afresh at each step.

    Args:
        model: Its configuration.
        sizes: Its sizes.
        task: Writes the demonstrations.
        problems: The training problems.
        root_seed: Root of the streams `initial weights` and `demonstrations`.
        progress: Where to report.

    Returns:
        The trained weights.
    """
    recipe = model.supervised
    vocabulary = Vocabulary.of(task)
    weights = initial_weights(sizes, stream_seed(root_seed, "initial weights"))
    for tensor in weights.values():
        tensor.requires_grad_()
    optimizer = AdamW(weights, recipe.adam_betas, recipe.weight_decay)
    generator = stream(root_seed, "demonstrations")
    prompts = vocabulary.encode_prompts([problem.prompt for problem in problems])
    for step in range(recipe.steps):
        chosen = generator.integers(len(problems), size=recipe.batch_size)
        answers = vocabulary.encode([task.demonstration(problems[i], generator) for i in chosen])
        lengths = torch.tensor([len(answer) for answer in answers])
        width = int(lengths.max())
        responses = torch.tensor([answer + [0] * (width - len(answer)) for answer in answers])
        prompt = torch.tensor([prompts[i] for i in chosen])
        log_prob, _ = token_scores(Model.of(weights, sizes), prompt, responses, lengths, 1.0, LENGTH_BUCKETS)
        loss = -log_prob.sum() / token_mask(lengths, width).sum()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(list(weights.values()), 1.0)
        optimizer.step(recipe.learning_rate * min((step + 1) / (recipe.warmup_steps + 1), 1 - step / recipe.steps))
        progress.advance(int(lengths.sum()), loss=loss.item())
    return {name: tensor.detach() for name, tensor in weights.items()}


def write_template(directory: Path, sizes: Architecture, vocabulary: Vocabulary) -> None:
    """Write the config and tokenizer files of a transformers checkpoint of this architecture."""
    from transformers import GenerationConfig, LlamaConfig

    from acpo.engines.tiny.model import NORM_EPSILON, ROPE_BASE

    end_tokens = sorted(vocabulary.end_tokens)
    config = LlamaConfig(
        vocab_size=sizes.vocabulary, hidden_size=sizes.hidden, num_hidden_layers=sizes.layers,
        num_attention_heads=sizes.heads, num_key_value_heads=sizes.key_value_heads,
        intermediate_size=sizes.feed_forward, max_position_embeddings=sizes.positions, rms_norm_eps=NORM_EPSILON,
        rope_parameters={"rope_type": "default", "rope_theta": ROPE_BASE}, tie_word_embeddings=False,
        architectures=["LlamaForCausalLM"], dtype="float32", bos_token_id=1, pad_token_id=0,
        eos_token_id=end_tokens,
    )  # fmt: skip
    config.save_pretrained(directory)
    GenerationConfig(bos_token_id=1, pad_token_id=0, eos_token_id=end_tokens).save_pretrained(directory)
    vocabulary.save_tokenizer(directory)
