"""Fetch one pinned raw file: from the mirror if it is there, else from its origin; verified either way."""

import argparse
import sys
from pathlib import Path

from acpo.config import ConfigError
from acpo.data.fetch import fetch
from acpo.data.registry import source
from acpo.data.verify import DataError
from acpo.store import StoreError


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("key", help="name of the file in the registry (docs/data.md lists them)")
    parser.add_argument("output", type=Path)
    parser.add_argument("--mirror", type=Path, help="directory with <owner>/<repository>/<revision>/<path>")
    options = parser.parse_args()
    try:
        fetch(source(options.key), options.output, options.mirror)
    except (ConfigError, DataError, StoreError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
