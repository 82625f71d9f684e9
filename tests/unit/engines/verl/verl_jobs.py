"""Training jobs of suites that verl trains, as the workflow would describe them."""

from pathlib import Path
from typing import Any

from acpo.cells import CellNames
from acpo.config import Study
from acpo.engines import TrainingJob


def verl_job(study: Study, cell: str, root: Path, **changes: Any) -> TrainingJob:
    """Return the job of a cell whose files lie below `root`."""
    parsed = CellNames(study).parse(cell)
    suite = study.suites[parsed.suite]
    content: dict[str, Any] = {
        "study": study, "cell": parsed, "seed": 0, "problems": [], "validation": [],
        "training_file": root / "data" / f"{suite.train_split}.parquet",
        "validation_file": root / "data" / f"{suite.validation.split}.parquet", "data_hashes": {},
        "base_directory": root / "base", "measured": {}, "run_directory": root / "runs" / cell / "seed0",
    }  # fmt: skip
    return TrainingJob(**(content | changes))
