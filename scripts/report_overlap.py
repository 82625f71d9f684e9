"""Report how much of each benchmark is in a training set, from the raw files, as JSON and as a Markdown table."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from acpo.config import ConfigError
from acpo.data.overlap import as_text, overlap
from acpo.data.verify import DataError
from acpo.store import StoreError, write_json, write_text
from acpo.tasks import load_task


def _questions(name: str, files: dict[str, Path], root_seed: int) -> Iterator[tuple[str, str]]:
    task, _, split = name.partition("/")
    for problem in load_task(task).problems(split, root_seed, files):
        yield problem.id, problem.prompt


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("training", help="task/split")
    parser.add_argument("benchmarks", nargs="+", help="task/split each")
    parser.add_argument("--file", action="append", default=[], metavar="KEY=PATH", help="where a raw file lies")
    parser.add_argument("--root-seed", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True, help="JSON; the Markdown table goes beside it")
    options = parser.parse_args()
    files = {key: Path(path) for key, _, path in (each.partition("=") for each in options.file)}
    try:
        benchmarks = {name: _questions(name, files, options.root_seed) for name in options.benchmarks}
        report = overlap(options.training, _questions(options.training, files, options.root_seed), benchmarks)
        write_text(options.output.with_suffix(".md"), as_text(report))
        write_json(options.output, report)
    except KeyError as error:
        print(f"give --file {error.args[0]}=PATH: a split is made from that file", file=sys.stderr)
        return 1
    except (ConfigError, DataError, StoreError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
