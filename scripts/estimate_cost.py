"""Estimate GPU-hours and disk before they are spent: of some cells, of an ablation, or of the whole grid."""

import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from acpo.cells import Cell, CellNames, ablation_cells, cell_seeds, grid_cells
from acpo.cli import parser, run
from acpo.config import Study, load_study
from acpo.errors import ConfigError, nearest
from acpo.estimate import COLUMNS, Cost, as_json, cell_costs, table_rows


def main() -> None:
    """Read arguments, estimate, print."""
    arguments = parser(__doc__)
    arguments.add_argument("cells", nargs="*", help="for example orz_acpo_offp or table5; none: the grid")
    arguments.add_argument("--results", type=Path, default=Path("results"), help="where the workflow writes")
    arguments.add_argument("--json", action="store_true", help="for programs")
    given = arguments.parse_args()
    study = load_study(given.config)
    cells = named_cells(study, given.cells) or [cell for cell in grid_cells(study) if not cell.is_base]
    if any(cell.is_base for cell in cells):
        raise ConfigError("a base cell is not trained: name cells with a method and a regime")
    costs = cell_costs(study, {cell: cell_seeds(study, cell) for cell in cells}, given.results)
    if given.json:
        print(json.dumps(as_json(costs), indent=1))
    else:
        show(costs)


def named_cells(study: Study, given: Sequence[str]) -> list[Cell]:
    """Return the cells named, and those of the ablations named, each once.

    Raises:
        ConfigError: a name is neither; names the nearest.
    """
    names = CellNames(study)
    known = {name: [names.parse(name)] for name in names}
    known |= {name: ablation_cells(study, name) for name in study.ablations}
    for name in given:
        if name not in known:
            raise ConfigError(f"unknown cell or ablation {name!r}; {nearest(name, known)}")
    return list(dict.fromkeys(cell for name in given for cell in known[name]))


def show(costs: list[Cost]) -> None:
    """Print a table with what the numbers rest on."""
    table = Table(*COLUMNS, caption=caption(costs), caption_justify="left")
    table.columns[0].no_wrap = True
    for column in table.columns[1:-1]:
        column.justify = "right"
    for row in table_rows(costs):
        table.add_row(*row, end_section=row[0] == costs[-1].name)
    Console().print(table)


def caption(costs: list[Cost]) -> str:
    """Say what is counted."""
    basis = ", ".join(sorted({cost.disk_basis for cost in costs}))
    return (
        "Time is declared by resources.runtime_minutes where no run is finished. Disk: last and best weights kept, "
        f"training checkpoints while running, {basis}. Not counted: base models and sampling the benchmarks."
    )


if __name__ == "__main__":
    run(main)
