"""GRPO: one symmetric clip width."""

from typing_extensions import override

from acpo.objectives.base import DualClip, Objective, ObjectiveParameters, Width
from acpo.objectives.batch import TokenBatch
from acpo.objectives.clipping import TokenTerms, clipped_terms
from acpo.objectives.statistics import Statistics


class GrpoParameters(ObjectiveParameters):
    """Window [1 - clip, 1 + clip]."""

    clip: Width
    dual_clip: DualClip


class Grpo(Objective):
    """Clipped surrogate with a symmetric window; no KL penalty, as in the paper."""

    Parameters = GrpoParameters
    parameters: GrpoParameters

    @override
    def terms(self, batch: TokenBatch, statistics: Statistics, stage: str) -> TokenTerms:
        """Token losses; see `Objective.terms`."""
        p = self.parameters
        return clipped_terms(batch, statistics.tokens, p.clip, p.clip, p.dual_clip)
