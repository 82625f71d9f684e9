"""What the training runs of a plan cost, under Snakemake's own table of jobs: in a dry-run, and when a run starts."""

import logging
from collections import defaultdict

from snakemake.logging import logger
from snakemake_interface_logger_plugins.common import LogEvent


class CostOfPlan(logging.Filter):
    """Lengthens the message with the table of jobs; what is quiet stays so, and jobs print no such table."""

    def filter(self, record):
        if getattr(record, "event", None) == LogEvent.RUN_INFO:
            record.msg, record.args = f"{record.getMessage()}\n{cost_of_plan()}", ()
        return True


def cost_of_plan() -> str:
    """Write the cost of the training runs that are to be made, by suite."""
    from acpo.estimate import COLUMNS, cell_costs, combined, table_rows
    from tabulate import tabulate

    seeds = defaultdict(list)
    for job in workflow.dag.needrun_jobs(exclude_finished=False):
        if job.rule.name == "train_policy":
            seeds[job.wildcards.trained].append(int(job.wildcards.seed))
    if not seeds:
        return ""
    cells = {find_cell(name): chosen for name, chosen in sorted(seeds.items())}
    suites = defaultdict(list)
    for cell, cost in zip(cells, cell_costs(STUDY, cells, Path("results"))):
        suites[cell.suite].append(cost)
    rows = table_rows([combined(suite, costs) for suite, costs in suites.items()])
    aligned = ("left", *["right"] * (len(COLUMNS) - 2), "left")
    table = tabulate(rows, headers=COLUMNS, colalign=aligned, disable_numparse=True)
    return f"Training to be done (scripts/estimate_cost.py):\n{table}\n"


# A Snakefile that is read again in one process would otherwise say it twice.
for earlier in [
    each for each in logger.filters if type(each).__name__ == CostOfPlan.__name__
]:
    logger.removeFilter(earlier)
logger.addFilter(CostOfPlan())
