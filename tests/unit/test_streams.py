"""Random streams depend on their names and on nothing else."""

import hashlib
import itertools

import numpy as np
import pytest

from acpo.streams import stream, stream_seed, uniforms


def test_the_seed_is_half_of_a_hash() -> None:
    expected = int(hashlib.sha256(b"7\x1frollout\x1f0\x1f3").hexdigest()[:16], 16) // 2
    assert stream_seed(7, "rollout", 0, 3) == expected
    assert stream_seed(7, "rollout", "0", 3) == expected


def test_known_values() -> None:
    """The same on every machine and version; a change breaks every published number."""
    assert stream_seed(0, "data", 0, 0) == 1260379140037583119
    assert uniforms((3,), 0, "data", 0, 0).tolist() == pytest.approx(
        [0.9130298495, 0.9956826568, 0.9639217257], abs=1e-7
    )


def test_names_are_told_apart() -> None:
    names = [
        (0, "a"), (1, "a"), (0, "b"), (0, "a", "b"), (0, "ab"), (0, "b", "a"), (0,), (0, "a", 1), (0, "a", 11),
        (0, "a", 1, 1), (10,), (1, 0), (0, 1),
    ]  # fmt: skip
    seeds = [stream_seed(*name) for name in names]
    assert len(set(seeds)) == len(names)
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_the_order_of_use_does_not_matter() -> None:
    first = {name: stream(0, name).random(4).tolist() for name in ("data", "rollout", "update")}
    for order in itertools.permutations(first):
        opened = {name: stream(0, name) for name in order}
        halves = {name: opened[name].random(2).tolist() for name in order}
        for name in reversed(order):
            halves[name] += opened[name].random(2).tolist()
        assert halves == first


def test_streams_are_uncorrelated() -> None:
    draws = np.stack([uniforms((4000,), 0, "rollout", i) for i in range(8)]).astype(np.float64)
    correlation = np.corrcoef(draws) - np.eye(8)
    assert np.abs(correlation).max() < 5 / np.sqrt(4000)
    assert draws.min() >= 0
    assert draws.max() < 1
    assert abs(draws.mean() - 0.5) < 0.01


def test_uniforms_are_single_precision_and_row_by_row() -> None:
    table = uniforms((5, 3), 0, "x")
    assert table.dtype == np.float32
    assert (uniforms((2, 3), 0, "x") == table[:2]).all()
