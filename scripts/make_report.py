"""Make the HTML report: one file with every table, figure and number, readable offline."""

from pathlib import Path

from acpo.cli import parser, run
from acpo.config import load_study
from acpo.report.page import render_report
from acpo.report.sources import Results
from acpo.store import write_text


def main() -> None:
    """Read arguments, build, write."""
    arguments = parser(__doc__)
    arguments.add_argument("--results", type=Path, required=True, help="directory of the results, with runs/")
    arguments.add_argument("--output", type=Path, required=True, help="the HTML file")
    given = arguments.parse_args()
    write_text(given.output, render_report(Results(load_study(given.config), given.results)))


if __name__ == "__main__":
    run(main)
