"""Compile the paper with pdflatex, without a shell and within a time limit."""

import argparse
from pathlib import Path

from acpo.cli import run
from acpo.report.pdf import compile_pdf
from acpo.store import atomic_file


def main() -> None:
    """Read arguments, compile, write."""
    arguments = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    arguments.add_argument("--source", type=Path, required=True, help="the LaTeX file")
    arguments.add_argument("--output", type=Path, required=True, help="the PDF")
    arguments.add_argument("--seconds", type=float, required=True, help="time limit")
    given = arguments.parse_args()
    content = compile_pdf(given.source, given.seconds)
    with atomic_file(given.output) as temporary:
        temporary.write_bytes(content)


if __name__ == "__main__":
    run(main)
