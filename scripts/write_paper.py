"""Write the paper of a study as LaTeX: every table, figure and verdict, to be compiled in the results folder."""

from pathlib import Path

from acpo.cli import parser, run
from acpo.config import load_study
from acpo.report.paper import render_paper
from acpo.report.sources import Results
from acpo.store import write_text


def main() -> None:
    """Read arguments, build, write."""
    arguments = parser(__doc__)
    arguments.add_argument("--results", type=Path, required=True, help="directory of the results, with figures/")
    arguments.add_argument("--output", type=Path, required=True, help="the LaTeX file, in that directory")
    given = arguments.parse_args()
    write_text(given.output, render_paper(Results(load_study(given.config), given.results)))


if __name__ == "__main__":
    run(main)
