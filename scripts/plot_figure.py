"""Draw a figure as PDF and PNG: for every suite of the grid, or one of the whole grid."""

from pathlib import Path

from acpo.cli import parser, run
from acpo.config import load_study
from acpo.report import registry
from acpo.report.sources import Results
from acpo.report.style import save


def main() -> None:
    """Read arguments, draw, write."""
    arguments = parser(__doc__)
    arguments.add_argument("--results", type=Path, required=True, help="directory of the results, with runs/")
    arguments.add_argument("--figure", required=True, help=", ".join(registry.figure_names()))
    arguments.add_argument("--methods", nargs="+", help="draw these instead of the figure's own choice")
    arguments.add_argument(
        "--output-dir", type=Path, required=True, help="gets <figure>_<suite>.pdf, .png, or <figure>.pdf, .png"
    )
    given = arguments.parse_args()
    results = Results(load_study(given.config), given.results)
    for drawing in registry.draw_figure(given.figure, results, given.methods):
        save(drawing, given.output_dir)


if __name__ == "__main__":
    run(main)
