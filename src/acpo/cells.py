"""Cell names: `{suite}_{method}_{regime}`, or `{suite}_base` for the untrained model."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from acpo.config import Study
from acpo.errors import ConfigError, nearest

BASE = "base"


@dataclass(frozen=True)
class Cell:
    """One cell of a study. `method` is `base` and `regime` None for the untrained model."""

    suite: str
    method: str
    regime: str | None

    def __str__(self) -> str:
        return "_".join(part for part in (self.suite, self.method, self.regime) if part)

    @property
    def is_base(self) -> bool:
        """Whether this is a suite's untrained model."""
        return self.method == BASE


class CellNames:
    """All cell names that a study defines, whatever its grid."""

    def __init__(self, study: Study):
        """Index the study's cells.

        Raises:
            ConfigError: two cells share a name (suite `a_b` with method `c`, suite `a` with method `b_c`).
        """
        self._cells: dict[str, Cell] = {}
        for cell in all_cells(study):
            other = self._cells.setdefault(str(cell), cell)
            if other != cell:
                raise ConfigError(f"cell name {cell!s} is both {other} and {cell}: rename a suite or a method")

    def __iter__(self) -> Iterator[str]:
        return iter(self._cells)

    def parse(self, name: str) -> Cell:
        """Return the cell of that name.

        Raises:
            ConfigError: no such cell; names the nearest one.
        """
        if name not in self._cells:
            raise ConfigError(f"unknown cell {name!r}; {nearest(name, self._cells)}")
        return self._cells[name]


def all_cells(study: Study) -> list[Cell]:
    """List every cell that the definitions allow."""
    trained = [Cell(s, m, r) for s in study.suites for m in study.methods for r in study.regimes]
    return [Cell(suite, BASE, None) for suite in study.suites] + trained


def grid_cells(study: Study) -> list[Cell]:
    """List the cells that `all` makes: the grid's combinations and the base cell of each of its suites."""
    grid = study.grid
    trained = [Cell(s, m, r) for s in grid.suites for m in grid.methods for r in grid.regimes]
    return [Cell(suite, BASE, None) for suite in grid.suites] + trained


def ablation_cells(study: Study, name: str) -> list[Cell]:
    """List the cells of an ablation: its grid's combinations, without base cells, which its table does not show.

    Raises:
        ConfigError: no such ablation; names the nearest.
    """
    return [cell for cell in grid_cells(study.ablated(name)) if not cell.is_base]


def cell_seeds(study: Study, cell: Cell) -> list[int]:
    """Return the training seeds of a cell. The base model is made once, as seed 0."""
    return [0] if cell.is_base else list(study.seeds)


def resolve(study: Study, cell: Cell) -> dict[str, Any]:
    """Return all of the configuration that a cell's training depends on, and nothing else.

    Two studies that resolve a cell equally train it equally, so a digest of this decides what is trained again:
    a new label, benchmark or neighbour changes nothing.
    """
    suite = study.suites[cell.suite]
    resolved = {
        "root_seed": study.root_seed,
        "task": suite.task,
        "train_split": suite.train_split,
        "model": study.models[suite.model].model_dump(mode="json", exclude={"label", "files", "parameters"}),
        "engine": suite.engine.decisive(),
        "longest": [suite.training.max_prompt_tokens, suite.training.max_response_tokens],
    }
    if cell.regime is None:
        return resolved
    method = study.methods[cell.method]
    sources = {source.method: study.methods[source.method] for source in method.measured.values()}
    return resolved | {
        "training": suite.training.model_dump(mode="json"),
        "validation": suite.validation.model_dump(mode="json"),
        "token_store": suite.token_store.model_dump(mode="json"),
        "regime": study.regime(cell.suite, cell.regime).model_dump(mode="json", exclude={"label"}),
        "method": method.model_dump(mode="json", exclude={"label"}),
        "measured_on": {name: source.model_dump(mode="json", exclude={"label"}) for name, source in sources.items()},
    }


def resolve_evaluation(study: Study, cell: Cell) -> dict[str, Any]:
    """Return all of the configuration that sampling a cell's checkpoints depends on."""
    suite = study.suites[cell.suite]
    benchmarks = {
        name: benchmark.model_dump(mode="json", exclude={"label"}) for name, benchmark in suite.benchmarks.items()
    }
    return {
        "root_seed": study.root_seed,
        "engine": suite.engine.decisive(),
        "benchmarks": benchmarks,
        "temperature": suite.training.temperature,
        "top_p": suite.training.top_p,
        "max_response_tokens": suite.training.max_response_tokens,
    }
