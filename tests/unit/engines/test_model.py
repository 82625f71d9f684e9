"""The decoder, its checkpoint and tokenizer against transformers."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from small_study import SmallStudy
from torch import Tensor

from acpo.engines.tiny.checkpoint import WEIGHTS_FILE, architecture_of, load_weights, save_policy
from acpo.engines.tiny.model import Architecture, Model, Weights, initial_weights, read_prompts, response_logits
from acpo.engines.tiny.policy import token_mask, token_scores
from acpo.engines.tiny.supervised import write_template
from acpo.engines.tiny.vocabulary import Vocabulary
from acpo.store import StoreError
from acpo.tasks.countdown_mini import TASK

SIZES = Architecture(113, 32, 3, 4, 2, 48, 43)
VOCABULARY = Vocabulary.of(TASK)


def full_logits(model: Model, tokens: torch.Tensor, prompt_length: int) -> torch.Tensor:
    """Logits of each response token of whole sequences."""
    return response_logits(model, read_prompts(model, tokens[:, :prompt_length]), tokens[:, prompt_length:])


def lively_weights(sizes: Architecture = SIZES, seed: int = 0) -> Weights:
    """Weights of a size at which every part of the network matters, norms included."""
    generator = torch.Generator().manual_seed(seed)
    weights = initial_weights(sizes, seed)
    return {
        name: 0.5 + torch.rand(tensor.shape, generator=generator) if "norm" in name else tensor * 6
        for name, tensor in weights.items()
    }


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("checkpoint")
    (directory / "template").mkdir()
    write_template(directory / "template", SIZES, VOCABULARY)
    save_policy(directory / "model", lively_weights(), directory / "template")
    return directory / "model"


@pytest.fixture(scope="module")
def tokens() -> Tensor:
    return torch.randint(2, 113, (6, 43), generator=torch.Generator().manual_seed(1))


class TestAgainstTransformers:
    def test_log_probabilities_agree(self, checkpoint: Path, tokens: Tensor) -> None:
        from transformers import AutoModelForCausalLM

        theirs = AutoModelForCausalLM.from_pretrained(checkpoint)
        assert {name: tuple(t.shape) for name, t in theirs.state_dict().items()} == {
            name: tuple(t.shape) for name, t in lively_weights().items()
        }
        with torch.no_grad():
            expected = torch.log_softmax(theirs(tokens).logits[:, 6:-1], -1)
            model = Model.of(load_weights(checkpoint), architecture_of(checkpoint))
            found = torch.log_softmax(full_logits(model, tokens, 7), -1)
        assert expected.std() > 0.5  # a flat model would agree whatever it computed
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)

    def test_gradients_agree(self, checkpoint: Path, tokens: Tensor) -> None:
        from transformers import AutoModelForCausalLM

        theirs = AutoModelForCausalLM.from_pretrained(checkpoint)
        chosen = tokens[:, 7:, None]
        torch.log_softmax(theirs(tokens).logits[:, 6:-1], -1).gather(-1, chosen).mean().backward()
        weights = {name: tensor.requires_grad_() for name, tensor in lively_weights().items()}
        logits = full_logits(Model.of(weights, SIZES), tokens, 7)
        torch.log_softmax(logits, -1).gather(-1, chosen).mean().backward()
        for name, parameter in theirs.named_parameters():
            torch.testing.assert_close(weights[name].grad, parameter.grad, atol=1e-5, rtol=1e-3, msg=name)

    def test_tokenizer_agrees(self, checkpoint: Path) -> None:
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(checkpoint)
        problems = [problem for split in ("train", "dev", "test") for problem in TASK.problems(split, 0, {})]
        prompts = [problem.prompt for problem in problems]
        assert tokenizer(prompts)["input_ids"] == VOCABULARY.encode_prompts(prompts)
        line = "10 / 5 = 2 , 2 * 9 = 18 no 5 - 2 = 3 , 100 > 0 yes"
        ids = tokenizer(line, add_special_tokens=False)["input_ids"]
        assert ids == VOCABULARY.encode([line])[0]
        assert tokenizer.decode(ids) == line == VOCABULARY.decode(ids)
        assert tokenizer.decode(ids, skip_special_tokens=True) == line
        assert tokenizer.convert_ids_to_tokens(range(len(tokenizer))) == list(VOCABULARY.words)
        assert (tokenizer.pad_token_id, tokenizer.eos_token_id, tokenizer.bos_token_id) == (0, 0, 1)

    def test_generate_continues_as_the_model_does(self, checkpoint: Path) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        theirs = AutoModelForCausalLM.from_pretrained(checkpoint)
        prompt = AutoTokenizer.from_pretrained(checkpoint)("2 5 9 to 19 >", return_tensors="pt")["input_ids"]
        assert prompt.shape == (1, 7)
        made = theirs.generate(prompt, do_sample=False, max_new_tokens=5)[0, 7:]
        tokens = prompt
        model = Model.of(load_weights(checkpoint), architecture_of(checkpoint))
        for expected in made.tolist():
            logits = full_logits(model, torch.cat([tokens, torch.zeros(1, 1, dtype=torch.long)], 1), tokens.shape[1])
            assert int(logits[0, -1].argmax()) == expected
            tokens = torch.cat([tokens, torch.tensor([[expected]])], 1)


class TestCheckpoint:
    @pytest.fixture
    def copy(self, checkpoint: Path, tmp_path: Path) -> Path:
        save_policy(tmp_path / "copy", lively_weights(), checkpoint)
        return tmp_path / "copy"

    def test_round_trip_keeps_every_bit(self, copy: Path) -> None:
        found, expected = load_weights(copy), lively_weights()
        assert found.keys() == expected.keys()
        assert all(torch.equal(found[name], expected[name]) for name in expected)
        assert architecture_of(copy) == SIZES

    @pytest.mark.parametrize("kept", [0, 7, 100, 5000, -1])
    def test_truncated_weights_are_refused(self, copy: Path, kept: int) -> None:
        content = (copy / WEIGHTS_FILE).read_bytes()
        (copy / WEIGHTS_FILE).write_bytes(content[:kept])
        with pytest.raises(StoreError, match=rf"{WEIGHTS_FILE}: cannot be read .*Delete it and run"):
            load_weights(copy)

    def test_weights_of_another_shape_are_refused(self, copy: Path) -> None:
        weights = load_file(copy / WEIGHTS_FILE)
        weights["lm_head.weight"] = weights["lm_head.weight"][:-1].contiguous()
        save_file(weights, copy / WEIGHTS_FILE)
        with pytest.raises(StoreError, match=r"lm_head\.weight: expected shape \(113, 32\), found \(112, 32\)"):
            load_weights(copy)

    def test_a_missing_weight_is_named(self, copy: Path) -> None:
        weights = load_file(copy / WEIGHTS_FILE)
        del weights["model.norm.weight"]
        save_file(weights, copy / WEIGHTS_FILE)
        with pytest.raises(StoreError, match=r"model\.norm\.weight: expected shape \(32,\), found None"):
            load_weights(copy)

    @pytest.mark.parametrize("value", [float("nan"), float("inf")])
    def test_weights_that_are_no_numbers_are_refused(self, copy: Path, value: float) -> None:
        weights = load_file(copy / WEIGHTS_FILE)
        weights["model.norm.weight"][3] = value
        save_file(weights, copy / WEIGHTS_FILE)
        with pytest.raises(StoreError, match="holds NaN or infinity"):
            load_weights(copy)

    @pytest.mark.parametrize("text", ["", "{", "{}", "[]", '{"model_type": "gpt2"}'])
    def test_a_damaged_config_is_refused(self, copy: Path, text: str) -> None:
        (copy / "config.json").write_text(text)
        with pytest.raises(StoreError, match=r"config\.json: not the config of a"):
            architecture_of(copy)

    def test_another_architecture_is_refused(self, copy: Path) -> None:
        config = json.loads((copy / "config.json").read_text())
        for change in ({"model_type": "gpt2"}, {"tie_word_embeddings": True}):
            (copy / "config.json").write_text(json.dumps(config | change))
            with pytest.raises(StoreError, match="the embedded engine runs untied"):
                architecture_of(copy)

    def test_a_missing_checkpoint_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(StoreError, match="absent"):
            load_weights(tmp_path / "absent")
        with pytest.raises(StoreError, match="absent"):
            architecture_of(tmp_path / "absent")


class TestTokenScores:
    @pytest.fixture
    def rows(self) -> tuple[Tensor, Tensor, Tensor]:
        """Ten responses of lengths 1 to 36 behind one-length prompts."""
        generator = torch.Generator().manual_seed(2)
        prompts = torch.randint(2, 113, (10, 7), generator=generator)
        responses = torch.randint(2, 113, (10, 36), generator=generator)
        return prompts, responses, torch.tensor([36, 1, 12, 24, 7, 36, 2, 13, 30, 5])

    @pytest.mark.parametrize("buckets", [2, 3, 4, 10, 50])
    def test_the_number_of_buckets_does_not_matter(self, rows: tuple[Tensor, Tensor, Tensor], buckets: int) -> None:
        found = {}
        for number in (1, buckets):
            weights = {name: tensor.requires_grad_() for name, tensor in lively_weights().items()}
            log_prob, entropy = token_scores(Model.of(weights, SIZES), *rows, 1.0, number)
            (log_prob * torch.linspace(-1, 1, 36)).sum().backward()
            found[number] = log_prob.detach(), entropy, {name: tensor.grad for name, tensor in weights.items()}
        for one, other in zip(found[1][:2], found[buckets][:2], strict=True):
            torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)
        for name, gradient in found[1][2].items():
            torch.testing.assert_close(found[buckets][2][name], gradient, atol=2e-4, rtol=1e-3, msg=name)

    def test_padding_does_not_matter(self, rows: tuple[Tensor, Tensor, Tensor]) -> None:
        prompts, responses, lengths = rows
        model = Model.of(lively_weights(), SIZES)
        mask = token_mask(lengths, 36)
        other = torch.where(mask, responses, torch.randint(0, 113, responses.shape))
        for buckets in (1, 4):
            for one, two in zip(
                token_scores(model, prompts, responses, lengths, 1.0, buckets),
                token_scores(model, prompts, other, lengths, 1.0, buckets),
                strict=True,
            ):
                assert torch.equal(one, two)
                assert (one[~mask] == 0).all()

    def test_rows_keep_their_places(self, rows: tuple[Tensor, Tensor, Tensor]) -> None:
        prompts, responses, lengths = rows
        model = Model.of(lively_weights(), SIZES)
        together, _ = token_scores(model, prompts, responses, lengths, 1.0, 4)
        for i, length in enumerate(lengths.tolist()):
            alone, _ = token_scores(model, prompts[i : i + 1], responses[i : i + 1], lengths[i : i + 1], 1.0, 4)
            torch.testing.assert_close(together[i, :length], alone[0, :length], atol=1e-5, rtol=1e-5)

    def test_temperature_divides_the_logits(self, rows: tuple[Tensor, Tensor, Tensor]) -> None:
        """L23: the same as a model whose head is twice as large."""
        weights = lively_weights()
        half = token_scores(Model.of(weights, SIZES), *rows, 0.5, 1)
        weights["lm_head.weight"] = weights["lm_head.weight"] * 2
        doubled = token_scores(Model.of(weights, SIZES), *rows, 1.0, 1)
        for one, two in zip(half, doubled, strict=True):
            torch.testing.assert_close(one, two, atol=1e-5, rtol=1e-5)
        assert not torch.allclose(half[0], token_scores(Model.of(weights, SIZES), *rows, 0.5, 1)[0], atol=1e-2)

    def test_entropy_of_a_known_distribution(self, rows: tuple[Tensor, Tensor, Tensor]) -> None:
        """L28. A head of zeros is uniform: log 113. A head that reads one feature makes logits by hand."""
        weights = lively_weights()
        weights["lm_head.weight"] = torch.zeros_like(weights["lm_head.weight"])
        log_prob, entropy = token_scores(Model.of(weights, SIZES), *rows, 1.0, 4)
        mask = token_mask(rows[2], 36)
        torch.testing.assert_close(entropy[mask], torch.full((int(mask.sum()),), torch.tensor(113.0).log()))
        torch.testing.assert_close(log_prob[mask], -entropy[mask])
        # Two tokens out of 113 share all probability 3:1, so H = log 4 - 3/4 log 3 = 0.5623 nats.
        weights["model.norm.weight"] = torch.zeros(32)
        weights["model.norm.weight"][0] = 1.0
        head = torch.zeros(113, 32)
        weights["lm_head.weight"] = head
        model = Model.of(weights, SIZES)
        prompts, responses, lengths = rows
        hidden = full_logits(
            Model.of(weights | {"lm_head.weight": torch.eye(113, 32)}, SIZES),
            torch.cat([prompts, responses], 1), 7,
        )[0, 0, 0]  # fmt: skip
        head[:, 0] = -40 / hidden
        head[5, 0], head[6, 0] = torch.tensor(3.0).log() / hidden, 0.0
        _, entropy = token_scores(model, prompts[:1], responses[:1], torch.tensor([1]), 1.0, 1)
        assert entropy[0, 0].item() == pytest.approx(0.5623351, abs=1e-5)
        assert (lengths > 0).all()

    def test_entropy_is_never_negative_nor_nan(self, rows: tuple[Tensor, Tensor, Tensor]) -> None:
        """L28, L29: also where nearly all probability underflows to 0."""
        weights = lively_weights()
        weights["lm_head.weight"] = weights["lm_head.weight"] * 1000
        weights = {name: tensor.requires_grad_() for name, tensor in weights.items()}
        log_prob, entropy = token_scores(Model.of(weights, SIZES), *rows, 1.0, 4)
        assert (log_prob.detach().exp() == 0).any()
        assert entropy.isfinite().all()
        assert (entropy >= 0).all()
        log_prob.sum().backward()
        assert all(tensor.grad.isfinite().all() for tensor in weights.values())


def test_vocabulary_refuses_a_foreign_word() -> None:
    with pytest.raises(ValueError, match="the word '101' is not in the task's vocabulary"):
        VOCABULARY.encode_prompts(["1 2 3 to 101 >"])


def test_supervised_start_learns_the_format(small_base: SmallStudy) -> None:
    """It takes the small model from log 113 = 4.73 nats a token to less than 1.2 on puzzles that it was shown."""
    import numpy as np

    model = Model.of(load_weights(small_base.base), architecture_of(small_base.base))
    problems = list(TASK.problems("train", 0, {}))[:10] * 6
    generator = np.random.default_rng(0)
    answers = VOCABULARY.encode([TASK.demonstration(problem, generator) for problem in problems])
    lengths = torch.tensor([len(answer) for answer in answers])
    responses = torch.tensor([answer + [0] * (36 - len(answer)) for answer in answers])
    prompts = torch.tensor(VOCABULARY.encode_prompts([problem.prompt for problem in problems]))
    log_prob, _ = token_scores(model, prompts, responses, lengths, 1.0, 1)
    assert -log_prob.sum() / lengths.sum() < 1.2
