r"""A table of text, such as statements beside each other, as LaTeX and HTML. LaTeX needs booktabs and longtable."""

from collections.abc import Sequence
from dataclasses import dataclass

from acpo.report.html import environment
from acpo.report.latex import breakable


@dataclass(frozen=True)
class TextTable:
    """Rows of text under column headings. `widths` are the columns' shares of the line, by column."""

    title: str
    caption: str
    columns: Sequence[str]
    widths: Sequence[float]
    rows: Sequence[Sequence[str]]


def render_latex(table: TextTable) -> str:
    """Render a table that breaks over pages; caption and label belong to the paper."""
    columns = "".join(rf">{{\raggedright\arraybackslash}}p{{{width:g}\linewidth}}" for width in table.widths)
    lines = [
        f"% {table.title}: {table.caption}",
        "% Made by the workflow; changes here are lost. Needs array, booktabs and longtable.",
        rf"{{\footnotesize\begin{{longtable}}{{@{{}}{columns}@{{}}}}",
        r"\toprule",
        _latex_row(table.columns),
        r"\midrule\endhead",
        *(_latex_row(row) for row in table.rows),
        r"\bottomrule",
        r"\end{longtable}}",
    ]
    return "\n".join([*lines, ""])


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(breakable(cell) for cell in cells) + r" \\\addlinespace[2pt]"


def render_html(table: TextTable) -> str:
    """Render a table as one HTML document that opens offline."""
    return environment().get_template("text_table.html.j2").render(table=table) + "\n"
