r"""A table as LaTeX: a `tabular` and its notes, to be `\input` inside a float. Needs booktabs only."""

import re

from acpo.report.table import Block, Group, Number, Panel, Row, Table, column_of

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"$<$",
    ">": r"$>$",
    "|": r"$|$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "→": r"$\to$",
    "−": r"$-$",
    "–": "--",
    "—": "---",
    "†": r"$^\dagger$",
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "γ": r"$\gamma$",
    "ε": r"$\varepsilon$",
    "π": r"$\pi$",
    "ρ": r"$\rho$",
    "σ": r"$\sigma$",
    "κ": r"$\kappa$",
    "μ": r"$\mu$",
    "τ": r"$\tau$",
    "Δ": r"$\Delta$",
    "Σ": r"$\Sigma$",
    "²": r"$^2$",
    "³": r"$^3$",
    "⁴": r"$^4$",
    "∝": r"$\propto$",
    "∫": r"$\int$",
    "\n": " ",
    "\u200b": r"\allowbreak{}",  # zero-width space
    "\u200c": "{}",  # zero-width non-joiner
}
_LONG_WORD = 14


def escape(text: str) -> str:
    """Escape plain text for LaTeX, with the signs that labels and notes use."""
    # Two hyphens of a command's option would become a dash.
    return "".join(_SPECIAL.get(character, character) for character in text.replace("--", "-\u200c-"))


def breakable(text: str) -> str:
    """Escape plain text so that long words, such as paths and commands, may break after their marks."""
    words = [re.sub(r"([/_=.:,])", "\\1\u200b", word) if len(word) > _LONG_WORD else word for word in text.split(" ")]
    return escape(" ".join(words))


def render(table: Table) -> str:
    r"""Render a table. Every number's cell file stands in a comment above its row.

    The result needs `\usepackage{booktabs}` and nothing else; caption and label belong to the paper. A page may break
    between sub-tables where the whole is not in a float.
    """
    lines = [
        _comment(f"{table.title}: {table.caption}"),
        "% Made by scripts/make_table.py; changes here are lost. Needs booktabs.",
    ]
    for index, block in enumerate(table.blocks):
        lines += [r"\par\medskip"] if index else []
        lines.append(r"\noindent\begin{minipage}{\linewidth}\centering")
        if len(table.blocks) > 1:
            lines.append(rf"\textit{{({mark(index, table)}) {escape(block.title)}}}\par\smallskip")
        lines += [render_tabular(block), r"\par\smallskip", render_notes(block), r"\end{minipage}"]
    if not table.blocks:
        lines.append(escape(table.caption))
    return "\n".join([*lines, ""])


def mark(index: int, table: Table) -> str:
    """Return how a sub-table of a table is called: a letter, or a number where there are too many."""
    return chr(97 + index) if len(table.blocks) <= 26 else str(index + 1)


def render_tabular(block: Block) -> str:
    """Render a sub-table as a `tabular`, without its notes. Needs booktabs."""
    body = [line for panel in block.panels for line in _panel(block, panel)]
    lines = [
        rf"\begin{{tabular}}{{@{{}}l{'c' * block.width}@{{}}}}",
        r"\toprule",
        *_heads(block),
        *body,
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines)


def render_notes(block: Block) -> str:
    """Render the notes of a sub-table as a paragraph each."""
    return "\n".join([r"{\raggedright\footnotesize", *(f"{breakable(note)}\\par" for note in block.notes), "}"])


def _heads(block: Block) -> list[str]:
    groups, rules, start = [], [], 2
    for group in block.groups:
        end = start + len(group.columns) - 1
        groups.append(rf"\multicolumn{{{len(group.columns)}}}{{c}}{{{_group_label(group)}}}")
        rules.append(rf"\cmidrule(lr){{{start}-{end}}}")
        start = end + 1
    columns = [escape(column) for group in block.groups for column in group.columns]
    return [
        f" & {' & '.join(groups)} \\\\",
        "".join(rules),
        f"{escape(block.corner)} & {' & '.join(columns)} \\\\",
    ]


def _group_label(group: Group) -> str:
    mark = rf"\textsuperscript{{{group.mark}}}" if group.mark else ""
    return escape(group.label) + mark


def _panel(block: Block, panel: Panel) -> list[str]:
    lines = [r"\midrule"]
    if panel.title:
        lines.append(rf"\multicolumn{{{block.width + 1}}}{{@{{}}l}}{{\textit{{{escape(panel.title)}}}}} \\")
    for row in panel.rows:
        lines += [*_sources(block, row), _row(row)]
    return lines


def _sources(block: Block, row: Row) -> list[str]:
    lines = []
    for position, number in enumerate(row.numbers):
        heads = ", ".join(part for part in column_of(block, row, position) if part)
        lines.append(_comment(f"{row.label}, {heads}: {number.text} <- {number.trace}"))
    return lines


def _row(row: Row) -> str:
    return f"{escape(row.label)} & {' & '.join(_number(number) for number in row.numbers)} \\\\"


def _number(number: Number) -> str:
    text = escape(number.text)
    content = rf"\textbf{{{text}}}" if number.best else text
    content += escape(number.mark)
    if number.spread_text:
        content += rf" {{\scriptsize $\pm$\,{number.spread_text}}}"
    return rf"\multicolumn{{{number.span}}}{{c}}{{{content}}}" if number.span > 1 else content


def _comment(text: str) -> str:
    return "% " + " ".join(text.split())
