"""DAPO: asymmetric clip widths."""

from typing_extensions import override

from acpo.objectives.base import ClippedParameters, Objective
from acpo.objectives.batch import TokenBatch
from acpo.objectives.clipping import TokenTerms, clipped_terms
from acpo.objectives.statistics import Statistics


class Dapo(Objective):
    """Clipped surrogate with a higher upper bound (clip-higher).

    Of the published DAPO only clip-higher is here, as in the paper's baseline (App. I): no dynamic
    sampling, no overlong reward shaping; token-level averaging is a choice of `aggregation`.
    """

    Parameters = ClippedParameters
    parameters: ClippedParameters

    @override
    def terms(self, batch: TokenBatch, statistics: Statistics, stage: str) -> TokenTerms:
        """Token losses; see `Objective.terms`."""
        p = self.parameters
        return clipped_terms(batch, statistics.tokens, p.clip_low, p.clip_high, p.dual_clip)
