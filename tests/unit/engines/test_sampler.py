"""The sampler: its tokens follow the model, its log-probabilities are the policy's, its ends are ends."""

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from acpo.engines.tiny.model import Architecture, Model, Weights, initial_weights, read_prompts, response_logits
from acpo.engines.tiny.policy import token_scores
from acpo.engines.tiny.sampler import Responses, sample
from acpo.streams import uniforms

SIZES = Architecture(20, 32, 2, 4, 2, 48, 24)
END = 7
LIMIT = 16
PROMPTS = [[1, 2 + i % 5, 3 + i % 7, 4 + i % 11] for i in range(30)]


def full_logits(model: Model, tokens: torch.Tensor, prompt_length: int) -> torch.Tensor:
    """Logits of each response token of whole sequences."""
    return response_logits(model, read_prompts(model, tokens[:, :prompt_length]), tokens[:, prompt_length:])


def weights(scale: float = 6.0) -> Weights:
    return {name: t if "norm" in name else t * scale for name, t in initial_weights(SIZES, 3).items()}


@pytest.fixture(scope="module")
def model() -> Model:
    return Model.of(weights(), SIZES)


def draw(model: Model, prompts: list[list[int]] = PROMPTS, samples: int = 4, **changes: object) -> Responses:
    options = {"temperature": 1.0, "end_tokens": frozenset({END}), "batch_size": 1000} | changes
    numbers = uniforms((len(prompts) * samples, LIMIT), 0, "rollout", 0)
    return sample(model, prompts, samples, numbers, **options)  # type: ignore[arg-type]


class TestLogProbabilities:
    @pytest.mark.parametrize("temperature", [1.0, 0.5, 2.0])
    def test_are_those_of_the_policy(self, model: Model, temperature: float) -> None:
        """L21, L23, L24: the cached sampler and the trainer's scores are one distribution."""
        found = draw(model, temperature=temperature)
        prompts = torch.tensor(PROMPTS).repeat_interleave(4, 0)
        expected, _ = token_scores(model, prompts, found.tokens, found.lengths, temperature, 4)
        mask = torch.arange(found.tokens.shape[1]) < found.lengths[:, None]
        assert len(set(found.lengths.tolist())) > 5
        torch.testing.assert_close(found.log_prob[mask], expected[mask], atol=1e-5, rtol=1e-5)

    def test_are_zero_behind_the_end(self, model: Model) -> None:
        found = draw(model)
        behind = torch.arange(found.tokens.shape[1]) >= found.lengths[:, None]
        assert behind.any()
        assert (found.log_prob[behind] == 0).all()
        assert (found.tokens[behind] == 0).all()


class TestBatches:
    @pytest.mark.parametrize("batch_size", [1, 4, 12, 44])
    def test_their_size_does_not_matter(self, model: Model, batch_size: int) -> None:
        one, other = draw(model), draw(model, batch_size=batch_size)
        assert torch.equal(one.tokens, other.tokens)
        assert torch.equal(one.lengths, other.lengths)
        assert torch.equal(one.finished, other.finished)
        torch.testing.assert_close(one.log_prob, other.log_prob, atol=1e-5, rtol=1e-5)

    def test_prompts_of_different_lengths(self, model: Model) -> None:
        """Each prompt is answered as it is when only prompts of its length are there."""
        prompts = [[1, 2 + i % 5] + [3 + i % 4] * (i % 4) for i in range(24)]
        together = draw(model, prompts, samples=2)
        numbers = uniforms((48, LIMIT), 0, "rollout", 0)
        for i, prompt in enumerate(prompts):
            rows = slice(2 * i, 2 * i + 2)
            alone = sample(model, [prompt], 2, numbers[rows], 1.0, frozenset({END}), 2)
            width = alone.tokens.shape[1]
            assert torch.equal(together.lengths[rows], alone.lengths)
            assert torch.equal(together.tokens[rows, :width], alone.tokens)

    def test_a_row_depends_on_its_own_uniforms_only(self, model: Model) -> None:
        numbers = uniforms((120, LIMIT), 0, "rollout", 0)
        changed = numbers.copy()
        changed[::2] = uniforms((60, LIMIT), 0, "other")
        one, other = (sample(model, PROMPTS, 4, n, 1.0, frozenset({END}), 40) for n in (numbers, changed))
        width = min(one.tokens.shape[1], other.tokens.shape[1])
        assert torch.equal(one.tokens[1::2, :width], other.tokens[1::2, :width])
        assert not torch.equal(one.tokens[::2, :width], other.tokens[::2, :width])


class TestDistribution:
    def test_frequencies_follow_the_softmax(self, model: Model) -> None:
        for prompt in PROMPTS[:3]:
            for temperature in (1.0, 0.5):
                logits = full_logits(model, torch.tensor([[*prompt, 0]]), len(prompt))[0, 0]
                expected = torch.softmax(logits.double() / temperature, -1).numpy() * 20_000
                numbers = uniforms((20_000, 1), 0, "frequencies", *prompt)
                found = sample(model, [prompt], 20_000, numbers, temperature, frozenset(), 20_000).tokens[:, 0]
                counts = np.bincount(found.numpy(), minlength=20).astype(float)
                rare = expected < 8
                counts = np.append(counts[~rare], counts[rare].sum())
                expected = np.append(expected[~rare], max(expected[rare].sum(), 1e-9))
                if expected[-1] < 5:
                    counts[-2], expected[-2] = counts[-2] + counts[-1], expected[-2] + expected[-1]
                    counts, expected = counts[:-1], expected[:-1]
                assert len(counts) > 3
                assert chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > 1e-3

    def test_inverts_the_cumulative_distribution(self, model: Model) -> None:
        """At uniform u the token is the first whose cumulative probability exceeds u."""
        prompt = PROMPTS[0]
        logits = full_logits(model, torch.tensor([[*prompt, 0]]), len(prompt))[0, 0]
        edges = torch.softmax(logits.double(), -1).cumsum(0).numpy()
        numbers = np.linspace(0, 0.9999, 500, dtype=np.float32)[:, None]
        found = sample(model, [prompt], 500, numbers, 1.0, frozenset(), 500).tokens[:, 0].numpy()
        expected = np.searchsorted(edges, numbers[:, 0], side="right")
        near = np.abs(edges[None] - numbers).min(1) < 1e-6
        assert (found == expected)[~near].all()

    def test_extreme_uniforms_give_tokens_that_can_be(self) -> None:
        """Never a token of probability zero: not at 0, not at the largest single-precision number below 1."""
        sharp = Model.of(weights(60.0), SIZES)
        numbers = np.tile(np.array([[0.0], [np.nextafter(np.float32(1), np.float32(0))]], np.float32), (30, LIMIT))
        found = sample(sharp, PROMPTS, 2, numbers, 1.0, frozenset({END}), 8)
        assert found.log_prob.isfinite().all()
        assert (found.log_prob > -21).all()  # a cell of 2^-24 = e^-16.6, which a few tokens may share

    def test_low_temperature_is_greedy(self, model: Model) -> None:
        found = draw(model, PROMPTS[:5], samples=1, temperature=1e-4)
        for prompt, row, length in zip(PROMPTS, found.tokens.tolist(), found.lengths.tolist(), strict=False):
            tokens = torch.tensor([prompt + row[:length]])
            greedy = full_logits(model, tokens, len(prompt))[0].argmax(-1)
            assert greedy.tolist() == row[:length]


class TestEnds:
    """L10, L30: lengths and truncation come from the sampled end, not from padding or from the limit."""

    def test_an_end_is_the_last_token_and_counts(self, model: Model) -> None:
        found = draw(model)
        assert 20 < int(found.finished.sum()) < 115
        for tokens, length, finished in zip(found.tokens, found.lengths.tolist(), found.finished.tolist(), strict=True):
            ends = (tokens[:length] == END).nonzero().flatten().tolist()
            assert ends == ([length - 1] if finished else [])
            assert finished or length == LIMIT

    def test_an_end_at_the_limit_is_an_end(self, model: Model) -> None:
        """A response as long as the limit is truncated only where its last token is no end."""
        long = draw(model)
        at_limit = [i for i in range(120) if long.lengths[i] == LIMIT]
        shorter = [i for i in range(120) if long.finished[i] and long.lengths[i] == 5]
        assert at_limit
        assert shorter
        numbers = uniforms((120, LIMIT), 0, "rollout", 0)[:, :5]
        cut = sample(model, PROMPTS, 4, numbers, 1.0, frozenset({END}), 1000)
        assert cut.tokens.shape[1] == 5
        assert all(bool(cut.finished[i]) and cut.lengths[i] == 5 for i in shorter)
        assert not any(bool(cut.finished[i]) for i in at_limit)

    def test_several_ends(self, model: Model) -> None:
        found = draw(model, end_tokens=frozenset({END, 4, 9}))
        for tokens, length, finished in zip(found.tokens, found.lengths.tolist(), found.finished.tolist(), strict=True):
            inside = [int(token) in (END, 4, 9) for token in tokens[:length]]
            assert inside == [False] * (length - 1) + [finished]

    def test_without_an_end_all_are_cut_off(self, model: Model) -> None:
        found = draw(model, end_tokens=frozenset())
        assert not found.finished.any()
        assert (found.lengths == LIMIT).all()
