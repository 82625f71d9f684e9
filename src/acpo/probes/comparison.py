"""The gradient probe of a study: the comparisons of App. F and the dominance of Fig. 2(b)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from acpo.config import Study
from acpo.methods import method_objective
from acpo.objectives import Objective
from acpo.probes.gradients import GradientProbe, Measured
from acpo.probes.policy import load_policy, score
from acpo.probes.records import DominancePoint
from acpo.probes.responses import StoredResponses
from acpo.probes.variants import (
    Denominator,
    Variant,
    advantage_sign,
    high_entropy,
    high_probability,
    low_probability,
)
from acpo.sections import Probes

REFERENCE = "reference"
BEHAVIOR, CURRENT = "behavior", "current"
NO_CLIP_WIDTH = 1e30
SIGNS = (("positive_advantage", True), ("negative_advantage", False))
DENOMINATORS: tuple[Denominator, ...] = ("all", "selected")


def compare_updates(
    study: Study, responses: StoredResponses, policies: Mapping[int, Path], temperature: float, device: str
) -> dict[str, Any]:
    """Measure every variant of App. F at the most off-policy of some policies.

    Args:
        study: The study; `probes` says what is compared.
        responses: The responses to measure on, made by the behavior policy.
        policies: Checkpoint folders by off-policy degree; the lowest is the behavior policy.
        temperature: At which they were sampled.
        device: Where to compute.

    Returns:
        The fields `variants`, `random_angle` and `additivity` of `acpo.results.GradientReport`.
    """
    models = {
        CURRENT: load_policy(policies[max(policies)], device),
        BEHAVIOR: load_policy(policies[min(policies)], device),
    }
    probe = _probe(study.probes, models, responses, temperature)
    reference = method_objective(study, study.probes.reference, {})
    measured = [Measured(Variant(REFERENCE, reference), CURRENT)]
    measured += [Measured(variant, CURRENT) for variant in _subsets(study.probes, reference)]
    measured += [
        Measured(Variant("no_clip", _without_clipping(study)), CURRENT),
        Measured(Variant("on_policy", reference, on_policy=True), BEHAVIOR),
        *(Measured(Variant(name, method_objective(study, name, {})), CURRENT) for name in study.probes.compared),
    ]
    variants, additivity = probe.measure(measured, REFERENCE, [name for name, _ in SIGNS])
    return {"variants": variants, "random_angle": probe.random_angle(variants[0]), "additivity": additivity}


def dominance(
    study: Study, responses: StoredResponses, policies: Mapping[int, Path], temperature: float, device: str
) -> list[DominancePoint]:
    """Measure the gradients of low- and of high-probability tokens at each off-policy degree.

    Arguments as in `compare_updates`.
    """
    probes = study.probes
    objective = method_objective(study, probes.reference, {})
    points = []
    for degree in sorted(policies):
        model = load_policy(policies[degree], device)
        probe = _probe(probes, {CURRENT: model}, responses, temperature)
        variants = [Variant(REFERENCE, objective), *_by_probability(probes, objective)]
        found, _ = probe.measure([Measured(variant, CURRENT) for variant in variants], REFERENCE)
        spread = _ratio_std(model, responses, temperature, probes.micro_batch_size)
        points.append(DominancePoint(updates=degree, ratio_std=spread, gradients=found))
    return points


def _probe(probes: Probes, models: Mapping[str, Any], responses: StoredResponses, temperature: float) -> GradientProbe:
    return GradientProbe(models, responses.halves(), temperature, probes.micro_batch_size, probes.rank)


def _by_probability(probes: Probes, objective: Objective) -> list[Variant]:
    return [
        Variant(f"{name}_{denominator}", objective, select, denominator)
        for name, select in (
            ("low_probability", low_probability(probes.low_probability)),
            ("high_probability", high_probability(probes.high_probability)),
        )
        for denominator in DENOMINATORS
    ]


def _subsets(probes: Probes, objective: Objective) -> list[Variant]:
    entropy = high_entropy(probes.entropy_share)
    # The tokens of a response share their advantage's sign, so both denominators are the same.
    return [
        *_by_probability(probes, objective),
        *(Variant(f"high_entropy_{name}", objective, entropy, name) for name in DENOMINATORS),
        *(Variant(name, objective, advantage_sign(positive)) for name, positive in SIGNS),
    ]


def _without_clipping(study: Study) -> Objective:
    """Return the reference objective with a window that no ratio leaves."""
    objective = method_objective(study, study.probes.reference, {})
    widths = {key: NO_CLIP_WIDTH for key in type(objective.parameters).model_fields if key.startswith("clip")}
    return type(objective)(objective.parameters.model_copy(update=widths))


def _ratio_std(model: Any, responses: StoredResponses, temperature: float, size: int) -> float:
    with torch.no_grad():
        batches = [score(model, part, temperature) for part in responses.micro_batches(size)]
        ratios: Sequence[torch.Tensor] = [batch.log_ratio().exp()[batch.mask] for batch in batches]
    return torch.cat(list(ratios)).double().std(correction=0).item()
