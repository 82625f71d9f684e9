"""Sample a run's last policy and update it on half of the responses: the material of gradient probes."""

from pathlib import Path

from acpo.cells import resolve
from acpo.cli import parser, run, study_and_cell
from acpo.data.problems import read_problems
from acpo.engines.tiny.drift import Drift
from acpo.probes.records import DriftRecord
from acpo.provenance import Clock, file_hash
from acpo.store import write_json


def main() -> None:
    """Read arguments, drift, write; `drift.json` is written last."""
    arguments = parser(__doc__)
    arguments.add_argument("--cell", required=True)
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--checkpoint", type=Path, required=True)
    arguments.add_argument("--train-data", type=Path, required=True)
    arguments.add_argument("--output-dir", type=Path, required=True)
    given = arguments.parse_args()
    clock = Clock()
    study, cell = study_and_cell(given)
    drift = Drift(study, cell, given.seed, given.checkpoint, read_problems(given.train_data))
    policies = drift.run(given.output_dir)
    files = {"checkpoint": given.checkpoint / "model.safetensors", "train": given.train_data}
    configuration = resolve(study, cell) | {"probes": study.probes.model_dump(mode="json")}
    record = DriftRecord(
        run=f"{cell}/seed{given.seed}",
        policies={degree: str(path) for degree, path in policies.items()},
        tokens=str(given.output_dir / "tokens.parquet"),
        provenance=clock.provenance(
            configuration, ["acpo.engines.tiny.drift"], {name: file_hash(path) for name, path in files.items()}
        ),
    )
    write_json(given.output_dir / "drift.json", record)


if __name__ == "__main__":
    run(main)
