"""Recompute the statements of the paper's theory: published and recomputed side by side, as JSON, LaTeX and HTML."""

from pathlib import Path

from acpo.cli import parser, run
from acpo.config import load_study
from acpo.provenance import Clock
from acpo.report.text_table import TextTable, render_html, render_latex
from acpo.store import write_json, write_text
from acpo.theory.statements import COLUMNS, Statements, all_statements, text_rows

CAPTION = "Each statement of the derivations with what the paper gives for it and what comes out when it is recomputed."


def main() -> None:
    """Read arguments, recompute, write the three forms."""
    arguments = parser(__doc__)
    arguments.add_argument("--output", type=Path, required=True, help="the JSON file; .tex and .html go beside it")
    given = arguments.parse_args()
    clock = Clock()
    study = load_study(given.config)
    statements = all_statements(study.root_seed)
    table = TextTable(
        "The derivations, recomputed", CAPTION, COLUMNS, (0.18, 0.09, 0.14, 0.26, 0.17, 0.06), text_rows(statements)
    )
    write_text(given.output.with_suffix(".tex"), render_latex(table))
    write_text(given.output.with_suffix(".html"), render_html(table))
    provenance = clock.provenance({"root_seed": study.root_seed}, ["acpo.theory.statements"], {})
    write_json(given.output, Statements(statements=statements, provenance=provenance))


if __name__ == "__main__":
    run(main)
