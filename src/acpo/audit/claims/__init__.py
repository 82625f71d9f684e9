"""The published numbers beside what they give when recomputed: `results/audit/published.json`.

A verdict follows from numbers, by the comparison in the function that makes the row. The rows say what patterns the
numbers have, and nothing about how they came to be.
"""

from acpo.audit.claims import ablations, averages, costs, denominators, ranks, significance
from acpo.audit.published import Published
from acpo.audit.verdict import Audit


def audit_published(published: Published) -> Audit:
    """Recompute what can be recomputed from the published numbers alone."""
    parts = (averages, ranks, denominators, ablations, significance, costs)
    return Audit(
        title="Published numbers, recomputed from the paper's own tables",
        rows=[row for part in parts for row in part.rows(published)],
    )
