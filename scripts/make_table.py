"""Make a table from cell results: LaTeX, HTML and CSV with the same numbers."""

from pathlib import Path

from acpo.cli import parser, run
from acpo.config import load_study
from acpo.report import html, latex, registry
from acpo.report.sources import Results
from acpo.store import write_text


def main() -> None:
    """Read arguments, build, write the three forms."""
    arguments = parser(__doc__)
    arguments.add_argument("--results", type=Path, required=True, help="directory of the cell results")
    known = [*registry.table_names(), *registry.ablation_names()]
    arguments.add_argument("--table", required=True, help=", ".join(known))
    arguments.add_argument("--output-dir", type=Path, required=True, help="gets <table>.tex, .csv, .html")
    given = arguments.parse_args()
    table = registry.make_table(given.table, Results(load_study(given.config), given.results))
    target = given.output_dir / table.name
    write_text(target.with_suffix(".csv"), table.frame().to_csv(index=False, lineterminator="\n"))
    write_text(target.with_suffix(".html"), html.render_table(table))
    write_text(target.with_suffix(".tex"), latex.render(table))


if __name__ == "__main__":
    run(main)
