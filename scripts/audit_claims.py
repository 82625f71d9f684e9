"""Audit the paper: its published numbers recomputed, and its claims judged on a results folder as far as that goes."""

from pathlib import Path

from acpo.audit.claims import audit_published
from acpo.audit.evidence import Evidence
from acpo.audit.ledger import judge
from acpo.audit.published import published
from acpo.audit.render import text_table
from acpo.cli import parser, run
from acpo.config import load_study
from acpo.report.text_table import render_html, render_latex
from acpo.store import write_json, write_text


def main() -> None:
    """Read arguments, judge, write two audits in three forms, and print how the verdicts fall."""
    arguments = parser(__doc__)
    arguments.add_argument("--results", type=Path, required=True, help="the results folder; what it lacks is said")
    arguments.add_argument(
        "--output-dir", type=Path, required=True, help="gets published and ledger as .json .tex .html"
    )
    given = arguments.parse_args()
    numbers = published()
    audits = {
        "published": audit_published(numbers),
        "ledger": judge(Evidence(load_study(given.config), given.results, numbers)),
    }
    for name, audit in audits.items():
        place, table = given.output_dir / name, text_table(audit)
        write_text(place.with_suffix(".tex"), render_latex(table))
        write_text(place.with_suffix(".html"), render_html(table))
        write_json(place.with_suffix(".json"), audit)
        counts = ", ".join(f"{count} {verdict}" for verdict, count in audit.counts().items())
        print(f"{audit.title}: {len(audit.rows)} claims: {counts}. See {place}.html")
        needs = dict.fromkeys(row.why for row in audit.rows if row.why.startswith("Not testable here: needs"))
        for need in needs:
            print(f"  {need}")


if __name__ == "__main__":
    run(main)
