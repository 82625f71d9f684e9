"""Time the randomised subspace of gradient probes against the exact one, on a matrix of Qwen2.5-7B's MLP."""

import argparse
import time
from collections.abc import Callable

import torch
from torch import Tensor

from acpo.cli import run
from acpo.probes.subspaces import mean_principal_angle, right_singular_subspace

TARGET_RATIO, TARGET_DEGREES = 10.0, 0.5


def main() -> None:
    """Read arguments, measure, print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, default=3584)
    arguments.add_argument("--columns", type=int, default=18944)
    arguments.add_argument("--rank", type=int, default=128)
    arguments.add_argument("--power", type=float, default=1.0, help="singular values fall as i^-power")
    arguments.add_argument(
        "--noise", type=float, default=0.02, help="spectral norm of the difference of the two matrices"
    )
    arguments.add_argument("--device", default="cpu")
    given = arguments.parse_args()
    first = power_law(given.rows, given.columns, given.power, given.device, seed=0)
    other = torch.randn(first.shape, generator=_generator(given.device, 1), device=given.device)
    second = first + given.noise * other / (given.rows**0.5 + given.columns**0.5)
    exact, exact_seconds = timed(lambda: [exact_subspace(matrix, given.rank) for matrix in (first, second)])
    quick, seconds = timed(lambda: [right_singular_subspace(matrix, given.rank) for matrix in (first, second)])
    angles = mean_principal_angle(*exact), mean_principal_angle(*quick)
    ratio, error = exact_seconds / seconds, abs(angles[0] - angles[1])
    own = sum(mean_principal_angle(*pair) for pair in zip(exact, quick, strict=True)) / 2
    print(f"{given.rows} x {given.columns}, k = {given.rank}, singular values i^-{given.power:g}, {given.device}")
    print(f"exact {exact_seconds / 2:.2f} s a matrix, randomised {seconds / 2:.2f} s: {ratio:.1f} times as fast")
    print(
        f"mean angle of the two matrices {angles[0]:.3f} degrees exact, {angles[1]:.3f} randomised: error {error:.3f}"
    )
    print(f"randomised against exact subspace of one matrix: {own:.3f} degrees")
    print(f"targets: ratio >= {TARGET_RATIO:g} {_verdict(ratio >= TARGET_RATIO)}, "
          f"error <= {TARGET_DEGREES:g} degrees {_verdict(error <= TARGET_DEGREES)}")  # fmt: skip


def power_law(rows: int, columns: int, power: float, device: str, seed: int) -> Tensor:
    """Return a random matrix with singular values 1, 2^-power, 3^-power, ..."""
    count = min(rows, columns)
    draw = _generator(device, seed)
    left = torch.linalg.qr(torch.randn(rows, count, generator=draw, device=device)).Q
    right = torch.linalg.qr(torch.randn(columns, count, generator=draw, device=device)).Q
    return left * torch.arange(1, count + 1, device=device) ** -power @ right.mT


def exact_subspace(matrix: Tensor, rank: int) -> Tensor:
    """Return the dominant right singular subspace by a full decomposition."""
    return torch.linalg.svd(matrix, full_matrices=False).Vh[:rank].mT


def timed(work: Callable[[], list[Tensor]]) -> tuple[list[Tensor], float]:
    """Return what a function gives and its seconds."""
    start = time.perf_counter()
    found = work()
    if found[0].is_cuda:
        torch.cuda.synchronize()
    return found, time.perf_counter() - start


def _generator(device: str, seed: int) -> torch.Generator:
    return torch.Generator(device=device).manual_seed(seed)


def _verdict(met: bool) -> str:
    return "met" if met else "MISSED"


if __name__ == "__main__":
    run(main)
