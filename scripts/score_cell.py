"""Score a cell from the sample and verdict stores of its runs."""

from pathlib import Path

from acpo.cells import cell_seeds, resolve, resolve_evaluation
from acpo.cli import benchmark_problems, parser, run, study_and_cell
from acpo.evaluation import score_cell, updates_per_rollout
from acpo.provenance import Clock, file_hash
from acpo.results import CellResult, RunRecord
from acpo.store import read_json, write_json


def main() -> None:
    """Read arguments, score, write."""
    arguments = parser(__doc__)
    arguments.add_argument("--cell", required=True)
    arguments.add_argument("--runs", type=Path, required=True, help="the cell's directory, with seed0, seed1, ...")
    arguments.add_argument("--data", type=Path, required=True, help="directory of the formatted data sets")
    arguments.add_argument("--output", type=Path, required=True)
    given = arguments.parse_args()
    clock = Clock()
    study, cell = study_and_cell(given)
    runs = {seed: given.runs / f"seed{seed}" for seed in cell_seeds(study, cell)}
    scores = score_cell(study, cell, runs, benchmark_problems(study, cell, given.data))
    records = {seed: read_json(path / "run.json", RunRecord) for seed, path in runs.items()}
    stores = ("run.json", "samples.parquet", "verdicts.parquet")
    hashes = {f"{path.name}/{name}": file_hash(path / name) for path in runs.values() for name in stores}
    configuration = {"training": resolve(study, cell), "evaluation": resolve_evaluation(study, cell)}
    result = CellResult(
        cell=str(cell), suite=cell.suite, method=cell.method, regime=cell.regime, benchmarks=scores,
        updates_per_rollout=None if cell.is_base else updates_per_rollout(list(records.values())),
        run_wall_seconds={seed: record.provenance.wall_seconds for seed, record in records.items()},
        provenance=clock.provenance(configuration, ["acpo.evaluation"], hashes),
    )  # fmt: skip
    write_json(given.output, result)


if __name__ == "__main__":
    run(main)
