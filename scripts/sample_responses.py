"""Sample every benchmark of a suite from every checkpoint of a run."""

from pathlib import Path

from acpo.cli import benchmark_problems, enter_environment, parser, run, study_and_cell
from acpo.evaluation import sample_run


def main() -> None:
    """Read arguments, sample, write."""
    arguments = parser(__doc__)
    arguments.add_argument("--cell", required=True)
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--run-directory", type=Path, required=True)
    arguments.add_argument("--data", type=Path, required=True, help="directory of the formatted data sets")
    arguments.add_argument("--output", type=Path, required=True)
    given = arguments.parse_args()
    study, cell = study_and_cell(given)
    enter_environment(study.suites[cell.suite].engine)
    problems = benchmark_problems(study, cell, given.data)
    sample_run(study, cell, given.seed, given.run_directory, problems, given.output)


if __name__ == "__main__":
    run(main)
