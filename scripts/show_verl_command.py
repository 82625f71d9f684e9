"""Print exactly what trains a cell that verl trains: the environment, the command, one setting a line."""

import sys
from pathlib import Path

from acpo.cells import BASE, Cell, CellNames, all_cells
from acpo.cli import enter_environment, environment_python, parser, run
from acpo.config import Study, load_study
from acpo.engines import TrainingJob
from acpo.engines.verl.check import check_batches, check_run
from acpo.engines.verl.overrides import shown
from acpo.errors import ConfigError
from acpo.methods import measured_parameters
from acpo.sections import VerlEngine


def main() -> None:
    """Read arguments, print."""
    arguments = parser(__doc__)
    arguments.add_argument("cell", help="for example orz_acpo_offp")
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--results", type=Path, default=Path("results"), help="where the workflow writes")
    arguments.add_argument("--check", action="store_true", help="let verl check it, in the engine's environment")
    given = arguments.parse_args()
    study = load_study(given.config)
    cell = CellNames(study).parse(given.cell)
    engine = study.suites[cell.suite].engine
    if not isinstance(engine, VerlEngine):
        raise ConfigError(f"{cell}: is not trained by verl (engine: {engine.name}); choose a cell of another suite")
    if cell.is_base:
        raise ConfigError(f"{cell}: is the untrained model, which verl only starts from; {trained_cell(study, cell)}")
    job = training_job(study, cell, given.seed, given.results)
    if given.check:
        enter_environment(engine)
        check_run(job)
    check_batches(study, cell.suite)
    print(shown(job, str(environment_python(engine))))
    if given.check:
        print("verl takes these settings", file=sys.stderr)


def trained_cell(study: Study, base: Cell) -> str:
    """Advise to choose a trained cell of a base cell's suite, and name one that needs no other run."""
    cells = [cell for cell in all_cells(study) if cell.suite == base.suite and not cell.is_base]
    first = next((cell for cell in cells if not study.methods[cell.method].measured), None)
    return f"choose a trained cell of its suite, such as {first}" if first else "choose a trained cell"


def training_job(study: Study, cell: Cell, seed: int, results: Path) -> TrainingJob:
    """Return the job that the workflow's rule would give the engine, without its problems."""
    suite = study.suites[cell.suite]
    data, runs = results / "data" / suite.task, results / "runs"
    sources = {source.method for source in study.methods[cell.method].measured.values()}
    metrics = {
        name: runs / str(Cell(cell.suite, name, cell.regime)) / f"seed{seed}" / "metrics.parquet" for name in sources
    }
    return TrainingJob(
        study=study,
        cell=cell,
        seed=seed,
        problems=[],
        validation=[],
        training_file=data / f"{suite.train_split}.parquet",
        validation_file=data / f"{suite.validation.split}.parquet",
        data_hashes={},
        base_directory=runs / f"{cell.suite}_{BASE}" / "seed0" / "last",
        measured=measured_parameters(study, cell.method, metrics),
        run_directory=runs / str(cell) / f"seed{seed}",
    )


if __name__ == "__main__":
    run(main)
