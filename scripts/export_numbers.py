"""Export every number of a study: tidy parquet and CSV, the raw samples, and a cell a file as lm-eval writes them."""

from pathlib import Path

from acpo.cells import grid_cells
from acpo.cli import parser, run
from acpo.config import load_study
from acpo.results import CellResult
from acpo.stats.analysis import read_rows
from acpo.stats.export import harness_results, numbers
from acpo.stats.records import StatisticsResult
from acpo.store import read_json, write_json, write_table, write_text


def main() -> None:
    """Read arguments, export."""
    arguments = parser(__doc__)
    arguments.add_argument("--results", type=Path, required=True, help="the results folder")
    arguments.add_argument("--output-dir", type=Path, required=True, help="gets numbers.*, samples.parquet, lm_eval/")
    given = arguments.parse_args()
    study = load_study(given.config)
    statistics = read_json(given.results / "statistics" / "statistics.json", StatisticsResult)
    write_table(given.output_dir / "samples.parquet", read_rows(study, given.results))
    for cell in grid_cells(study):
        path = given.results / f"{cell}.json"
        if path.exists():
            content = harness_results(study, cell, read_json(path, CellResult))
            write_json(given.output_dir / "lm_eval" / f"{cell}.json", content)
        else:
            print(f"missing: {cell}")
    frame = numbers(study, given.results, statistics)
    write_text(given.output_dir / "numbers.csv", frame.to_csv(index=False, lineterminator="\n"))
    write_table(given.output_dir / "numbers.parquet", frame)


if __name__ == "__main__":
    run(main)
