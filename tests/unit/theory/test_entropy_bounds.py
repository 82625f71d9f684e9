"""App. E: the bounds hold for every distribution, and both ends are attained."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import entropy

from acpo.theory.entropy import entropy_bounds


def test_by_hand() -> None:
    low, high = entropy_bounds(0.5, 3)
    assert float(low) == pytest.approx(np.log(2))
    assert float(high) == pytest.approx(0.5 * np.log(2) + 0.5 * np.log(4))


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 60), st.sampled_from([0.02, 0.3, 1.0, 20.0]))
def test_every_token_of_every_distribution_is_inside(seed: int, vocabulary: int, shape: float) -> None:
    p = np.random.default_rng(seed).dirichlet(np.full(vocabulary, shape))
    low, high = entropy_bounds(np.minimum(p, 1), vocabulary)
    assert (low - 1e-9 <= entropy(p)).all()
    assert (entropy(p) <= high + 1e-9).all()


@pytest.mark.parametrize("vocabulary", [2, 5, 1000])
@pytest.mark.parametrize("probability", [1e-12, 0.01, 0.5, 0.99, 1 - 1e-12])
def test_both_ends_are_attained(probability: float, vocabulary: int) -> None:
    rest = 1 - probability
    single = [probability, rest]
    flat = [probability, *[rest / (vocabulary - 1)] * (vocabulary - 1)]
    low, high = entropy_bounds(probability, vocabulary)
    assert float(low) == pytest.approx(float(entropy(single)), abs=1e-12)
    assert float(high) == pytest.approx(float(entropy(flat)), abs=1e-12)


def test_certain_and_impossible_tokens() -> None:
    low, high = entropy_bounds([0.0, 1.0], 10)
    assert list(low) == [0, 0]
    assert high == pytest.approx([np.log(9), 0])


def test_an_unknown_vocabulary_leaves_the_upper_end_open() -> None:
    low, high = entropy_bounds([0.5, 1.0], None)
    assert low == pytest.approx([np.log(2), 0])
    assert list(high) == [np.inf, 0]


def test_out_of_range() -> None:
    for wrong in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="probabilities"):
            entropy_bounds([0.5, wrong], 10)
    with pytest.raises(ValueError, match="vocabulary"):
        entropy_bounds(0.5, 1)
