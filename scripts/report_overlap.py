"""Report how much of each benchmark is in a training set, from the raw files, as JSON and as a Markdown table."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from acpo.cli import keyed_path, parser, run
from acpo.config import load_study
from acpo.data.overlap import as_text, overlap
from acpo.errors import ConfigError
from acpo.store import write_json, write_text
from acpo.tasks import load_task


def _questions(name: str, files: Mapping[str, Path], root_seed: int) -> Iterator[tuple[str, str]]:
    task_name, _, split = name.partition("/")
    task = load_task(task_name)
    missing = [key for key in task.sources(split) if key not in files]
    if missing:
        raise ConfigError(f"{name} is made from {', '.join(missing)}: give --file {missing[0]}=PATH")
    for problem in task.problems(split, root_seed, files):
        yield problem.id, problem.prompt


def main() -> None:
    """Read arguments, compare, write."""
    arguments = parser(__doc__)
    arguments.add_argument("--training", required=True, help="task/split")
    arguments.add_argument("--benchmarks", nargs="+", required=True, help="task/split each")
    arguments.add_argument("--file", action="append", type=keyed_path, default=[], help="KEY=PATH of a raw file")
    arguments.add_argument("--output", type=Path, required=True, help="JSON; a Markdown table is written beside it")
    given = arguments.parse_args()
    seed, files = load_study(given.config).root_seed, dict(given.file)
    benchmarks = {name: _questions(name, files, seed) for name in given.benchmarks}
    report = overlap(given.training, _questions(given.training, files, seed), benchmarks)
    write_text(given.output.with_suffix(".md"), as_text(report))
    write_json(given.output, report)


if __name__ == "__main__":
    run(main)
