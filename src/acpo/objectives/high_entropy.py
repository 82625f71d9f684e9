"""High-Entropy: DAPO on the tokens of highest entropy."""

from torch import Tensor
from typing_extensions import override

from acpo.objectives.batch import TokenBatch
from acpo.objectives.selection import EntropySelection


class HighEntropy(EntropySelection):
    """DAPO loss on the share `ratio` of tokens with the highest current-policy entropy (App. I: 20 %)."""

    @override
    def score(self, batch: TokenBatch) -> Tensor:
        """Score of each token; see `EntropySelection.score`."""
        return batch.token_entropy
