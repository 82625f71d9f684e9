"""Write every printed number of the tables as a LaTeX macro, by name."""

from pathlib import Path

from acpo.cli import parser, run
from acpo.config import load_study
from acpo.report import registry
from acpo.report.macros import render_macros
from acpo.report.sources import Results
from acpo.store import write_text


def main() -> None:
    """Read arguments, build all tables, write."""
    arguments = parser(__doc__)
    arguments.add_argument("--results", type=Path, required=True, help="directory of the cell results")
    arguments.add_argument("--output", type=Path, required=True, help="the LaTeX file")
    given = arguments.parse_args()
    results = Results(load_study(given.config), given.results)
    tables = registry.made_tables(results)
    write_text(given.output, render_macros(tables))


if __name__ == "__main__":
    run(main)
