"""Named random streams: every draw of a study comes from one root seed and the name of what is drawn."""

import hashlib

import numpy as np


def stream_seed(root_seed: int, *names: str | int) -> int:
    """Derive the seed of one named stream.

    Args:
        root_seed: The study's root seed.
        names: What is drawn, from general to special, e.g. ``("rollout", seed, step)``.

    Returns:
        An integer in [0, 2**63), different for different names and stable across machines and versions.
    """
    text = "\x1f".join(str(part) for part in (root_seed, *names))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def stream(root_seed: int, *names: str | int) -> np.random.Generator:
    """Open one named stream as a NumPy generator (arguments as in `stream_seed`)."""
    return np.random.Generator(np.random.Philox(stream_seed(root_seed, *names)))


def uniforms(shape: tuple[int, ...], root_seed: int, *names: str | int) -> np.ndarray:
    """Draw float32 uniforms in [0, 1) from one named stream.

    A sampler that turns row i's uniforms into row i's tokens gives the same tokens however rows are batched.
    """
    return stream(root_seed, *names).random(shape, dtype=np.float32)
