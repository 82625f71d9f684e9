"""Dominant subspaces of gradient matrices and the angles between them (App. D)."""

import torch
from torch import Tensor

KRYLOV_BLOCKS = 7
EXACT_BELOW = 512
"""A matrix whose shorter side is at most this is decomposed exactly: there a randomised method saves nothing."""


class DegenerateMatrixError(ValueError):
    """A matrix has no subspace of the rank asked for; the message says why."""


def capped_rank(rows: int, columns: int, rank: int) -> int:
    """Return the largest usable subspace rank of a matrix: `rank`, but below half of its shorter side.

    Two subspaces of more than half of the directions meet whatever they are, so their angles would say little.

    Args:
        rows: m.
        columns: n.
        rank: k, what is wanted (128 in App. D).

    Raises:
        DegenerateMatrixError: the matrix is too small for any.
    """
    allowed = min(rank, (min(rows, columns) - 1) // 2)
    if allowed < 1:
        raise DegenerateMatrixError(f"a {rows} x {columns} matrix has no subspace below half of its shorter side")
    return allowed


def right_singular_subspace(matrix: Tensor, rank: int, generator: torch.Generator | None = None) -> Tensor:
    """Return an orthonormal basis of the dominant right singular subspace V_k (App. D.2).

    Large matrices are decomposed by randomised block Krylov iteration (Musco and Musco 2015, Alg. 2), which tells
    neighbouring singular values apart that subspace iteration of the same cost does not.

    Args:
        matrix: (m, n) a gradient, on any device.
        rank: k.
        generator: draws the test matrix of the randomised method; None uses a fixed seed.

    Returns:
        (n, k) with orthonormal columns, in the order of falling singular values.

    Raises:
        DegenerateMatrixError: zeros, values that are not finite, or k larger than a side.
    """
    rows, columns = matrix.shape
    if rank > min(rows, columns):
        raise DegenerateMatrixError(f"a {rows} x {columns} matrix has no {rank} singular vectors")
    largest = matrix.abs().max()
    if not torch.isfinite(largest):
        raise DegenerateMatrixError("the gradient is not finite")
    if largest == 0:
        raise DegenerateMatrixError("the gradient is zero")
    # Scaled, so that squares neither overflow nor vanish.
    scaled = matrix.float() / largest.float()
    if min(rows, columns) <= max(EXACT_BELOW, KRYLOV_BLOCKS * rank):
        return torch.linalg.svd(scaled, full_matrices=False).Vh[:rank].mT
    return _krylov_subspace(scaled, rank, generator)


def _krylov_subspace(matrix: Tensor, rank: int, generator: torch.Generator | None) -> Tensor:
    if generator is None:
        generator = torch.Generator(device=matrix.device).manual_seed(0)
    start = torch.randn(matrix.shape[0], rank, generator=generator, device=matrix.device)
    blocks = [torch.linalg.qr(matrix.mT @ start).Q]
    while len(blocks) < KRYLOV_BLOCKS:
        blocks.append(torch.linalg.qr(matrix.mT @ (matrix @ blocks[-1])).Q)
    basis = torch.linalg.qr(torch.cat(blocks, dim=1)).Q
    projected = matrix @ basis
    # The right singular vectors of a tall matrix are the eigenvectors of its small Gram matrix.
    rotation = torch.linalg.eigh((projected.mT @ projected).double()).eigenvectors.flip(1)[:, :rank]
    return basis @ rotation.to(basis.dtype)


def principal_angles(first: Tensor, second: Tensor) -> Tensor:
    """Return the principal angles between two subspaces of equal rank (App. D.3, D.5).

    Args:
        first: (n, k) orthonormal columns.
        second: (n, k) orthonormal columns.

    Returns:
        (k,) degrees from 0 to 90, ascending, in float64.

    Raises:
        ValueError: shapes disagree.
    """
    if first.shape != second.shape:
        raise ValueError(f"subspaces of shapes {tuple(first.shape)} and {tuple(second.shape)} have no common angles")
    cosines = torch.linalg.svdvals(first.double().mT @ second.double()).clamp(0, 1)
    return torch.rad2deg(torch.arccos(cosines))


def mean_principal_angle(first: Tensor, second: Tensor) -> float:
    """Return the mean principal angle in degrees (App. D.4)."""
    return principal_angles(first, second).mean().item()


def random_subspace_angle(dimensions: int, rank: int, draws: int, generator: torch.Generator) -> float:
    """Return the mean principal angle between random subspaces: what no relation at all looks like.

    Args:
        dimensions: n.
        rank: k.
        draws: Over how many independent pairs.
        generator: Draws them.
    """
    angles = [
        mean_principal_angle(*(torch.linalg.qr(torch.randn(dimensions, rank, generator=generator)).Q for _ in range(2)))
        for _ in range(draws)
    ]
    return sum(angles) / draws
