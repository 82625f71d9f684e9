"""Format one split of a task into a data set, with a manifest beside it."""

from pathlib import Path

from acpo.cli import keyed_path, parser, run
from acpo.config import Study, load_study
from acpo.data.format import Plan, format_split
from acpo.tasks import load_task
from acpo.tasks.base import EmbeddedTask


def prompt_budget(study: Study, task: str, split: str) -> int | None:
    """Return the most tokens that a prompt may have in the suites that use a split.

    An embedded task has none: its prompts are words of its own vocabulary, which the engines count exactly.
    """
    if isinstance(load_task(task), EmbeddedTask):
        return None
    budgets = [
        suite.training.max_prompt_tokens
        for suite in study.suites.values()
        if (suite.task == task and split in (suite.train_split, suite.validation.split))
        or any((each.task, each.split) == (task, split) for each in suite.benchmarks.values())
    ]
    return max(budgets, default=None)


def main() -> None:
    """Read arguments, format, write."""
    arguments = parser(__doc__)
    arguments.add_argument("--task", required=True)
    arguments.add_argument("--split", required=True)
    arguments.add_argument("--file", action="append", type=keyed_path, default=[], help="KEY=PATH of a raw file")
    arguments.add_argument("--limit", type=int, help="keep only the first rows, for a trial")
    arguments.add_argument("--output", type=Path, required=True)
    given = arguments.parse_args()
    study = load_study(given.config)
    budget = prompt_budget(study, given.task, given.split)
    plan = Plan(given.task, given.split, study.root_seed, limit=given.limit, longest_prompt=budget)
    manifest = format_split(plan, dict(given.file), given.output)
    print(f"{given.output}: {manifest.rows} problems")


if __name__ == "__main__":
    run(main)
