"""Tables, figures and the report, from the cells of the grid."""

from acpo.timing import REFERENCE


localrules:
    make_table,
    plot_figure,
    make_report,


REPORT = Path(workflow.basedir) / "src/acpo/report"
TABLE_NAMES = sorted(file.stem for file in (REPORT / "tables").glob("[a-z]*.py"))
FIGURE_NAMES = sorted(file.stem for file in (REPORT / "figures").glob("[a-z]*.py"))
TABLES = expand(
    "results/tables/{table}.{kind}", table=TABLE_NAMES, kind=["tex", "csv", "html"]
)
FIGURES = expand(
    "results/figures/{figure}_{shown}.{kind}",
    figure=FIGURE_NAMES,
    shown=STUDY.grid.suites,
    kind=["pdf", "png"],
)
GRID_RUNS = [
    f"{run}/run.json" for cell in grid_cells(STUDY) for run in run_directories(cell)
]
TEMPLATES = [file_hash(file) for file in sorted((REPORT / "templates").iterdir())]
# Updates are timed where the embedded engine trains; other engines' suites have no update of ours to time.
TIMED = [
    suite
    for suite in STUDY.grid.suites
    if STUDY.suites[suite].engine.name == "tiny" and REFERENCE in STUDY.methods
]
TIMING = ["results/timing.json"] if TIMED else []
# The audit reads no report, so the report shows what it says of the same results.
AUDITS = ["results/audit/published.json", "results/audit/ledger.json"]


def timed_cells(wildcards) -> str:
    """Hash the configuration of the cells whose updates are timed; a label or a benchmark times nothing again."""
    cells = [cell for cell in grid_cells(STUDY) if cell.suite in TIMED]
    return digest({str(cell): resolve(STUDY, cell) for cell in cells})


rule time_updates:
    input:
        [f"results/runs/{suite}_{BASE}/seed0/run.json" for suite in TIMED],
    output:
        "results/timing.json",
    log:
        "results/logs/timing.log",
    benchmark:
        "results/logs/timing.tsv"
    params:
        cells=timed_cells,
        code=code_hash(["acpo.timing", "acpo.bench"]),
        bases=[
            f"--base {suite}=results/runs/{suite}_{BASE}/seed0/last" for suite in TIMED
        ],
    shell:
        "{PYTHON} {SCRIPTS}/time_updates.py --config {STUDY_FILE} {params.bases} --rounds 9 --output {output} "
        "2>&1 | tee {log}"


rule make_table:
    input:
        GRID_CELLS,
        lambda wildcards: TIMING if wildcards.table == "table9" else [],
    output:
        multiext("results/tables/{table}", ".tex", ".csv", ".html"),
    log:
        "results/logs/tables/{table}.log",
    benchmark:
        "results/logs/tables/{table}.tsv"
    params:
        grid=digest(STUDY),
        code=lambda wildcards: code_hash(
            [
                f"acpo.report.tables.{wildcards.table}",
                "acpo.report.html",
                "acpo.report.latex",
            ]
        ),
        templates=TEMPLATES,
    shell:
        "{PYTHON} {SCRIPTS}/make_table.py --config {STUDY_FILE} --results results --table {wildcards.table} "
        "--output-dir results/tables 2>&1 | tee {log}"


rule plot_figure:
    input:
        GRID_RUNS,
        DRAWN_TOKEN_PROBES,
        GRADIENT_PROBES,
    output:
        expand(
            "results/figures/{{figure}}_{shown}.{kind}",
            shown=STUDY.grid.suites,
            kind=["pdf", "png"],
        ),
    log:
        "results/logs/figures/{figure}.log",
    benchmark:
        "results/logs/figures/{figure}.tsv"
    params:
        grid=digest(STUDY),
        code=lambda wildcards: code_hash([f"acpo.report.figures.{wildcards.figure}"]),
    shell:
        "{PYTHON} {SCRIPTS}/plot_figure.py --config {STUDY_FILE} --results results --figure {wildcards.figure} "
        "--output-dir results/figures 2>&1 | tee {log}"


rule make_report:
    input:
        GRID_CELLS,
        GRID_RUNS,
        GRID_VERDICTS,
        GRID_DATA,
        DRAWN_TOKEN_PROBES,
        GRADIENT_PROBES,
        TIMING,
        "results/statistics/statistics.json",
        AUDITS,
    output:
        "results/report.html",
    log:
        "results/logs/report.log",
    benchmark:
        "results/logs/report.tsv"
    params:
        grid=digest(STUDY),
        templates=TEMPLATES,
        code=code_hash(
            ["acpo.report.page"]
            + [f"acpo.report.tables.{name}" for name in TABLE_NAMES]
            + [f"acpo.report.figures.{name}" for name in FIGURE_NAMES]
        ),
    shell:
        "{PYTHON} {SCRIPTS}/make_report.py --config {STUDY_FILE} --results results --output {output} 2>&1 | tee {log}"
