"""An audit as text: the columns of its tables, and what an empty cell says."""

from acpo.audit.verdict import Audit
from acpo.report.text_table import TextTable

COLUMNS = ("Claim", "Where", "Published", "Recomputed", "Verdict", "Why", "Command")
WIDTHS = (0.15, 0.08, 0.11, 0.23, 0.08, 0.15, 0.09)


def text_table(audit: Audit) -> TextTable:
    """Lay an audit out, one row a claim; its caption counts the verdicts."""
    counts = "; ".join(f"{verdict}: {count}" for verdict, count in audit.counts().items())
    rows = [
        (row.claim, row.place, row.published, row.recomputed or "–", str(row.verdict), row.why, row.command)
        for row in audit.rows
    ]
    return TextTable(
        audit.title, f"{len(rows)} claims. {counts}. See docs/audit.md for how to read it.", COLUMNS, WIDTHS, rows
    )
