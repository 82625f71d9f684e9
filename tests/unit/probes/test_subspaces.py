"""Known answers: identical, orthogonal and rotated subspaces, and the randomised method against the exact one."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from acpo.probes.subspaces import (
    EXACT_BELOW,
    DegenerateMatrixError,
    capped_rank,
    mean_principal_angle,
    principal_angles,
    random_subspace_angle,
    right_singular_subspace,
)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def orthonormal(rows: int, columns: int, seed: int = 0) -> torch.Tensor:
    return torch.linalg.qr(torch.randn(rows, columns, generator=generator(seed), dtype=torch.float64)).Q


def matrix_of(values: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    """A matrix with given singular values."""
    count = len(values)
    return (orthonormal(rows, count, 1) * values @ orthonormal(columns, count, 2).mT).float()


def test_a_subspace_meets_itself_at_zero_whatever_its_basis() -> None:
    basis = orthonormal(20, 4)
    rotation = orthonormal(4, 4, 3)
    assert principal_angles(basis, basis @ rotation).max() < 1e-5


def test_orthogonal_subspaces_meet_at_ninety_degrees() -> None:
    identity = torch.eye(10)
    assert torch.allclose(principal_angles(identity[:, :3], identity[:, 3:6]), torch.full((3,), 90.0).double())


@given(st.floats(1.0, 89.0), st.floats(1.0, 89.0))
def test_a_rotation_by_known_angles_is_recovered(first: float, second: float) -> None:
    """Two directions, each turned towards one of its own that is orthogonal to all others."""
    axes = orthonormal(12, 4)
    angles = torch.tensor([first, second], dtype=torch.float64).deg2rad()
    turned = axes[:, :2] * angles.cos() + axes[:, 2:] * angles.sin()
    found = principal_angles(axes[:, :2], turned)
    assert found.tolist() == pytest.approx(sorted([first, second]), abs=1e-6)
    assert mean_principal_angle(axes[:, :2], turned) == pytest.approx((first + second) / 2, abs=1e-6)


def test_a_gradient_in_rotated_input_features_is_seen_at_that_angle() -> None:
    """W R^T has the right singular vectors R V: turning one of two directions by 30 degrees gives a mean of 15."""
    values = torch.tensor([3.0, 2.0], dtype=torch.float64)
    axes = orthonormal(30, 3)
    left = orthonormal(40, 2, 5)
    angle = math.radians(30)
    turned = torch.stack([axes[:, 0] * math.cos(angle) + axes[:, 2] * math.sin(angle), axes[:, 1]], 1)
    first, second = (left * values @ axes[:, :2].mT, left * values @ turned.mT)
    found = mean_principal_angle(right_singular_subspace(first, 2), right_singular_subspace(second, 2))
    assert found == pytest.approx(15, abs=1e-2)


@given(st.floats(1e-30, 1e30))
def test_scale_changes_nothing(scale: float) -> None:
    matrix = matrix_of(torch.tensor([5.0, 3.0, 1.0, 0.1], dtype=torch.float64), 9, 7)
    first = right_singular_subspace(matrix, 2)
    second = right_singular_subspace(matrix * scale, 2)
    assert mean_principal_angle(first, second) < 0.05


@pytest.mark.parametrize(("rows", "columns", "rank"), [(64, 64, 31), (32, 64, 15), (3584, 18944, 128), (5, 9, 2)])
def test_the_rank_stays_below_half_of_the_shorter_side(rows: int, columns: int, rank: int) -> None:
    assert capped_rank(rows, columns, 128) == rank


def test_matrices_without_a_subspace_are_named() -> None:
    with pytest.raises(DegenerateMatrixError, match="2 x 9 matrix has no subspace"):
        capped_rank(2, 9, 128)
    with pytest.raises(DegenerateMatrixError, match="3 x 4 matrix has no 5 singular vectors"):
        right_singular_subspace(torch.ones(3, 4), 5)
    with pytest.raises(DegenerateMatrixError, match="gradient is zero"):
        right_singular_subspace(torch.zeros(3, 4), 1)
    for bad in (math.nan, math.inf, -math.inf):
        with pytest.raises(DegenerateMatrixError, match="not finite"):
            right_singular_subspace(torch.tensor([[1.0, bad]]), 1)
    with pytest.raises(ValueError, match="no common angles"):
        principal_angles(torch.eye(4)[:, :2], torch.eye(4)[:, :3])


@pytest.mark.parametrize("shape", [(700, 900), (900, 700)])
@pytest.mark.parametrize("power", [0.7, 1.5])
def test_the_randomised_method_agrees_with_the_exact_one(shape: tuple[int, int], power: float) -> None:
    assert min(shape) > EXACT_BELOW
    values = torch.arange(1, min(shape) + 1, dtype=torch.float64) ** -power
    first, second = (
        matrix_of(values, *shape),
        matrix_of(values, *shape) + 0.02 * torch.randn(shape, generator=generator()),
    )
    rank = 32
    exact = [torch.linalg.svd(matrix, full_matrices=False).Vh[:rank].mT for matrix in (first, second)]
    quick = [right_singular_subspace(matrix, rank) for matrix in (first, second)]
    for basis in quick:
        assert torch.allclose(basis.mT @ basis, torch.eye(rank), atol=1e-4)
    assert mean_principal_angle(exact[0], quick[0]) < 1.0
    assert abs(mean_principal_angle(*exact) - mean_principal_angle(*quick)) < 0.5


@settings(max_examples=20)
@given(st.integers(10, 60))
def test_random_subspaces_are_far_apart_and_reproducible(dimensions: int) -> None:
    rank = dimensions // 5
    first = random_subspace_angle(dimensions, rank, 4, generator())
    assert first == random_subspace_angle(dimensions, rank, 4, generator())
    assert 45 < first < 90


def test_random_lines_in_the_plane_meet_at_45_degrees_on_average() -> None:
    assert random_subspace_angle(2, 1, 4000, generator()) == pytest.approx(45, abs=1.5)
