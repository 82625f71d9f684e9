"""Draw a figure from run logs, as PDF and PNG."""

import argparse
import sys
from pathlib import Path

from acpo.config import ConfigError, load_study
from acpo.report import registry
from acpo.report.sources import Results
from acpo.report.style import save
from acpo.store import StoreError


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=Path, required=True, help="the study, YAML or JSON")
    parser.add_argument("--results", type=Path, required=True, help="folder of the cell results and runs/")
    parser.add_argument("--figure", required=True, help=f"one of: {', '.join(registry.figure_names())}")
    parser.add_argument("--methods", nargs="+", help="draw these methods instead of the figure's own choice")
    parser.add_argument("--output-dir", type=Path, required=True, help="where <figure>_<suite>.pdf, .png go")
    return parser.parse_args()


def main() -> None:
    """Draw the figure of every suite and write it."""
    arguments = parse_arguments()
    results = Results(load_study(arguments.config), arguments.results)
    for drawing in registry.figure(arguments.figure).build(results, arguments.methods):
        save(drawing, arguments.output_dir)


if __name__ == "__main__":
    try:
        main()
    except (ConfigError, StoreError) as error:
        sys.exit(f"plot_figure: {error}")
