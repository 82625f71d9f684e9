"""Map the sign of D over coupling, noise, clip widths and off-policy scale, and search its reversals."""

import argparse
from pathlib import Path

from acpo.cli import run
from acpo.provenance import Clock
from acpo.store import write_json, write_table
from acpo.theory.sign_map import SIGN_SCHEMA, Reversals, listed_reversals, sign_map


def main() -> None:
    """Read arguments, compute, write."""
    arguments = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    arguments.add_argument("--signs", type=Path, required=True, help="gets the map (parquet)")
    arguments.add_argument("--reversals", type=Path, required=True, help="gets where D changes sign (JSON)")
    given = arguments.parse_args()
    clock = Clock()
    write_table(given.signs, sign_map(), SIGN_SCHEMA)
    found = listed_reversals()
    provenance = clock.provenance({}, ["acpo.theory.sign_map"], {})
    write_json(given.reversals, Reversals(reversals=found, provenance=provenance))


if __name__ == "__main__":
    run(main)
