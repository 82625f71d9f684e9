"""The paper: LaTeX always, a PDF where there is LaTeX."""


localrules:
    write_paper,
    compile_paper,


PAPER = ["results/paper.tex", *([PAPER_PDF] if HAS_LATEX else [])]
# What the paper includes where it has been made, or is asked for by the same command.
PAPER_PARTS = {
    "audit": multiext("results/audit/", "published.tex", "ledger.tex"),
    "theory": ["results/theory/statements.tex"],
}


def paper_parts(wildcards) -> list[str]:
    """Return the parts of the paper that other targets make."""
    asked = workflow.dag_settings.targets
    return [
        file
        for target, files in PAPER_PARTS.items()
        for file in files
        if target in asked or Path(file).exists()
    ]


rule write_paper:
    input:
        GRID_CELLS,
        FIGURES,
        STATISTICS,
        TIMING,
        paper_parts,
    output:
        "results/paper.tex",
    log:
        "results/logs/paper.log",
    benchmark:
        "results/logs/paper.tsv"
    params:
        grid=digest(STUDY),
        published=TRANSCRIPTION,
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
        paper_parts,
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
