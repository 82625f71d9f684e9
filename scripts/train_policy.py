"""Train one cell with one seed, or make a suite's base model; a killed run resumes when it is started again."""

from pathlib import Path

from acpo.cli import enter_environment, parser, run, study_and_cell
from acpo.data.problems import read_problems
from acpo.engines import TrainingJob, load_engine
from acpo.errors import ConfigError
from acpo.methods import check_methods, measured_parameters
from acpo.provenance import file_hash


def main() -> None:
    """Read arguments, train."""
    arguments = parser(__doc__)
    arguments.add_argument("--cell", required=True)
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--train-data", type=Path, required=True)
    arguments.add_argument("--validation-data", type=Path, help="needed unless the cell is a base model")
    arguments.add_argument("--base", type=Path, help="directory of the base model; needed unless the cell is one")
    arguments.add_argument(
        "--measured-run", action="append", default=[], metavar="METHOD=DIRECTORY",
        help="a finished run that a measured parameter is read from",
    )  # fmt: skip
    arguments.add_argument("--run-directory", type=Path, required=True)
    given = arguments.parse_args()
    study, cell = study_and_cell(given)
    if not cell.is_base:
        enter_environment(study.suites[cell.suite].engine)
    engine = load_engine(study.suites[cell.suite].engine.name)
    check_methods(study)
    metrics = {}
    for pair in given.measured_run:
        method, separator, directory = pair.partition("=")
        if not separator:
            raise ConfigError(f"--measured-run {pair}: expected METHOD=DIRECTORY")
        metrics[method] = Path(directory) / "metrics.parquet"
    files = [given.train_data, *([given.validation_data] if given.validation_data else [])]
    job = TrainingJob(
        study=study,
        cell=cell,
        seed=given.seed,
        problems=read_problems(given.train_data),
        validation=read_problems(given.validation_data) if given.validation_data else [],
        training_file=given.train_data,
        validation_file=given.validation_data,
        data_hashes={f"{file.parent.name}/{file.name}": file_hash(file) for file in files},
        base_directory=given.base,
        measured={} if cell.is_base else measured_parameters(study, cell.method, metrics),
        run_directory=given.run_directory,
    )
    if cell.is_base:
        engine.make_base(job)
    else:
        engine.train(job)


if __name__ == "__main__":
    run(main)
