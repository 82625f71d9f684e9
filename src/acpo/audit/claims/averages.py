"""Averages of Tables 2, 5 and 7."""

from acpo.audit.claims.row import claim
from acpo.audit.published import Published
from acpo.audit.scores import average_gaps
from acpo.audit.verdict import Row

TABLES = ("table2", "table5", "table7")


def rows(published: Published) -> list[Row]:
    """Compare the averages of each table with the means of the scores beside them."""
    return [_row(published, name) for name in TABLES]


def _row(published: Published, name: str) -> Row:
    gaps = average_gaps(published.tables[name])
    fitting, total = int(gaps["within"].sum()), len(gaps)
    return claim(
        f"average_{name}",
        published.tables[name].place,
        "Each average is the mean of the six benchmarks beside it",
        published=f"{total} averages",
        recomputed=f"{fitting} of {total} within rounding; largest gap {gaps['gap'].abs().max():.4f} points",
        verdict=fitting == total,
        why="Means of the printed scores, compared to half a unit of the last digit.",
    )
