"""Statistics of the grid from its verdict stores, and their export."""


localrules:
    statistics,
    export,


GRID_VERDICTS = [
    f"{run}/verdicts.parquet"
    for cell in grid_cells(STUDY)
    for run in run_directories(cell)
]
GRID_DATA = sorted(
    {
        data_file(item.task, item.split)
        for cell in grid_cells(STUDY)
        for item in STUDY.suites[cell.suite].benchmarks.values()
    }
)
STATISTICS_TABLES = [
    "cells",
    "comparisons",
    "families",
    "ranks",
    "profiles",
    "iqm",
    "detectable",
]


rule compare_methods:
    input:
        cells=GRID_CELLS,
        verdicts=GRID_VERDICTS,
        data=GRID_DATA,
    output:
        expand("results/statistics/{name}.csv", name=STATISTICS_TABLES),
        "results/statistics/provenance.json",
        "results/statistics/statistics.json",
    log:
        "results/logs/statistics.log",
    benchmark:
        "results/logs/statistics.tsv"
    params:
        grid=digest(STUDY),
        code=code_hash(["acpo.stats.analysis", "acpo.stats.tables"]),
    shell:
        "{PYTHON} {SCRIPTS}/compare_methods.py --config {STUDY_FILE} --results results "
        "--output-dir results/statistics 2>&1 | tee {log}"


rule export_numbers:
    input:
        cells=GRID_CELLS,
        verdicts=GRID_VERDICTS,
        data=GRID_DATA,
        statistics="results/statistics/statistics.json",
    output:
        multiext("results/export/numbers", ".csv", ".parquet"),
        "results/export/samples.parquet",
        expand("results/export/lm_eval/{cell}.json", cell=grid_cells(STUDY)),
    log:
        "results/logs/export.log",
    benchmark:
        "results/logs/export.tsv"
    params:
        grid=digest(STUDY),
        code=code_hash(["acpo.stats.export", "acpo.stats.analysis"]),
    shell:
        "{PYTHON} {SCRIPTS}/export_numbers.py --config {STUDY_FILE} --results results --output-dir results/export "
        "2>&1 | tee {log}"


rule statistics:
    input:
        "results/statistics/statistics.json",


rule export:
    input:
        "results/export/numbers.parquet",
