"""Grids beside the main one, with a table each: made when asked for, never by `all`."""


localrules:
    ablations,


ABLATION_NAMES = sorted(
    file.stem
    for file in (Path(workflow.basedir) / "src/acpo/report/ablations").glob("[a-z]*.py")
)
for name in STUDY.ablations:
    if name not in ABLATION_NAMES:
        raise WorkflowError(
            f"ablations: no table {name!r} in src/acpo/report/ablations; {nearest(name, ABLATION_NAMES)}"
        )


def table_results(wildcards) -> list[str]:
    """Return what a table is made from: the grid's cells; or its ablation's, and runs with measured parameters."""
    if wildcards.table not in ABLATION_NAMES:
        return GRID_CELLS
    try:
        cells = ablation_cells(STUDY, wildcards.table)
    except ConfigError as error:
        raise WorkflowError(str(error)) from error
    measured = [cell for cell in cells if STUDY.methods[cell.method].measured]
    return [f"results/{cell}.json" for cell in cells] + [
        f"{run}/run.json" for cell in measured for run in run_directories(cell)
    ]


def table_module(table: str) -> str:
    """Return the module that builds a table."""
    return f"acpo.report.{'ablations' if table in ABLATION_NAMES else 'tables'}.{table}"


rule ablations:
    input:
        expand(
            "results/tables/{table}.{kind}",
            table=STUDY.ablations,
            kind=["tex", "csv", "html"],
        ),
