r"""The paper of a study: every table and figure, the audit, the theory, and where the numbers come from, in LaTeX.

Needs Debian's texlive-latex-base and texlive-latex-recommended. It is compiled where the results lie: figures and the
audit's tables are read from there.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from acpo.cells import grid_cells
from acpo.config import digest
from acpo.report import details, registry, spread
from acpo.report.gaps import missing_cells
from acpo.report.latex import breakable, escape, mark, render_notes, render_tabular
from acpo.report.sources import STATISTICS, Results
from acpo.report.style import Drawing
from acpo.report.table import Block, Table
from acpo.report.text_table import TextTable, render_latex

WIDEST_UPRIGHT = 10
"""Columns of numbers; a wider sub-table lies on its side."""
PARTS = {
    "Audit of the paper": {
        "audit/published.tex": "The paper's published numbers, recomputed",
        "audit/ledger.tex": "The paper's claims, judged on the results at hand",
    },
    "Theory": {"theory/statements.tex": "The paper's derivations, recomputed"},
}
"""What other parts of the workflow make: sections of files, each included where it exists."""

PREAMBLE = r"""\documentclass[a4paper,10pt]{article}
\usepackage[a4paper,margin=22mm]{geometry}
\usepackage{array,booktabs,caption,graphicx,longtable,pdflscape}
\usepackage[hidelinks]{hyperref}
\pdfinfoomitdate=1 \pdftrailerid{} \pdfsuppressptexinfo=-1
\captionsetup{labelformat=empty,font=small,labelfont=bf,justification=raggedright,singlelinecheck=false}
\setcounter{topnumber}{4} \setcounter{totalnumber}{4}
\renewcommand{\topfraction}{0.95} \renewcommand{\textfraction}{0.02} \renewcommand{\floatpagefraction}{0.6}
\emergencystretch=3em \hbadness=10000 \vbadness=10000
\newsavebox{\fitbox}
% A sub-table as it is, or scaled down to the line and to most of the page.
\newcommand{\fit}[1]{\sbox{\fitbox}{#1}%
  \ifdim\wd\fitbox>\linewidth\sbox{\fitbox}{\resizebox{\linewidth}{!}{\usebox{\fitbox}}}\fi
  \ifdim\dimexpr\ht\fitbox+\dp\fitbox\relax>.68\textheight
    \sbox{\fitbox}{\resizebox*{!}{.68\textheight}{\usebox{\fitbox}}}\fi
  \usebox{\fitbox}}
"""


def render_paper(results: Results) -> str:
    """Return the paper of a study as one LaTeX document, to be compiled in the results folder.

    Args:
        results: Where cells, statistics, logs, figures and the audit are. What is missing is said, not left out.

    Raises:
        StoreError: a result or log that exists but cannot be read.
    """
    study = results.study
    suites = ", ".join(study.suites[name].label for name in study.grid.suites)
    tables = registry.made_tables(results)
    lines = [
        "% Made by scripts/write_paper.py; changes here are lost.",
        PREAMBLE + rf"\title{{Methods of reinforcement learning with verifiable rewards on {escape(suites)}}}",
        r"\author{}\date{}",
        r"\begin{document}",
        r"\maketitle",
        *_abstract(results),
        r"\tableofcontents",
        *_absent([table for table in tables if not table.blocks]),
        *(line for table in tables if table.blocks for line in _table(table)),
        *_variance(results),
        r"\clearpage\section{Figures}",
        *(line for name in registry.figure_names() for line in _drawings(results, name)),
        *(line for title, files in PARTS.items() for line in _part(results.root, title, files)),
        *_provenance(results),
        r"\end{document}",
    ]
    return "\n".join([*lines, ""])


def _abstract(results: Results) -> Iterator[str]:
    study = results.study
    cells = grid_cells(study)
    made = sum(results.cell(cell) is not None for cell in cells)
    methods = ", ".join(study.methods[name].label for name in study.grid.methods)
    regimes = ", ".join(study.regimes[name].label for name in study.grid.regimes)
    yield r"\begin{abstract}\noindent"
    yield escape(
        f"{methods}, each {regimes}, with {len(study.seeds)} training seeds a cell. {made} of {len(cells)} cells of "
        f"the grid have a result. Configuration {digest(study)}. Every number is read from the results of this study, "
        "as measured; numbers of the paper under study stand beside them and are called published."
    )
    yield r"\end{abstract}"


def _absent(tables: list[Table]) -> Iterator[str]:
    if tables:
        yield r"\section*{Not in this study}"
        yield r"\par ".join(escape(f"{table.title}: {table.caption}.") for table in tables)


def _table(table: Table) -> Iterator[str]:
    yield r"\clearpage"
    for index, block in enumerate(table.blocks):
        wide = block.width > WIDEST_UPRIGHT
        letter = f" ({mark(index, table)})" if len(table.blocks) > 1 else ""
        heading = rf"\section{{{escape(f'{table.title}: {table.caption}')}}}" if index == 0 else ""
        yield (r"\begin{landscape}" if wide else "") + heading
        yield from _block(f"{table.title}{letter}. {block.title}", block)
        if wide:
            yield r"\end{landscape}"


def _block(title: str, block: Block) -> Iterator[str]:
    yield r"\begin{table}[!htbp]"
    yield rf"\caption{{{escape(title)}}}"
    yield rf"\centering\small\fit{{{render_tabular(block)}}}\par\smallskip"
    yield render_notes(block)
    yield r"\end{table}"


def _variance(results: Results) -> Iterator[str]:
    statistics = results.statistics()
    if statistics and statistics.cells:
        yield r"\clearpage\section{Variance of a verdict}"
        yield breakable(f"{spread.MEANING} Read from results/{STATISTICS}, cells.")
        yield render_latex(spread.variance_table(results.study, statistics))


def _drawings(results: Results, name: str) -> Iterator[str]:
    number = f"Figure {name.removeprefix('figure')}. " if name.startswith("figure") else ""
    for drawing in registry.draw_figure(name, results):
        yield from _figure(results.root, f"figures/{drawing.stem}.pdf", number, drawing)


def _figure(root: Path, file: str, number: str, drawing: Drawing) -> Iterator[str]:
    yield r"\begin{figure}[!htbp]\centering"
    if (root / file).exists():
        yield rf"\includegraphics[width=\linewidth,height=.72\textheight,keepaspectratio]{{{file}}}"
    else:
        yield breakable(f"Not drawn: results/{file} is missing.")
    yield rf"\caption{{{breakable(f'{number}{drawing.title}. {drawing.caption}')}}}"
    yield r"\end{figure}"


def _part(root: Path, title: str, files: dict[str, str]) -> Iterator[str]:
    made = [file for file in files if (root / file).exists()]
    yield (r"\begin{landscape}" if made else r"\clearpage") + rf"\section{{{title}}}"
    for file, what in files.items():
        if file in made:
            yield rf"\subsection*{{{what}}}\input{{{file}}}"
        else:
            target = file.split("/")[0]
            yield breakable(f"Not made: {what}. snakemake --cores 2 {target} makes results/{file}.") + r"\par"
    if made:
        yield r"\end{landscape}"


def _short(commit: str) -> str:
    """Shorten a commit to the digits that name it, and keep what follows it."""
    return re.sub(r"^([0-9a-f]{12})[0-9a-f]{28}", r"\1", commit)


def _provenance(results: Results) -> Iterator[str]:
    study = results.study
    yield r"\clearpage\section{Provenance}"
    yield breakable(
        f"Configuration {digest(study)}: results/config/{digest(study)}.json. Root seed {study.root_seed}, training "
        f"seeds {', '.join(map(str, study.seeds))}. Hashes of every input, and commits in full, are in "
        "results/<cell>.json. Each number of the tables is in results/tables/*.csv, unrounded, with the file that it "
        "comes from, and in results/tables/numbers.tex, as a LaTeX macro with the name of its cell."
    )
    origins = details.origin_rows(results)
    rows = [(o.cell, o.configuration_hash, o.code_hash, _short(o.commit), o.device) for o in origins]
    columns = ("Cell", "Configuration", "Code", "Commit", "Device")
    yield render_latex(TextTable("Cells", "where they come from", columns, (0.24, 0.19, 0.19, 0.2, 0.06), rows))
    versions = list(details.environment(results).items())
    yield render_latex(TextTable("Versions", "of all cells", ("What", "Version"), (0.3, 0.6), versions))
    gaps = [(gap.name, gap.meaning, gap.lacking) for gap in missing_cells(results)]
    if gaps:
        yield r"\subsection*{Missing}"
        yield render_latex(TextTable("Missing", "cells", ("Cell", "Meaning", "What"), (0.3, 0.4, 0.2), gaps))
