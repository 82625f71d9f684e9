"""Make a table from cell results: LaTeX, HTML and CSV with the same numbers."""

import argparse
import sys
from pathlib import Path

from acpo.config import ConfigError, load_study
from acpo.report import html, latex, registry
from acpo.report.sources import Results
from acpo.store import StoreError, write_text


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=Path, required=True, help="the study, YAML or JSON")
    parser.add_argument("--results", type=Path, required=True, help="folder of the cell results")
    parser.add_argument("--table", required=True, help=f"one of: {', '.join(registry.table_names())}")
    parser.add_argument("--output-dir", type=Path, required=True, help="where <table>.tex, .html, .csv go")
    return parser.parse_args()


def main() -> None:
    """Build the table and write its three forms."""
    arguments = parse_arguments()
    results = Results(load_study(arguments.config), arguments.results)
    table = registry.table(arguments.table).build(results)
    target = arguments.output_dir / table.name
    write_text(target.with_suffix(".csv"), table.frame().to_csv(index=False, lineterminator="\n"))
    write_text(target.with_suffix(".html"), html.render_table(table))
    write_text(target.with_suffix(".tex"), latex.render(table))


if __name__ == "__main__":
    try:
        main()
    except (ConfigError, StoreError) as error:
        sys.exit(f"make_table: {error}")
