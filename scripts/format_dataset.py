"""Format one split of a task into a data set."""

from pathlib import Path

from acpo.cli import parser, run
from acpo.config import load_study
from acpo.datasets import write_problems
from acpo.tasks import load_task


def main() -> None:
    """Read arguments, format, write."""
    arguments = parser(__doc__)
    arguments.add_argument("--task", required=True)
    arguments.add_argument("--split", required=True)
    arguments.add_argument("--output", type=Path, required=True)
    given = arguments.parse_args()
    study = load_study(given.config)
    task = load_task(given.task)
    problems = task.problems(given.split, study.root_seed, {})
    count = write_problems(given.output, given.task, task.ability, given.split, problems)
    print(f"{given.output}: {count} problems")


if __name__ == "__main__":
    run(main)
