"""Table 6: fixed clip widths that match ACPO's average and its largest."""

from acpo.report.ablation import Ablation, by_regime
from acpo.report.sources import Results
from acpo.report.table import Table
from acpo.sections import Method


def label(method: Method) -> str:
    """Name a row by the method's label; plain DAPO is the baseline."""
    return "DAPO (Baseline)" if method.label == "DAPO" else method.label


ABLATION = Ablation("table6", "Fixed clip widths beside adaptive ones", "Method", label, suite="countdown")


def build(results: Results) -> Table:
    """Build Table 6 (App. J.2) from the grid `ablations.table6`."""
    return by_regime(results, ABLATION)
