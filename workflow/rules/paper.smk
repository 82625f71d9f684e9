"""The paper: LaTeX always, a PDF where there is LaTeX."""


localrules:
    write_paper,
    compile_paper,


PAPER = ["results/paper.tex", *([PAPER_PDF] if HAS_LATEX else [])]
PAPER_PARTS = [
    "results/audit/published.tex",
    "results/audit/ledger.tex",
    "results/theory/statements.tex",
]


rule write_paper:
    input:
        GRID_CELLS,
        FIGURES,
        STATISTICS,
        TIMING,
        PAPER_PARTS,
        asked_ablations,
    output:
        "results/paper.tex",
    log:
        "results/logs/paper.log",
    benchmark:
        "results/logs/paper.tsv"
    params:
        grid=digest(STUDY),
        published=TRANSCRIPTION,
        ablations=made_ablations,
        code=code_hash(
            ["acpo.report.paper"]
            + [f"acpo.report.tables.{name}" for name in TABLE_NAMES]
            + [f"acpo.report.figures.{name}" for name in FIGURE_NAMES]
            + [f"acpo.report.overviews.{name}" for name in OVERVIEW_NAMES]
        ),
    shell:
        "{PYTHON} {SCRIPTS}/write_paper.py --config {STUDY_FILE} --results results --output {output} 2>&1 | tee {log}"


rule compile_paper:
    input:
        FIGURES,
        PAPER_PARTS,
        paper="results/paper.tex",
    output:
        report(
            PAPER_PDF,
            caption=f"{CAPTIONS}/paper.rst",
            category="Report",
            labels={"what": "the paper"},
        ),
    log:
        "results/logs/paper_pdf.log",
    benchmark:
        "results/logs/paper_pdf.tsv"
    params:
        code=code_hash(["acpo.report.pdf"]),
    shell:
        "{PYTHON} {SCRIPTS}/compile_paper.py --source {input.paper} --output {output} --seconds 300 2>&1 | tee {log}"
