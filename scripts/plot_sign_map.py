"""Draw the sign map of the theory, as PDF and PNG."""

import argparse
from pathlib import Path

from acpo.cli import run
from acpo.report.sign_map import draw
from acpo.report.style import look, save
from acpo.store import read_table
from acpo.theory.sign_map import SIGN_SCHEMA


def main() -> None:
    """Read arguments, draw, write."""
    arguments = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    arguments.add_argument("--signs", type=Path, required=True, help="the map (parquet)")
    arguments.add_argument("--output-dir", type=Path, required=True, help="gets sign_map.pdf, .png")
    given = arguments.parse_args()
    with look():
        drawing = draw(read_table(given.signs, SIGN_SCHEMA))
    save(drawing, given.output_dir)


if __name__ == "__main__":
    run(main)
