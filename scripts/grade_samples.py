"""Grade a sample store into a verdict store."""

from pathlib import Path

from acpo.cli import benchmark_problems, parser, run, study_and_cell
from acpo.evaluation import grade_run


def main() -> None:
    """Read arguments, grade, write."""
    arguments = parser(__doc__)
    arguments.add_argument("--cell", required=True)
    arguments.add_argument("--samples", type=Path, required=True)
    arguments.add_argument("--data", type=Path, required=True, help="directory of the formatted data sets")
    arguments.add_argument("--output", type=Path, required=True)
    given = arguments.parse_args()
    study, cell = study_and_cell(given)
    grade_run(study, cell, benchmark_problems(study, cell, given.data), given.samples, given.output)


if __name__ == "__main__":
    run(main)
