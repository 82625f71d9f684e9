"""A suite's base run where its model is a published one: a link to the fetched files."""

import os
import shutil
from pathlib import Path

from acpo.cells import Cell
from acpo.config import Study
from acpo.data.model_files import ModelManifest, verify_model
from acpo.engines import TrainingJob
from acpo.engines.runs import complete, exclusive
from acpo.errors import ConfigError
from acpo.provenance import Clock, weights_hash
from acpo.results import CheckpointInfo
from acpo.sections import HubModel

CHECKPOINT = "last"


def link_base(study: Study, cell: Cell, model_directory: Path, run_directory: Path) -> None:
    """Verify a fetched model and write the base run that has it as its checkpoint `last`, without copying it.

    Args:
        study: The study.
        cell: The base cell of a suite whose model is published.
        model_directory: Where `acpo.data.model_files.fetch_model` placed it.
        run_directory: Where to; `run.json` is written last and names every file's hash.

    Raises:
        ConfigError: the suite's model is not a published one.
        DataError: the files are not those that were fetched.
    """
    clock, name = Clock(), study.suites[cell.suite].model
    model = study.models[name]
    if not isinstance(model, HubModel):
        raise ConfigError(f"suites.{cell.suite}.model: {name} has no `source: hub`: make_base makes it")
    manifest = verify_model(name, model, model_directory)
    job = TrainingJob(
        study=study, cell=cell, seed=0, problems=[], validation=[], training_file=None, validation_file=None,
        data_hashes=file_hashes(model, manifest), base_directory=None, measured={}, run_directory=run_directory,
    )  # fmt: skip
    with exclusive(run_directory):
        _link(run_directory / CHECKPOINT, model_directory)
        checkpoint = CheckpointInfo(
            path=CHECKPOINT, rollout=0, weights_sha256=weights_hash(model_directory), validation=None
        )
        complete(job, clock, {CHECKPOINT: checkpoint}, 0, 0, 0)


def file_hashes(model: HubModel, manifest: ModelManifest) -> dict[str, str]:
    """Name each file of a model by repository and commit, and say where the configuration pins none."""
    pinned = "" if model.revision else "unpinned "
    origin = f"{pinned}{manifest.repository}@{manifest.commit or 'unknown commit'}"
    return {f"{origin}/{path}": value for path, value in manifest.sha256.items()}


def _link(link: Path, target: Path) -> None:
    """Make or replace a link, relative, so that results can be moved as a whole."""
    if link.is_dir() and not link.is_symlink():
        shutil.rmtree(link)
    temporary = link.with_name(f".{link.name}.tmp")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(os.path.relpath(target, link.parent), target_is_directory=True)
    temporary.replace(link)
