"""Fetch one pinned raw file: from the mirror if it is there, else from its origin; verified either way."""

import argparse
from pathlib import Path

from acpo.cli import run
from acpo.data.fetch import fetch
from acpo.data.registry import source


def main() -> None:
    """Read arguments, fetch, verify."""
    arguments = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    arguments.add_argument("--key", required=True, help="name of the file in the registry (docs/data.md lists them)")
    arguments.add_argument("--output", type=Path, required=True)
    arguments.add_argument("--mirror", type=Path, help="directory with <owner>/<repository>/<revision>/<path>")
    given = arguments.parse_args()
    pinned = source(given.key)
    fetch(pinned, given.output, given.mirror)
    print(f"{given.output}: {given.output.stat().st_size:,} bytes, {pinned.expected}")


if __name__ == "__main__":
    run(main)
