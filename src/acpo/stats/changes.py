"""What changed between two results folders in what a cell comes from: configuration, code, data, packages."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from acpo.results import CellResult, Provenance, Record, RunRecord
from acpo.store import read_json

ABSENT = "(absent)"
Runs = tuple[RunRecord, RunRecord]
# Kind, what, before, after: as in `Change`.
Found = tuple[str, str, str, str]


class Change(Record):
    """Something that differs; `what` is a path such as `training.learning_rate`.

    `cells` names where: a cell, or `<cell>/seed<N>` where only some of the cell's training runs differ so.
    """

    kind: Literal["configuration", "code", "data", "package", "environment"]
    what: str
    before: str
    after: str
    cells: list[str]


def seeds_of(cell: CellResult) -> list[int]:
    """Return the training seeds that a cell was scored from."""
    kept = [kept for score in cell.benchmarks.values() for kept in score.checkpoints.values()]
    return sorted({seed.seed for item in kept for seed in item.seeds})


def paired_runs(before: Path, after: Path, ours: CellResult, theirs: CellResult) -> dict[int, Runs | None]:
    """Read the training runs of a cell by seed, of the seeds in both folders; None where either run is gone.

    Args:
        before: A results folder.
        after: Another.
        ours: The cell in the first.
        theirs: The same cell in the second.

    Raises:
        StoreError: a `run.json` is damaged.
    """
    runs: dict[int, Runs | None] = {}
    for seed in seeds_of(ours):
        if seed in seeds_of(theirs):
            first, second = (folder / "runs" / ours.cell / f"seed{seed}" / "run.json" for folder in (before, after))
            both = first.exists() and second.exists()
            runs[seed] = (read_json(first, RunRecord), read_json(second, RunRecord)) if both else None
    return runs


def scoring_changes(ours: CellResult, theirs: CellResult) -> Iterator[tuple[str, Found]]:
    """Yield where, and (kind, what, before, after), of a cell's scoring."""
    first, second = ours.provenance, theirs.provenance
    graders = [
        {
            f"grader.{name}": cell.benchmarks[name].grader_version
            for name in ours.benchmarks
            if name in theirs.benchmarks
        }
        for cell in (ours, theirs)
    ]
    for found in (
        *_differing("configuration", _flat(first.configuration), _flat(second.configuration)),
        *_differing("code", *graders),
        *_origin_changes(first, second, "scoring"),
    ):
        yield ours.cell, found


def training_changes(name: str, runs: dict[int, Runs | None]) -> Iterator[tuple[str, Found]]:
    """Yield where, and (kind, what, before, after), of a cell's training: the cell, or those of its seeds."""
    seeds: dict[Found, list[int]] = {}
    compared = {seed: [run.provenance for run in pair] for seed, pair in runs.items() if pair}
    for seed, (first, second) in compared.items():
        for found in (*_origin_changes(first, second, "training"), *_training_inputs(first, second)):
            seeds.setdefault(found, []).append(seed)
    for found, which in seeds.items():
        for where in [name] if len(which) == len(runs) else [f"{name}/seed{seed}" for seed in which]:
            yield where, found


def _training_inputs(before: Provenance, after: Provenance) -> Iterator[Found]:
    # Named as in the cell's own provenance, which has it once for all seeds.
    yield from _differing(
        "configuration", _flat(before.configuration, "training"), _flat(after.configuration, "training")
    )
    yield from _differing("data", before.data_hashes, after.data_hashes)


def _origin_changes(before: Provenance, after: Provenance, step: str) -> Iterator[Found]:
    yield from _differing("code", {step: before.code_hash}, {step: after.code_hash})
    yield from _differing("package", before.packages, after.packages)
    environment = [
        {"python": origin.python, "platform": origin.platform, "device": origin.device, "commit": origin.git_commit}
        for origin in (before, after)
    ]
    yield from _differing("environment", *environment)


def _differing(kind: str, before: dict[str, Any], after: dict[str, Any]) -> Iterator[Found]:
    for key in dict.fromkeys((*before, *after)):
        values = str(before.get(key, ABSENT)), str(after.get(key, ABSENT))
        if values[0] != values[1]:
            yield kind, key, *values


def _flat(value: Any, name: str = "") -> dict[str, Any]:
    if not isinstance(value, dict) or not value:
        return {name: value}
    return {
        key: leaf for part, inner in value.items() for key, leaf in _flat(inner, f"{name}.{part}".lstrip(".")).items()
    }


def gather(found: Sequence[tuple[str, Found]]) -> list[Change]:
    """Join equal changes of several cells; a cell's own says it for its training seeds too."""
    places: dict[Found, list[str]] = {}
    for where, change in found:
        named = places.setdefault(change, [])
        if not {where, where.split("/")[0]} & {*named}:
            named.append(where)
    return [
        Change.model_validate({"kind": kind, "what": what, "before": before, "after": after, "cells": names})
        for (kind, what, before, after), names in places.items()
    ]
