"""Low-Entropy: DAPO on the tokens of lowest entropy."""

from torch import Tensor
from typing_extensions import override

from acpo.objectives.batch import TokenBatch
from acpo.objectives.selection import EntropySelection


class LowEntropy(EntropySelection):
    """DAPO loss on the share `ratio` of tokens with the lowest current-policy entropy (App. I: 80 %)."""

    @override
    def score(self, batch: TokenBatch) -> Tensor:
        """Score of each token; see `EntropySelection.score`."""
        return -batch.token_entropy
