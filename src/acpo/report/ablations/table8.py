"""Table 8: ACPO's number of bins, regime by regime."""

from acpo.report.ablation import Ablation, bins, by_regime
from acpo.report.sources import Results
from acpo.report.table import Table

ABLATION = Ablation("table8", "Sensitivity of ACPO to the number of bins", "Bins", bins, suite="countdown")


def build(results: Results) -> Table:
    """Build Table 8 (App. J.3) from the grid `ablations.table8`."""
    return by_regime(results, ABLATION)
