"""What the report reads: cell results and run logs, by name. A missing file is None, never a guess."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import pandas as pd

from acpo.audit.verdict import Audit
from acpo.cells import Cell, cell_seeds
from acpo.config import Study
from acpo.errors import ConfigError, nearest
from acpo.probes.records import GradientReport, TokenProbe
from acpo.results import CellResult, RunRecord
from acpo.stats.records import StatisticsResult
from acpo.store import StoreError, read_json, read_table

Probe = TypeVar("Probe", TokenProbe, GradientReport)
STATISTICS = "statistics/statistics.json"


class Results:
    """A results folder seen through a study."""

    def __init__(self, study: Study, root: Path):
        """Open a results folder.

        Args:
            study: Says which cells and seeds exist and how they are called in print.
            root: The folder that holds `<cell>.json` and `runs/<cell>/seed<N>/`.
        """
        self.study = study
        self.root = root
        self._cells: dict[Cell, CellResult | None] = {}

    def source(self, cell: Cell) -> str:
        """Return the name of a cell's file as printed in tables: relative, the same on every machine."""
        return f"results/{cell}.json"

    def cell(self, cell: Cell) -> CellResult | None:
        """Read a cell's result, or None when it has not been made.

        Raises:
            StoreError: the file is damaged, or holds another cell.
        """
        if cell not in self._cells:
            self._cells[cell] = self._read_cell(cell)
        return self._cells[cell]

    def _read_cell(self, cell: Cell) -> CellResult | None:
        path = self.root / f"{cell}.json"
        if not path.exists():
            return None
        result = read_json(path, CellResult)
        if result.cell != str(cell):
            raise StoreError(f"{path}: cell: expected {str(cell)!r}, found {result.cell!r}. Delete the file")
        return result

    def statistics(self) -> StatisticsResult | None:
        """Read the study's statistics, or None when they have not been made.

        Raises:
            StoreError: the file is damaged.
        """
        path = self.root / STATISTICS
        return read_json(path, StatisticsResult) if path.exists() else None

    def metrics(self, cell: Cell) -> dict[int, pd.DataFrame]:
        """Read the per-update metrics of a cell's finished seeds, by seed."""
        return self._read_logs(cell, "metrics.parquet")

    def rollouts(self, cell: Cell) -> dict[int, pd.DataFrame]:
        """Read the per-rollout log of a cell's finished seeds, by seed."""
        return self._read_logs(cell, "rollouts.parquet")

    def timings(self, cell: Cell) -> dict[int, pd.DataFrame]:
        """Read the seconds of sampling and updates by rollout of a cell's finished seeds that have them, by seed."""
        runs = {seed: run / "timings.parquet" for seed, run in self._finished(cell).items()}
        return {seed: read_table(path) for seed, path in runs.items() if path.exists()}

    def records(self, cell: Cell) -> dict[int, RunRecord]:
        """Read the completion files of a cell's finished seeds, by seed.

        Raises:
            StoreError: a file is damaged, or of another run.
        """
        found = {seed: read_json(run / "run.json", RunRecord) for seed, run in self._finished(cell).items()}
        for seed, record in found.items():
            if (record.cell, record.seed) != (str(cell), seed):
                raise StoreError(
                    f"{self.root}/runs/{cell}/seed{seed}/run.json: is the run of {record.cell} seed {record.seed}. "
                    "Delete its directory"
                )
        return found

    def audit(self, name: str) -> Audit | None:
        """Read the audit `published` or `ledger`, or None when it has not been made."""
        path = self.root / "audit" / f"{name}.json"
        return read_json(path, Audit) if path.exists() else None

    def token_probes(self, cell: Cell) -> dict[int, TokenProbe]:
        """Read the token probes of a cell's seeds that have been made, by seed.

        Raises:
            StoreError: a file is damaged, or holds another run.
        """
        return self._probes(cell, "tokens.json", TokenProbe)

    def gradient_probes(self, cell: Cell) -> dict[int, GradientReport]:
        """Read the gradient probes of a cell's seeds that have been made, by seed.

        Raises:
            StoreError: a file is damaged, or holds another run.
        """
        return self._probes(cell, "gradients.json", GradientReport)

    def _probes(self, cell: Cell, name: str, kind: type[Probe]) -> dict[int, Probe]:
        folder = self.root / "probes" / str(cell)
        paths = {seed: folder / f"seed{seed}" / name for seed in cell_seeds(self.study, cell)}
        probes = {seed: read_json(path, kind) for seed, path in paths.items() if path.exists()}
        for seed, probe in probes.items():
            if probe.name != f"{cell}/seed{seed}":
                raise StoreError(f"{paths[seed]}: name: expected '{cell}/seed{seed}', found {probe.name!r}. Delete it")
        return probes

    def log_gaps(self, suite: str, methods: Sequence[str]) -> list[str]:
        """List the grid's cells of some methods that lack finished runs, for a figure's caption."""
        gaps = []
        for cell in (Cell(suite, m, r) for m in methods for r in self.study.grid.regimes):
            wanted, found = len(cell_seeds(self.study, cell)), len(self._finished(cell))
            if found < wanted:
                gaps.append(f"{cell} ({found} of {wanted} seeds)")
        return gaps

    def _finished(self, cell: Cell) -> dict[int, Path]:
        # `run.json` is written last: a run without it was killed or is still at work.
        folder = self.root / "runs" / str(cell)
        runs = {seed: folder / f"seed{seed}" for seed in cell_seeds(self.study, cell)}
        return {seed: run for seed, run in runs.items() if (run / "run.json").exists()}

    def _read_logs(self, cell: Cell, name: str) -> dict[int, pd.DataFrame]:
        return {seed: read_table(run / name) for seed, run in self._finished(cell).items()}


def check_methods(study: Study, methods: Sequence[str]) -> list[str]:
    """Return the names of methods asked for by name.

    Raises:
        ConfigError: the study does not define one of them; names the nearest.
    """
    for method in methods:
        if method not in study.methods:
            raise ConfigError(f"unknown method {method!r}; {nearest(method, study.methods)}")
    return list(methods)


def extreme_regimes(study: Study) -> tuple[str, str] | None:
    """Return the grid's regimes with the fewest and with the most updates a rollout, or None where no two differ."""
    suite = study.grid.suites[0]
    degrees = {name: study.regime(suite, name).updates_per_rollout for name in study.grid.regimes}
    if len(set(degrees.values())) < 2:
        return None
    return min(degrees, key=degrees.__getitem__), max(degrees, key=degrees.__getitem__)
