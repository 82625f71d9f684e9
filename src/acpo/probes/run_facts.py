"""What a token store does not say: clip rule, vocabulary and metrics, from options or from the run that wrote it."""

import json
from dataclasses import dataclass
from pathlib import Path

from acpo.cells import CellNames
from acpo.config import Study
from acpo.errors import ConfigError
from acpo.methods import method_objective
from acpo.probes.clipping import ClipRule, fixed_widths, objective_rule
from acpo.results import RunRecord
from acpo.store import StoreError, read_json


@dataclass(frozen=True)
class Facts:
    """Where a probe's inputs are, and what is known beside them; None where it is not.

    `modules` are those whose code decides what was clipped.
    """

    name: str
    tokens: list[Path]
    rule: ClipRule | None
    vocabulary: int | None
    metrics: Path | None
    modules: list[str]


def given_facts(clip_low: float | None, clip_high: float | None, vocabulary: int | None, metrics: Path | None) -> Facts:
    """Take the facts of a foreign store from options.

    Raises:
        ConfigError: one clip width without the other, or a value out of range.
    """
    if (clip_low is None) != (clip_high is None):
        raise ConfigError("--clip-low and --clip-high belong together")
    if vocabulary is not None and vocabulary < 2:
        raise ConfigError(f"--vocabulary: expected at least 2, got {vocabulary}")
    rule = None
    if clip_low is not None and clip_high is not None:
        if not (clip_low >= 0 and clip_high >= 0):
            raise ConfigError(f"--clip-low, --clip-high: expected widths of at least 0, got {clip_low} and {clip_high}")
        rule = fixed_widths(clip_low, clip_high)
    return Facts("token store", [], rule, vocabulary, metrics, ["acpo.probes.clipping"])


def run_facts(study: Study, name: str, directory: Path) -> Facts:
    """Take the facts of a finished run from its directory and its cell's method.

    Args:
        study: Says what the method is.
        name: The cell.
        directory: With `run.json`, `tokens/`, `metrics.parquet`, `last/config.json`.

    Raises:
        ConfigError: no such cell, or the base model, which has no updates.
        StoreError: the run is unfinished or damaged, or wrote no token store.
    """
    cell = CellNames(study).parse(name)
    if cell.is_base:
        raise ConfigError(f"{cell}: the base model has no updates to probe")
    record = read_json(directory / "run.json", RunRecord)
    tokens = sorted((directory / "tokens").glob("*.parquet"))
    if not tokens:
        raise StoreError(
            f"{directory}/tokens: no token store. Name rollouts that the run reaches in "
            f"suites.{cell.suite}.token_store.rollouts, and train again"
        )
    objective = method_objective(study, cell.method, record.measured_parameters)
    rule = objective_rule(objective, cell.method)
    modules = ["acpo.probes.clipping", f"acpo.objectives.{study.methods[cell.method].objective}"]
    return Facts(
        f"{cell}/seed{record.seed}", tokens, rule, _vocabulary(directory / "last/config.json"),
        directory / "metrics.parquet", modules,
    )  # fmt: skip


def _vocabulary(path: Path) -> int:
    try:
        return int(json.loads(path.read_text(encoding="utf-8"))["vocab_size"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path}: cannot read vocab_size ({error!r}): is the checkpoint whole?") from error
