"""Table 5: ACPO's alpha and epsilon_base."""

from acpo.report.ablation import Ablation, by_benchmark
from acpo.report.sources import Results
from acpo.report.table import Table
from acpo.sections import Method


def label(method: Method) -> str:
    """Name a row by alpha and epsilon_base (`2 0.1`), or a method without them by its own label."""
    if not {"alpha", "clip_base"} <= method.parameters.keys():
        return method.label
    return f"{method.parameters['alpha']:g} {float(method.parameters['clip_base'])}"


ABLATION = Ablation("table5", "Sensitivity of ACPO to alpha and epsilon_base", "α ε", label, suite="orz")


def build(results: Results) -> Table:
    """Build Table 5 (App. J.1) from the grid `ablations.table5`."""
    return by_benchmark(results, ABLATION)
