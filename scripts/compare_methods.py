"""Compute a study's statistics from its verdict stores: comparisons in both modes, ranks, profiles, power."""

from pathlib import Path

import pandas as pd

from acpo.cli import parser, run
from acpo.config import load_study
from acpo.provenance import Clock, file_hash
from acpo.stats.analysis import analyse
from acpo.stats.tables import flat_tables
from acpo.store import write_json, write_text

SHOWN = [
    *("regime", "benchmark", "checkpoint", "treatment", "baseline", "difference_points", "interval_low_points"),
    *("interval_high_points", "p", "permutation_p"),
]


def main() -> None:
    """Read arguments, compute, print, write."""
    arguments = parser(__doc__)
    arguments.add_argument("--results", type=Path, required=True, help="the results folder, with runs/ and data/")
    arguments.add_argument("--output-dir", type=Path, required=True, help="gets statistics.json and its flat tables")
    given = arguments.parse_args()
    clock = Clock()
    study = load_study(given.config)
    result = analyse(study, given.results)
    tables = flat_tables(result)
    report(tables, result.missing)
    for name, table in tables.items():
        write_text(given.output_dir / f"{name}.csv", table.to_csv(index=False, lineterminator="\n"))
    stores = {
        f"{cell}/seed{seed}/verdicts.parquet": given.results / "runs" / cell / f"seed{seed}" / "verdicts.parquet"
        for cell, seed in sorted({(item.cell, seed) for item in result.cells for seed in item.seeds})
    }
    settings = {"statistics": result.settings, "grid": study.grid.model_dump(mode="json"), "root_seed": study.root_seed}
    hashes = {name: file_hash(path) for name, path in stores.items()}
    # Apart from the numbers, which are the same bytes each time.
    write_json(given.output_dir / "provenance.json", clock.provenance(settings, ["acpo.stats.analysis"], hashes))
    write_json(given.output_dir / "statistics.json", result)


def report(tables: dict[str, pd.DataFrame], missing: list[str]) -> None:
    """Print what was found, and what is missing."""
    comparisons = tables["comparisons"]
    if len(comparisons):
        shown = [*SHOWN, *(name for name in comparisons.columns if name.startswith("holm:"))]
        print("Comparisons, differences in points:")
        print(comparisons[shown].to_string(index=False, float_format="%.4g"))
        print("\nMinimum detectable differences in points, by training seeds (one: of two checkpoints):")
        print(tables["detectable"].to_string(index=False, float_format="%.3g"))
    for line in missing:
        print(f"missing: {line}")


if __name__ == "__main__":
    run(main)
