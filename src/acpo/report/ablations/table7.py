"""Table 7: ACPO's number of bins, benchmark by benchmark."""

from acpo.report.ablation import Ablation, bins, by_benchmark
from acpo.report.sources import Results
from acpo.report.table import Table

ABLATION = Ablation("table7", "Sensitivity of ACPO to the number of bins", "Bins", bins, suite="orz")


def build(results: Results) -> Table:
    """Build Table 7 (App. J.3) from the grid `ablations.table7`."""
    return by_benchmark(results, ABLATION)
