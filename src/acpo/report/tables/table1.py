"""Table 1: Countdown and HiTab, every method in every regime."""

from acpo.report.grid import grid_block
from acpo.report.sources import Results
from acpo.report.table import Table

FAMILIES = {"countdown": "Countdown", "hitab": "HiTab"}


def build(results: Results) -> Table:
    """Build Table 1 from the suites of the grid that belong to the Countdown and HiTab families.

    A family without a suite in the grid has no sub-table. Source: Table 1 (a) and (b).
    """
    study = results.study
    blocks = []
    for family, title in FAMILIES.items():
        suites = [name for name in study.grid.suites if study.suites[name].family == family]
        if suites:
            blocks.append(grid_block(results, title, suites))
    titles = " and ".join(block.title for block in blocks)
    caption = f"{titles} results, mean accuracy" if blocks else "No Countdown or HiTab suite in the grid"
    return Table("table1", "Table 1", caption, tuple(blocks))
