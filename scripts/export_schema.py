"""Write the JSON schema of config.yaml, for editors and for the test that watches it for drift."""

import argparse
from pathlib import Path

from acpo.cli import run
from acpo.config import json_schema
from acpo.store import write_json


def main() -> None:
    """Read arguments, write."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("output", type=Path)
    write_json(arguments.parse_args().output, json_schema())


if __name__ == "__main__":
    run(main)
