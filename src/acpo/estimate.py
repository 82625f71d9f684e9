"""What a study costs before it is run: GPU-hours and disk of each cell, and what each number rests on.

Not counted is what is small beside training: base models, and sampling the benchmarks (a few thousandths of the
responses of training).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.filesize import decimal

from acpo.cells import Cell
from acpo.config import Study
from acpo.engines.verl.checkpoints import KEPT_BEST
from acpo.results import RunRecord
from acpo.sections import BuiltModel, HubModel, Suite, VerlEngine
from acpo.store import StoreError, read_json, read_table
from acpo.tasks import load_task
from acpo.tasks.base import EmbeddedTask

WEIGHT_BYTES = {"bf16": 2, "fp32": 4}
STATE_BYTES = 12
"""Bytes of a parameter in a training checkpoint: the weight and AdamW's two moments, float32."""
BEST_BYTES = 4
"""Bytes of a parameter in a best model that is kept beside verl's checkpoints: the weight, float32."""
TOKEN_BYTES = 18
"""Bytes of a row of a token store at most: three float32 that do not compress, the token, its place."""

DECLARED = "declared"
COLUMNS = ("", "runs", "hours a run", "GPU-hours", "disk of a running one", "disk kept", "time is")


@dataclass(frozen=True)
class Cost:
    """The cost of some runs of one suite.

    Attributes:
        name: A cell or a suite.
        runs: How many.
        hours: Wall time of all of them, one after the other.
        gpu_hours: The same times the GPUs of a run.
        running_bytes: Disk of one run while it trains.
        kept_bytes: Disk of all of them when they are done.
        time_basis: `declared` (`resources.runtime_minutes`), or how many finished runs the time was measured on.
        disk_basis: What the size of token stores rests on; that of weights is counted.
    """

    name: str
    runs: int
    hours: float
    gpu_hours: float
    running_bytes: int
    kept_bytes: int
    time_basis: str
    disk_basis: str


def cell_costs(study: Study, seeds: Mapping[Cell, Sequence[int]], results: Path) -> list[Cost]:
    """Estimate trained cells.

    Args:
        study: The study.
        seeds: The training seeds to count of each cell, which is one that is trained.
        results: Where the workflow writes; finished runs there are measured.

    Returns:
        One cost a cell, in their order.
    """
    finished = FinishedRuns(study, results)
    return [_cell_cost(study, cell, len(chosen), finished) for cell, chosen in seeds.items()]


def _cell_cost(study: Study, cell: Cell, runs: int, finished: "FinishedRuns") -> Cost:
    suite = study.suites[cell.suite]
    hours, time_basis = finished.hours(cell)
    tokens, disk_basis = finished.token_store_bytes(cell)
    weights = parameter_count(study, suite)
    policies = 2 * weights * _weight_bytes(suite)  # last and best
    states = weights * STATE_BYTES
    if isinstance(suite.engine, VerlEngine):
        states = weights * (STATE_BYTES * suite.engine.kept_checkpoints + BEST_BYTES * KEPT_BEST)
    return Cost(
        name=str(cell),
        runs=runs,
        hours=runs * hours,
        gpu_hours=runs * hours * suite.resources.nodes * suite.resources.gpus,
        running_bytes=policies + states + tokens,
        kept_bytes=runs * (policies + tokens),
        time_basis=time_basis,
        disk_basis=disk_basis,
    )


def combined(name: str, costs: Iterable[Cost]) -> Cost:
    """Add costs up; a run's own disk is that of the largest."""
    costs = list(costs)
    return Cost(
        name=name,
        runs=sum(cost.runs for cost in costs),
        hours=sum(cost.hours for cost in costs),
        gpu_hours=sum(cost.gpu_hours for cost in costs),
        running_bytes=max((cost.running_bytes for cost in costs), default=0),
        kept_bytes=sum(cost.kept_bytes for cost in costs),
        time_basis=_bases(cost.time_basis for cost in costs),
        disk_basis=_bases(cost.disk_basis for cost in costs),
    )


def _bases(bases: Iterable[str]) -> str:
    return "; ".join(sorted(set(bases)))


def parameter_count(study: Study, suite: Suite) -> int:
    """Count a suite's model: a published one by its model card, a built one by its shape."""
    model = study.models[suite.model]
    if isinstance(model, HubModel):
        return model.parameters
    task = load_task(suite.task)
    words = len(task.vocabulary) + 2 if isinstance(task, EmbeddedTask) else 0  # padding and start
    return _built_parameters(model, words)


def _built_parameters(model: BuiltModel, words: int) -> int:
    width, heads = model.hidden_size, model.attention_heads
    key_value = width * model.key_value_heads // heads
    layer = 2 * width * width + 2 * width * key_value + 3 * width * model.feed_forward_size + 2 * width
    return 2 * words * width + model.layers * layer + width


def _weight_bytes(suite: Suite) -> int:
    return WEIGHT_BYTES[suite.engine.precision if isinstance(suite.engine, VerlEngine) else "fp32"]


class FinishedRuns:
    """The finished runs in some results, found once: a study may have thousands of cells."""

    def __init__(self, study: Study, results: Path):
        """Look for what lies there."""
        self._study = study
        self._seconds: dict[str, list[float]] = defaultdict(list)
        self._tokens: dict[str, list[int]] = defaultdict(list)
        for record in results.glob("runs/*/seed*/run.json"):
            if (seconds := _seconds(record)) is not None:
                self._seconds[record.parts[-3]].append(seconds)
        for file in results.glob("runs/*/seed*/tokens/*.parquet"):
            self._tokens[file.parts[-4]].append(file.stat().st_size)

    def hours(self, cell: Cell) -> tuple[float, str]:
        """Return a run's wall time, and its basis: its own finished seeds, else its suite and regime, else declared."""
        own = self._seconds.get(str(cell), [])
        if own:
            return _measured(own, "this cell")
        others = [Cell(cell.suite, method, cell.regime) for method in self._study.methods] if self._seconds else []
        seconds = [each for other in others for each in self._seconds.get(str(other), [])]
        if seconds:
            return _measured(seconds, "its suite and regime")
        return self._study.suites[cell.suite].resources.runtime_minutes / 60, DECLARED

    def token_store_bytes(self, cell: Cell) -> tuple[int, str]:
        """Return the size of a run's token store: measured, else with every response as long as it may be."""
        suite = self._study.suites[cell.suite]
        kept, sizes = len(suite.token_store.rollouts), self._tokens.get(str(cell), [])
        if sizes:
            return round(kept * sum(sizes) / len(sizes)), "token stores measured"
        assert cell.regime is not None
        responses = self._study.regime(cell.suite, cell.regime).train_batch_size * suite.training.group_size
        return kept * responses * suite.training.max_response_tokens * TOKEN_BYTES, "token stores at most"


def _measured(seconds: Sequence[float], whose: str) -> tuple[float, str]:
    return sum(seconds) / len(seconds) / 3600, f"measured on {len(seconds)} of {whose}"


def _seconds(record: Path) -> float | None:
    """Return a finished run's wall time: at least that of its rollouts, where they are known, if it was resumed.

    None where the record cannot be read: an estimate stops nobody, and whoever needs the run will name the fault.
    """
    try:
        wall = read_json(record, RunRecord).provenance.wall_seconds
        timings = read_table(record.with_name("timings.parquet"))
    except StoreError:
        return None
    return max(wall, float(timings["sampling_seconds"].sum() + timings["update_seconds"].sum()))


def as_json(costs: Sequence[Cost]) -> dict[str, Any]:
    """Return costs and their total as plain values."""
    return {"cells": [asdict(cost) for cost in costs], "total": asdict(combined("total", costs))}


def table_rows(costs: Sequence[Cost]) -> list[list[str]]:
    """Return the rows of a table, the total last; the columns are `COLUMNS`, and no cost is of no runs."""
    return [
        [
            cost.name, f"{cost.runs:,}", f"{cost.hours / cost.runs:,.2f}", f"{cost.gpu_hours:,.0f}",
            decimal(cost.running_bytes), decimal(cost.kept_bytes), cost.time_basis,
        ]
        for cost in [*costs, combined("total", costs)]
    ]  # fmt: skip
