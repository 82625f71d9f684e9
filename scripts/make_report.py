"""Make the HTML report: one file with every table, figure and number, readable offline."""

import argparse
import sys
from pathlib import Path

from acpo.config import ConfigError, load_study
from acpo.report import html
from acpo.report.sources import Results
from acpo.store import StoreError, write_text


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=Path, required=True, help="the study, YAML or JSON")
    parser.add_argument("--results", type=Path, required=True, help="folder of the cell results and runs/")
    parser.add_argument("--output", type=Path, required=True, help="the HTML file to write")
    return parser.parse_args()


def main() -> None:
    """Build the report and write it."""
    arguments = parse_arguments()
    results = Results(load_study(arguments.config), arguments.results)
    write_text(arguments.output, html.render_report(results))


if __name__ == "__main__":
    try:
        main()
    except (ConfigError, StoreError) as error:
        sys.exit(f"make_report: {error}")
