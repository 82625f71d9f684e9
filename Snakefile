"""From data to paper tables: a cell name such as `orz_acpo_offp` says everything, config.yaml says what it means."""

from snakemake.utils import min_version

min_version("9.0")


configfile: f"{workflow.basedir}/config.yaml"


include: "workflow/rules/common.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/probe.smk"
include: "workflow/rules/analyse.smk"
include: "workflow/rules/ablate.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/estimate.smk"
include: "workflow/rules/theory.smk"
include: "workflow/rules/audit.smk"
include: "workflow/rules/paper.smk"


report: "workflow/report/workflow.rst"


localrules:
    all,


rule all:
    default_target: True
    input:
        GRID_CELLS,
        TABLES,
        MACROS,
        FIGURES,
        rules.theory.input,
        "results/report.html",
        PAPER,
