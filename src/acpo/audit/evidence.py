"""What a check of the ledger may look at: the study's results, as far as they exist."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from acpo.audit.published import Published
from acpo.cells import Cell, resolve, resolve_evaluation
from acpo.config import Study, digest
from acpo.report.sources import Results, extreme_regimes
from acpo.results import CellResult, RunRecord
from acpo.store import StoreError, read_json

PLACES = {
    "theory": "theory/{name}.json",
    "tokens": "probes/{cell}/seed{seed}/tokens.json",
    "gradients": "probes/{cell}/seed{seed}/gradients.json",
    "timing": "timing.json",
}
"""Where the results folder keeps what other parts of the pipeline found out."""
COMMANDS = {
    "theory": "snakemake --cores 1 theory",
    "tokens": "snakemake --cores 2 results/probes/{cell}/seed{seed}/tokens.json",
    "gradients": "snakemake --cores 2 results/probes/{cell}/seed{seed}/gradients.json",
    "timing": "snakemake --cores 1 results/timing.json",
}


class MissingEvidenceError(Exception):
    """A check's inputs do not exist: what it needs, and the command that makes it."""

    def __init__(self, needs: str, command: str):
        super().__init__(f"needs {needs}; make it with: {command}")
        self.needs, self.command = needs, command


class Evidence:
    """A results folder, seen by the checks. Whatever is absent raises `MissingEvidenceError`, never a guess."""

    def __init__(self, study: Study, root: Path, published: Published):
        """Open a results folder.

        Args:
            study: Says which cells and seeds exist.
            root: The folder that holds `<cell>.json`, `runs/`, `theory/`, `probes/`.
            published: The paper's numbers.
        """
        self.study = study
        self.root = root
        self.published = published
        self.results = Results(study, root)

    def suites(self, family: str | None = None) -> list[str]:
        """List the suites of the grid, of one family where asked for.

        Raises:
            MissingEvidenceError: the grid has none of that family.
        """
        names = [name for name in self.study.grid.suites if family is None or self.study.suites[name].family == family]
        if not names:
            known = ", ".join(name for name, suite in self.study.suites.items() if suite.family == family)
            raise MissingEvidenceError(
                f"a suite of the family {family} in the grid ({known}; engine verl)", "snakemake --profile slurm all"
            )
        return names

    def extreme_regimes(self) -> tuple[str, str]:
        """Return the grid's regimes with the fewest and with the most updates a rollout.

        Raises:
            MissingEvidenceError: the grid has no two that differ.
        """
        found = extreme_regimes(self.study)
        if found is None:
            raise MissingEvidenceError("two regimes in the grid", "snakemake --cores 2 all")
        return found

    def settings(self, family: str | None = None) -> Iterator[tuple[str, str, str]]:
        """Yield (suite, regime, benchmark) of every task-regime setting of the grid."""
        for suite in self.suites(family):
            for regime in self.study.grid.regimes:
                for benchmark in self.study.suites[suite].benchmarks:
                    yield suite, regime, benchmark

    def cell(self, cell: Cell) -> CellResult:
        """Return a cell's result.

        Raises:
            MissingEvidenceError: it has not been made, or was made with another configuration than the study's.
        """
        self.require(cell.method)
        result, command = self.results.cell(cell), f"snakemake --cores 2 results/{cell}.json"
        if result is None:
            raise MissingEvidenceError(f"results/{cell}.json", command)
        evaluated = {"training": resolve(self.study, cell), "evaluation": resolve_evaluation(self.study, cell)}
        if result.provenance.configuration_hash != digest(evaluated):
            raise MissingEvidenceError(f"results/{cell}.json of this configuration (it was made with another)", command)
        return result

    def require(self, *methods: str) -> None:
        """Make sure that the study defines these methods.

        Raises:
            MissingEvidenceError: it does not define one.
        """
        for method in methods:
            if method not in self.study.methods and method != "base":
                raise MissingEvidenceError(f"a method {method} in config.yaml", "docs/add_a_method.md says how")

    def scores(self, cell: Cell, benchmark: str) -> dict[int, float]:
        """Return a cell's scores by training seed, fractions: best checkpoint by validation, as the paper reports.

        The base model has no best checkpoint; its last one is taken.
        """
        checkpoints = self.cell(cell).benchmarks[benchmark].checkpoints
        chosen = checkpoints["best"] if "best" in checkpoints else checkpoints["last"]
        return {seed.seed: seed.avg_at_k for seed in chosen.seeds}

    def updates(self, cell: Cell) -> dict[int, pd.DataFrame]:
        """Return the per-update metrics of a cell's finished runs, by seed.

        Raises:
            MissingEvidenceError: no run of it is finished, or one was made with another configuration than the study's.
        """
        self.require(cell.method)
        command = f"snakemake --cores 2 results/{cell}.json"
        logs = self.results.metrics(cell)
        if not logs:
            raise MissingEvidenceError(f"results/runs/{cell}/seed*/metrics.parquet", command)
        wanted = digest(resolve(self.study, cell))
        for seed in logs:
            run = self.root / "runs" / str(cell) / f"seed{seed}" / "run.json"
            if read_json(run, RunRecord).provenance.configuration_hash != wanted:
                raise MissingEvidenceError(
                    f"results/runs/{cell}/seed{seed} of this configuration (it was made with another)", command
                )
        return logs

    def path(self, kind: str, **where: str | int) -> Path:
        """Return the place of one of the files of `PLACES`.

        Raises:
            MissingEvidenceError: it does not exist.
        """
        place = PLACES[kind].format(**where)
        if not (self.root / place).exists():
            raise MissingEvidenceError(f"results/{place}", COMMANDS[kind].format(**where))
        return self.root / place

    def document(self, kind: str, **where: str | int) -> dict[str, Any]:
        """Read one of the JSON files of `PLACES`.

        Raises:
            MissingEvidenceError: it does not exist.
            StoreError: it is damaged.
        """
        path = self.path(kind, **where)
        try:
            content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise StoreError(
                f"{path}: cannot be read ({error}). Delete it and run: {COMMANDS[kind].format(**where)}"
            ) from error
        return content
