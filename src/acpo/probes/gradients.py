"""Norm and direction of gradients, variant by variant, one layer in memory at a time (App. D, App. F)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from acpo.objectives.statistics import Statistics
from acpo.probes.policy import is_projection, parameter_groups, score
from acpo.probes.records import MatrixAngles, VariantGradient
from acpo.probes.responses import StoredResponses
from acpo.probes.subspaces import (
    DegenerateMatrixError,
    capped_rank,
    mean_principal_angle,
    random_subspace_angle,
    right_singular_subspace,
)
from acpo.probes.variants import Variant

RANDOM_DRAWS = 8

Gradients = dict[str, Tensor]


@dataclass(frozen=True)
class Measured:
    """A variant at a policy.

    Args:
        variant: How the update is made.
        policy: Name of the model whose gradient it is.
    """

    variant: Variant
    policy: str


@dataclass
class GradientProbe:
    """Measures gradients of several variants on the same responses.

    Args:
        models: The policies, by name.
        halves: The responses, in two halves: their gradients add up to the whole, and their angle is a noise floor.
        temperature: Divides the logits.
        micro_batch_size: Responses scored at once.
        rank: k of the subspaces.
    """

    models: Mapping[str, Any]
    halves: tuple[StoredResponses, StoredResponses]
    temperature: float
    micro_batch_size: int
    rank: int
    _statistics: dict[str, list[list[Statistics]]] = field(default_factory=dict, init=False)
    _tokens: dict[str, int] = field(default_factory=dict, init=False)

    def measure(
        self, measured: Sequence[Measured], reference: str, parts: Sequence[str] = ()
    ) -> tuple[list[VariantGradient], float | None]:
        """Measure norms of whole gradients, and principal angles of projection matrices against a reference.

        Args:
            measured: The variants, each name once; the reference among them.
            reference: Name of the variant that all are compared with.
            parts: Names of variants whose gradients should add up to the reference's.

        Returns:
            One record a variant, in order; and the norm of (sum of the parts - reference) over the reference's: zero up
            to rounding where the parts divide the tokens and share a denominator, None without parts or reference.
        """
        self._pool(measured)
        names = [item.variant.name for item in measured]
        squares, dots = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0.0)
        angles: dict[str, list[MatrixAngles]] = {name: [] for name in names}
        residual = 0.0
        for group in parameter_groups(next(iter(self.models.values()))):
            halves = self._group_gradients(measured, group)
            whole = {name: _sum(*both) for name, both in halves.items()}
            for name in names:
                squares[name] += _dot(whole[name], whole[name])
                dots[name] += _dot(whole[name], whole[reference])
                angles[name] += self._angles(halves[name], whole[name], whole[reference])
            if parts:
                rest = {key: value - sum(whole[part][key] for part in parts) for key, value in whole[reference].items()}
                residual += _dot(rest, rest)
        norm = math.sqrt(squares[reference])
        records = [
            VariantGradient(
                name=name,
                policy=item.policy,
                denominator=item.variant.denominator,
                tokens=self._tokens[name],
                norm=math.sqrt(squares[name]),
                norm_percent=100 * math.sqrt(squares[name]) / norm if norm else None,
                cosine=_cosine(dots[name], squares[name], squares[reference]),
                matrices=angles[name],
            )
            for name, item in zip(names, measured, strict=True)
        ]
        return records, math.sqrt(residual) / norm if parts and norm else None

    def random_angle(self, measured: VariantGradient) -> float | None:
        """Return the mean principal angle of random subspaces of the shapes that a variant was measured in."""
        generator = torch.Generator().manual_seed(0)
        known: dict[tuple[int, int], float] = {}
        for matrix in measured.matrices:
            shape = (matrix.columns, matrix.rank)
            if shape not in known:
                known[shape] = random_subspace_angle(*shape, RANDOM_DRAWS, generator)
        values = [known[matrix.columns, matrix.rank] for matrix in measured.matrices]
        return sum(values) / len(values) if values else None

    def _pool(self, measured: Sequence[Measured]) -> None:
        """Pool each variant's statistics over all micro-batches, and count the tokens that it keeps."""
        size = self.micro_batch_size
        for policy in dict.fromkeys(item.policy for item in measured):
            with torch.no_grad():
                halves = [
                    [score(self.models[policy], part, self.temperature) for part in half.micro_batches(size)]
                    for half in self.halves
                ]
                batches = [batch for half in halves for batch in half]
                for variant in (item.variant for item in measured if item.policy == policy):
                    statistics, split = variant.statistics(batches), len(halves[0])
                    self._statistics[variant.name] = [statistics[:split], statistics[split:]]
                    self._tokens[variant.name] = sum(int(variant.kept(batch).sum()) for batch in batches)

    def _group_gradients(
        self, measured: Sequence[Measured], names: list[str]
    ) -> dict[str, tuple[Gradients, Gradients]]:
        """Return the gradients of some parameters, by variant, of each half."""
        sums: dict[str, tuple[Gradients, Gradients]] = {item.variant.name: ({}, {}) for item in measured}
        for policy in dict.fromkeys(item.policy for item in measured):
            chosen = [item.variant for item in measured if item.policy == policy]
            parameters = _only(self.models[policy], names)
            for side, half in enumerate(self.halves):
                for number, part in enumerate(half.micro_batches(self.micro_batch_size)):
                    batch = score(self.models[policy], part, self.temperature)
                    for variant in chosen:
                        loss = variant.loss(batch, self._statistics[variant.name][side][number])
                        found = torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True)
                        _add(sums[variant.name][side], names, found, parameters)
        return sums

    def _angles(
        self, halves: tuple[Gradients, Gradients], whole: Gradients, reference: Gradients
    ) -> list[MatrixAngles]:
        found = []
        for name, gradient in whole.items():
            if not is_projection(name, gradient):
                continue
            rows, columns = gradient.shape
            rank = capped_rank(rows, columns, self.rank)
            try:
                basis = right_singular_subspace(gradient, rank)
                to_reference = mean_principal_angle(basis, right_singular_subspace(reference[name], rank))
                sides = [right_singular_subspace(half[name], rank) for half in halves]
            except DegenerateMatrixError:
                continue
            found.append(
                MatrixAngles(
                    name=name, rows=rows, columns=columns, rank=rank, angle=to_reference,
                    split_half_angle=mean_principal_angle(*sides),
                )
            )  # fmt: skip
        return found


def _only(model: Any, names: list[str]) -> list[Tensor]:
    """Let gradients reach some parameters only, and return these."""
    wanted = set(names)
    named = dict(model.named_parameters())
    for name, parameter in named.items():
        parameter.requires_grad_(name in wanted)
    return [named[name] for name in names]


def _add(total: Gradients, names: list[str], found: Sequence[Tensor | None], parameters: list[Tensor]) -> None:
    for name, gradient, parameter in zip(names, found, parameters, strict=True):
        value = torch.zeros_like(parameter) if gradient is None else gradient.detach()
        total[name] = total[name] + value if name in total else value


def _sum(first: Gradients, second: Gradients) -> Gradients:
    return {name: first[name] + second[name] for name in first}


def _dot(first: Gradients, second: Gradients) -> float:
    return sum(float((first[name].double() * second[name].double()).sum()) for name in first)


def _cosine(dot: float, first: float, second: float) -> float | None:
    return dot / math.sqrt(first * second) if first and second else None
