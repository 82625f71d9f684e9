"""Say what changed between two results folders: configuration, code, data, and numbers beyond noise."""

import argparse
from collections import Counter
from pathlib import Path

import pandas as pd

from acpo.cli import run
from acpo.stats.studies import StudyDifference, compare_studies
from acpo.store import write_json


def main() -> None:
    """Read arguments, compare, print, write."""
    arguments = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    arguments.add_argument("before", type=Path, help="a results folder")
    arguments.add_argument("after", type=Path, help="another")
    arguments.add_argument("--alpha", type=float, default=0.05, help="level, over all numbers (Holm)")
    arguments.add_argument("--json", type=Path, metavar="FILE", help="write the comparison there too")
    given = arguments.parse_args()
    found = compare_studies(given.before, given.after, given.alpha)
    report(found)
    if given.json:
        write_json(given.json, found)


def report(found: StudyDifference) -> None:
    """Print what changed."""
    print(f"{len(found.common)} cells in both")
    for title, names in (("only in the first", found.only_before), ("only in the second", found.only_after)):
        if names:
            print(f"{title}: {', '.join(names)}")
    print()
    for change in found.changes:
        where = "all cells" if change.cells == found.common else ", ".join(change.cells)
        print(f"{change.kind} {change.what}: {change.before} -> {change.after} ({where})")
    if not found.changes:
        print("configuration, code, data and packages of what both have are the same")
    if found.without_run:
        print(f"training not compared, a folder lacks run.json: {', '.join(found.without_run)}")
    if not found.numbers:
        print("\nno number in both")
        return
    print("\nNumbers, percent:")
    print(numbers_table(found).to_string(index=False, float_format="%.4g", na_rep="-"))
    counts = Counter(item.verdict for item in found.numbers)
    print("\n" + ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))


def numbers_table(found: StudyDifference) -> pd.DataFrame:
    """Arrange the numbers for a terminal."""
    frame = pd.DataFrame(
        [
            {
                "cell": item.cell,
                "benchmark": item.benchmark,
                "checkpoint": item.checkpoint,
                "before": 100 * item.before,
                "after": 100 * item.after,
                "difference": 100 * item.difference,
                "p": item.p,
                "p, these checkpoints": item.checkpoint_p,
                "": item.verdict,
            }
            for item in found.numbers
        ]
    )
    return frame.astype({"p": float, "p, these checkpoints": float})


if __name__ == "__main__":
    run(main)
