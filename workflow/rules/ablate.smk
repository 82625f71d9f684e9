"""Grids beside the main one, with a table each: made when asked for, never by `all`."""


localrules:
    ablations,


ABLATION_NAMES = sorted(
    file.stem
    for file in (Path(workflow.basedir) / "src/acpo/report/ablations").glob("[a-z]*.py")
)
for ablation in STUDY.ablations:
    if ablation not in ABLATION_NAMES:
        raise WorkflowError(
            f"ablations: no table {ablation!r} in src/acpo/report/ablations; {nearest(ablation, ABLATION_NAMES)}"
        )


def table_results(wildcards) -> list[str]:
    """Return what a table is made from: the grid's cells; or its ablation's, and runs with measured parameters."""
    if wildcards.table in TABLE_NAMES:
        return GRID_CELLS
    if wildcards.table not in ABLATION_NAMES:
        known = nearest(wildcards.table, [*TABLE_NAMES, *ABLATION_NAMES])
        raise WorkflowError(f"unknown table {wildcards.table!r}; {known}")
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


# Report, paper and macros show the ablations that are there, and train none: a grid of them may cost more than the study.
ABLATION_TABLES = [f"results/tables/{table}.tex" for table in STUDY.ablations]


def asked_ablations(wildcards) -> list[str]:
    """Return the tables of ablations that the command itself asks for."""
    targets = workflow.dag_settings.targets
    return [
        file for file in ABLATION_TABLES if "ablations" in targets or file in targets
    ]


def made_ablations(wildcards) -> dict[str, str]:
    """Hash the tables of ablations that exist and are no input, so that what shows them is made again with new ones."""
    asked = asked_ablations(wildcards)
    found = [Path(file) for file in ABLATION_TABLES if file not in asked]
    return {str(file): file_hash(file) for file in found if file.exists()}
