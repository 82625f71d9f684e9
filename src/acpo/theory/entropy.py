"""Between which bounds an entropy lies, given one token's probability (App. E). Natural logarithm."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr

Array = NDArray[np.float64]


def entropy_bounds(probability: ArrayLike, vocabulary: int | None) -> tuple[Array, Array]:
    """Return the smallest and the largest entropy, in nats, of a distribution with one probability given.

    The lower bound has the rest on one other token, the upper one has it spread evenly over all others.

    Args:
        probability: pi in [0, 1], any shape.
        vocabulary: V, at least 2; None where it is unknown, which leaves the upper bound infinite (0 at pi = 1).

    Raises:
        ValueError: a probability or the vocabulary is out of range.
    """
    p = np.asarray(probability, dtype=float)
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError("expected probabilities in [0, 1]")
    if vocabulary is not None and vocabulary < 2:
        raise ValueError(f"expected a vocabulary of at least 2 tokens, got {vocabulary}")
    lowest = entr(p) + entr(1 - p)
    spread = np.inf if vocabulary is None else np.log(vocabulary - 1)
    with np.errstate(invalid="ignore"):
        return lowest, np.where(p < 1, lowest + (1 - p) * spread, lowest)
