"""What trains and samples. An engine is a package here with a module `engine` that offers `ENGINE`."""

import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from acpo.cells import Cell
from acpo.config import Study
from acpo.errors import ConfigError
from acpo.tasks.base import Problem


class EngineError(Exception):
    """Training or sampling gave something impossible; the message says what and where."""


@dataclass(frozen=True)
class TrainingJob:
    """One training run: what to train, from what, on what, to where.

    `problems` are the training problems and `validation` the ones that choose the best checkpoint. They were read from
    `training_file` and `validation_file` (None where they were made), whose sha256 are among `data_hashes`. `measured`
    are parameters read from another run.
    """

    study: Study
    cell: Cell
    seed: int
    problems: Sequence[Problem]
    validation: Sequence[Problem]
    training_file: Path | None
    validation_file: Path | None
    data_hashes: dict[str, str]
    base_directory: Path | None
    measured: dict[str, float]
    run_directory: Path

    @property
    def name(self) -> str:
        """What the run is called in messages."""
        return f"{self.cell} seed {self.seed}"


class Engine(ABC):
    """Trains and samples policies."""

    @abstractmethod
    def make_base(self, job: TrainingJob) -> None:
        """Make a suite's untrained model in the run directory; `run.json` is written last.

        Raises:
            ConfigError: the configured model is not one that the engine makes, or the data do not suit its task.
            StoreError: another process holds the run directory, or it cannot be written.
        """

    @abstractmethod
    def train(self, job: TrainingJob) -> None:
        """Train a cell's policy with one seed, resuming where a killed run stopped; `run.json` is written last.

        Raises:
            ConfigError: the configuration, the method or the data do not suit the engine.
            EngineError: training gave something impossible, or ended before the last rollout.
            StoreError: a file is missing or damaged, or another process holds the run directory.
            SegmentEndedError: a signal ended the segment; the same command goes on from there.
            NoProgressError: the last two segments saved nothing.
        """

    @abstractmethod
    def sample(
        self,
        study: Study,
        cell: Cell,
        checkpoint: Path,
        benchmark: str,
        problems: Sequence[Problem],
        seed: int,
        partial: Path,
    ) -> pd.DataFrame:
        """Sample a benchmark's questions.

        Args:
            study: The study.
            cell: The run's cell.
            checkpoint: A transformers checkpoint.
            benchmark: Name of the benchmark in the suite.
            problems: Its questions.
            seed: The training seed.
            partial: Where an engine may keep finished parts for a job that goes on after a kill. It belongs to these
                questions, weights, settings and code alone, and is removed when the sample store is complete.

        Returns:
            The columns question, sample, response, response_tokens and finish_reason (`stop` or `length`).

        Raises:
            ConfigError: the questions' task or the machine does not suit the engine.
            EngineError: a question cannot be asked, or sampling gave something impossible; names the question.
            StoreError: a file is missing or damaged.
        """


def engine_names() -> list[str]:
    """List the engines that this version has."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if module.ispkg)


def load_engine(name: str) -> Engine:
    """Return an engine by name.

    Raises:
        ConfigError: this version does not have it.
    """
    if name not in engine_names():
        raise ConfigError(
            f"the engine {name!r} is not part of this version (it has: {', '.join(engine_names())}): "
            "choose a suite whose engine is"
        )
    return importlib.import_module(f"{__name__}.{name}.engine").ENGINE
