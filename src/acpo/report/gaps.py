"""What the report lacks, and the command that makes it."""

from dataclasses import dataclass
from pathlib import Path

from acpo.cells import Cell, cell_seeds, grid_cells
from acpo.report.details import describe
from acpo.report.explorer.questions import data_gaps
from acpo.report.sources import Results
from acpo.results import CellResult
from acpo.stats.raw import NEEDED
from acpo.timing import REFERENCE

MAKE = "snakemake --cores 2 "


@dataclass(frozen=True)
class Gap:
    """Something that the study asks for and the results folder does not have."""

    name: str
    meaning: str
    lacking: str
    command: str


def find_gaps(results: Results) -> list[Gap]:
    """List the cells, stores, analyses and probes that are not there."""
    return [*missing_cells(results), *_stores(results), *_analyses(results), *_probes(results)]


def missing_cells(results: Results) -> list[Gap]:
    """List the grid's cells without a result, and those with fewer training seeds than asked for."""
    gaps = []
    for cell in grid_cells(results.study):
        result = results.cell(cell)
        lacking = _without_result(results, cell) if result is None else _short(results, cell, result)
        if lacking:
            gaps.append(Gap(str(cell), describe(results.study, cell), lacking, f"{MAKE}results/{cell}.json"))
    return gaps


def _without_result(results: Results, cell: Cell) -> str:
    """Say how far a cell came."""
    wanted, finished = cell_seeds(results.study, cell), results.records(cell)
    started = [seed for seed in wanted if _run(results, cell, seed).exists() and seed not in finished]
    parts = ["no result"]
    if finished:
        parts.append(f"training finished for seed {', '.join(map(str, finished))}")
    if started:
        parts.append(f"training begun and not finished for seed {', '.join(map(str, started))}")
    return "; ".join(parts)


def _run(results: Results, cell: Cell, seed: int) -> Path:
    return results.root / "runs" / str(cell) / f"seed{seed}"


def _short(results: Results, cell: Cell, result: CellResult) -> str:
    wanted = results.study.suites[cell.suite].benchmarks
    absent = [key for key in wanted if key not in result.benchmarks]
    seeds = set(cell_seeds(results.study, cell))
    for benchmark in result.benchmarks.values():
        for score in benchmark.checkpoints.values():
            seeds &= {seed.seed for seed in score.seeds}
    lost = [str(seed) for seed in cell_seeds(results.study, cell) if seed not in seeds]
    parts = [f"no benchmark {key}" for key in absent]
    return "; ".join([*parts, f"no training seed {', '.join(lost)}"] if lost else parts)


def _stores(results: Results) -> list[Gap]:
    """List what cells with a result lack to look into their responses."""
    gaps = [
        Gap(
            f"data/{name}",
            "questions",
            "no data set: its questions are not shown",
            f"{MAKE}results/data/{name}.parquet",
        )
        for suite in results.study.grid.suites
        for name in data_gaps(results, suite)
    ]
    for cell in grid_cells(results.study):
        if results.cell(cell) is None:
            continue
        for seed in cell_seeds(results.study, cell):
            run = _run(results, cell, seed)
            lacking = [name for name in NEEDED if not (run / name).exists()]
            if lacking:
                what = f"no {', '.join(lacking)}: its responses are not shown"
                command = f"{MAKE}results/runs/{cell}/seed{seed}/verdicts.parquet"
                gaps.append(Gap(f"{cell}/seed{seed}", "a run of a cell", what, command))
    return gaps


def _analyses(results: Results) -> list[Gap]:
    study = results.study
    timed = REFERENCE in study.methods and any(study.suites[name].engine.name == "tiny" for name in study.grid.suites)
    parts = [
        ("statistics/statistics.json", "intervals and comparisons", "statistics", True),
        ("audit/published.json", "the paper's numbers recomputed", "audit", True),
        ("audit/ledger.json", "the paper's claims judged", "audit", True),
        ("theory/statements.json", "the derivations, which the audit reads", "theory", True),
        ("timing.json", "Table 9", "results/timing.json", timed),
    ]
    return [
        Gap(name, meaning, "not made", MAKE + target)
        for name, meaning, target, wanted in parts
        if wanted and not (results.root / name).exists()
    ]


def _probes(results: Results) -> list[Gap]:
    """List the probes that figures draw and the results folder lacks, one line a cell."""
    study = results.study
    gaps = []
    for cell in grid_cells(study):
        if cell.is_base or cell.method not in study.probes.methods:
            continue
        suite, seeds = study.suites[cell.suite], len(study.seeds)
        kinds = [("tokens", len(results.token_probes(cell)), seeds if suite.token_store.rollouts else 0)]
        if suite.engine.name == "tiny":
            kinds.append(("gradients", len(results.gradient_probes(cell)), min(study.probes.seeds, seeds)))
        for kind, found, wanted in kinds:
            if found < wanted:
                name = f"probes/{cell}/seed*/{kind}.json"
                gaps.append(Gap(name, f"probes of {kind}", f"{found} of {wanted} seeds", f"{MAKE}probes"))
    return gaps
