"""Tables, figures and the report, from the cells of the grid."""

from acpo.timing import REFERENCE


localrules:
    make_table,
    write_macros,
    plot_figure,
    plot_overview,
    make_report,


REPORT = Path(workflow.basedir) / "src/acpo/report"
CAPTIONS = "../report"
TABLE_NAMES = sorted(file.stem for file in (REPORT / "tables").glob("[a-z]*.py"))
FIGURE_NAMES = sorted(file.stem for file in (REPORT / "figures").glob("[a-z]*.py"))
OVERVIEW_NAMES = sorted(file.stem for file in (REPORT / "overviews").glob("[a-z]*.py"))
STATISTICS = "results/statistics/statistics.json"
MACROS = "results/tables/numbers.tex"
TABLES = expand(
    "results/tables/{table}.{kind}", table=TABLE_NAMES, kind=["tex", "csv", "html"]
)
FIGURES = expand(
    "results/figures/{figure}_{shown}.{kind}",
    figure=FIGURE_NAMES,
    shown=STUDY.grid.suites,
    kind=["pdf", "png"],
) + expand(
    "results/figures/{overview}.{kind}", overview=OVERVIEW_NAMES, kind=["pdf", "png"]
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
# What a table reads besides cells.
TABLE_INPUTS = {"table9": TIMING, "table10": [STATISTICS]}
TRANSCRIPTION = file_hash(Path(workflow.basedir) / "src/acpo/audit/published.yaml")
# The audit reads no report, so the report shows what it says of the same results.
AUDITS = ["results/audit/published.json", "results/audit/ledger.json"]


wildcard_constraints:
    overview="|".join(OVERVIEW_NAMES),


ruleorder: write_macros > make_table


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
        table_results,
        lambda wildcards: TABLE_INPUTS.get(wildcards.table, []),
    output:
        multiext("results/tables/{table}", ".tex", ".csv"),
        report(
            "results/tables/{table}.html",
            caption=f"{CAPTIONS}/table.rst",
            category="Tables",
            labels={"table": "{table}"},
        ),
    log:
        "results/logs/tables/{table}.log",
    benchmark:
        "results/logs/tables/{table}.tsv"
    params:
        grid=digest(STUDY),
        code=lambda wildcards: code_hash(
            [
                table_module(wildcards.table),
                "acpo.report.html",
                "acpo.report.latex",
            ]
        ),
        templates=TEMPLATES,
        published=TRANSCRIPTION,
    shell:
        "{PYTHON} {SCRIPTS}/make_table.py --config {STUDY_FILE} --results results --table {wildcards.table} "
        "--output-dir results/tables 2>&1 | tee {log}"


rule write_macros:
    input:
        GRID_CELLS,
        STATISTICS,
        TIMING,
        asked_ablations,
    output:
        MACROS,
    log:
        "results/logs/tables/numbers.log",
    benchmark:
        "results/logs/tables/numbers.tsv"
    params:
        grid=digest(STUDY),
        code=code_hash(
            ["acpo.report.macros"]
            + [f"acpo.report.tables.{name}" for name in TABLE_NAMES]
        ),
        published=TRANSCRIPTION,
        ablations=made_ablations,
    shell:
        "{PYTHON} {SCRIPTS}/write_macros.py --config {STUDY_FILE} --results results --output {output} 2>&1 | tee {log}"


rule plot_overview:
    input:
        GRID_CELLS,
        STATISTICS,
    output:
        "results/figures/{overview}.pdf",
        report(
            "results/figures/{overview}.png",
            caption=f"{CAPTIONS}/overview.rst",
            category="Figures",
            labels={"figure": "{overview}", "suite": "whole grid"},
        ),
    log:
        "results/logs/figures/{overview}.log",
    benchmark:
        "results/logs/figures/{overview}.tsv"
    params:
        grid=digest(STUDY),
        code=lambda wildcards: code_hash(
            [f"acpo.report.overviews.{wildcards.overview}"]
        ),
        published=TRANSCRIPTION,
    shell:
        "{PYTHON} {SCRIPTS}/plot_figure.py --config {STUDY_FILE} --results results --figure {wildcards.overview} "
        "--output-dir results/figures 2>&1 | tee {log}"


rule plot_figure:
    input:
        GRID_RUNS,
        DRAWN_TOKEN_PROBES,
        GRADIENT_PROBES,
    output:
        expand("results/figures/{{figure}}_{shown}.pdf", shown=STUDY.grid.suites),
        [
            report(
                f"results/figures/{{figure}}_{shown}.png",
                caption=f"{CAPTIONS}/figure.rst",
                category="Figures",
                labels={"figure": "{figure}", "suite": STUDY.suites[shown].label},
            )
            for shown in STUDY.grid.suites
        ],
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
        STATISTICS,
        AUDITS,
        asked_ablations,
    output:
        report(
            "results/report.html",
            caption=f"{CAPTIONS}/study.rst",
            category="Report",
            labels={"what": "the whole study, offline"},
        ),
    log:
        "results/logs/report.log",
    benchmark:
        "results/logs/report.tsv"
    params:
        grid=digest(STUDY),
        templates=TEMPLATES,
        published=TRANSCRIPTION,
        ablations=made_ablations,
        code=code_hash(
            ["acpo.report.page"]
            + [f"acpo.report.tables.{name}" for name in TABLE_NAMES]
            + [f"acpo.report.figures.{name}" for name in FIGURE_NAMES]
            + [f"acpo.report.overviews.{name}" for name in OVERVIEW_NAMES]
        ),
    shell:
        "{PYTHON} {SCRIPTS}/make_report.py --config {STUDY_FILE} --results results --output {output} 2>&1 | tee {log}"
