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


def table_cells(wildcards) -> list[str]:
    """Return the cells that a table shows: those of its ablation, or of the grid."""
    if wildcards.table not in ABLATION_NAMES:
        return GRID_CELLS
    try:
        cells = ablation_cells(STUDY, wildcards.table)
    except ConfigError as error:
        raise WorkflowError(str(error)) from error
    return [f"results/{cell}.json" for cell in cells]


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
