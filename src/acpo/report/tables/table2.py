"""Table 2: the math benchmarks, every method in every regime, and their average."""

from acpo.report.grid import grid_block
from acpo.report.sources import Results
from acpo.report.table import Table

FAMILY = "math"


def build(results: Results) -> Table:
    """Build Table 2: a sub-table for every suite of the grid that belongs to the math family.

    Source: Table 2.
    """
    study = results.study
    suites = [name for name in study.grid.suites if study.suites[name].family == FAMILY]
    blocks = tuple(grid_block(results, study.suites[name].label, [name], average=True) for name in suites)
    titles = " and ".join(block.title for block in blocks)
    caption = f"{titles}: math benchmarks, mean accuracy" if blocks else "No suite of the math family in the grid"
    return Table("table2", "Table 2", caption, blocks)
