"""The study, and what every rule needs to know of it."""

import gc
import shutil
import signal
import sys
from functools import cache
from pathlib import Path

from acpo.cells import (
    BASE,
    Cell,
    CellNames,
    ablation_cells,
    cell_seeds,
    grid_cells,
    resolve,
    resolve_evaluation,
)
from acpo.config import digest, parse_study
from acpo.errors import ConfigError, nearest
from acpo.provenance import (
    code_hash,
    dataset_modules,
    file_hash,
    grading_modules,
    sampling_modules,
    training_modules,
)
from acpo.report.pdf import PACKAGES
from acpo.store import write_json
from snakemake.exceptions import WorkflowError

# Where real data files lie already; no part of the study, because it changes nothing that is made.
MIRROR = config.pop("mirror", None)
# How many rows of each data set a trial makes; no part of the study either, but what it makes differs.
LIMIT = config.pop("limit", None)
if LIMIT is not None and not (isinstance(LIMIT, int) and LIMIT > 0):
    raise WorkflowError(f"limit: give a positive number of rows (given: {LIMIT!r})")

try:
    STUDY = parse_study(config, "config")
    CELLS = CellNames(STUDY)
except ConfigError as error:
    raise WorkflowError(str(error)) from error

# Scripts read the study from a file named after its content: a changed study never changes under a running job.
STUDY_FILE = f"results/config/{digest(STUDY)}.json"
if not (workflow.is_main_process or Path(STUDY_FILE).exists()):
    raise WorkflowError(
        "the configuration has changed since this job was submitted: end Snakemake and start it again"
    )
# A workflow of many cells is millions of objects that live as long as it does: looking for garbage among them is a
# quarter of a large dry-run.
gc.set_threshold(1_000_000, 50, 50)
# A signal is for the script of a job: it saves and ends (acpo.segments), and what carries its output must outlive it.
# SLURM's warning before a time limit goes to every process of a job step; to ignore it is inherited, to trap it is not.
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
# No job uses a network: the libraries that would ask for news or report their use are told so.
shell.prefix(
    "set -euo pipefail; export HF_HUB_OFFLINE=1 RAY_USAGE_STATS_ENABLED=0 VLLM_NO_USAGE_STATS=1; "
    "trap : INT TERM; tee() {{ trap '' INT TERM; command tee \"$@\"; }}; "
)
PYTHON = sys.executable
SCRIPTS = f"{workflow.basedir}/scripts"
PAPER_PDF = "results/paper.pdf"
HAS_LATEX = shutil.which("pdflatex") is not None


wildcard_constraints:
    table=r"(?!numbers\.)[a-z0-9_]+",  # nor is results/tables/numbers.tex a table
    figure=r"[a-z0-9_]+",
    cell=r"(?!timing\.)[a-z0-9_]+",  # results/timing.json is no cell's
    trained=rf"[a-z0-9_]+(?<!_{BASE})",
    suite="|".join(STUDY.suites),
    seed=r"\d+",
    task="[a-z0-9_]+",
    split="[a-z0-9_]+",


def check_nodes(suite: str) -> None:
    """Refuse a suite of several nodes where Snakemake submits its jobs: each is one step on one node."""
    nodes = STUDY.suites[suite].resources.nodes
    if nodes > 1 and workflow.non_local_exec:
        raise ConfigError(
            f"suites.{suite}.resources.nodes: a job that Snakemake submits runs on one node: give it 1 and more GPUs, "
            f"or run in an allocation: salloc --nodes={nodes} ..., and in it snakemake --cores all"
        )


onstart:
    from acpo.engines.verl.check import check_batches
    from acpo.methods import check_methods

    try:
        check_methods(STUDY)
        for suite in STUDY.grid.suites:
            check_batches(STUDY, suite)
            check_nodes(suite)
    except ConfigError as error:
        raise WorkflowError(str(error)) from error
    if not HAS_LATEX:
        if PAPER_PDF in workflow.dag_settings.targets:
            raise WorkflowError(
                f"{PAPER_PDF} needs pdflatex: apt-get install {PACKAGES}"
            )
        print(
            f"no pdflatex: {PAPER_PDF} is left out, its LaTeX is not; apt-get install {PACKAGES} gives it"
        )
    write_json(Path(STUDY_FILE), STUDY)


def find_cell(name: str) -> Cell:
    """Return the cell of a name, or fail with the nearest one."""
    try:
        return CELLS.parse(name)
    except ConfigError as error:
        raise WorkflowError(str(error)) from error


def suite_of(name: str):
    """Return the definition of a cell's suite."""
    return STUDY.suites[find_cell(name).suite]


def data_file(task: str, split: str) -> str:
    """Return the place of a formatted data set."""
    return f"results/data/{task}/{split}.parquet"


def benchmark_files(wildcards) -> list[str]:
    """Return the data sets that a cell is evaluated on."""
    return [
        data_file(item.task, item.split)
        for item in suite_of(wildcards.cell).benchmarks.values()
    ]


def run_directories(cell: Cell) -> list[str]:
    """Return the directories of a cell's runs, one a training seed."""
    return [f"results/runs/{cell}/seed{seed}" for seed in cell_seeds(STUDY, cell)]


GRID_CELLS = [f"results/{cell}.json" for cell in grid_cells(STUDY)]
