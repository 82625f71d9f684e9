"""Make a suite's base run from a published model: verified, and linked to."""

from pathlib import Path

from acpo.cli import parser, run, study_and_cell
from acpo.engines.published import link_base


def main() -> None:
    """Read arguments, verify, link."""
    arguments = parser(__doc__)
    arguments.add_argument("--cell", required=True)
    arguments.add_argument("--model-directory", type=Path, required=True)
    arguments.add_argument("--run-directory", type=Path, required=True)
    given = arguments.parse_args()
    study, cell = study_and_cell(given)
    link_base(study, cell, given.model_directory, given.run_directory)


if __name__ == "__main__":
    run(main)
