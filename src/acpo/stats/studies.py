"""What changed between two results folders: configuration, code, data, and numbers beyond noise."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from acpo.cells import Cell
from acpo.results import VERDICT_SCHEMA, CellResult, Provenance, Record, RunRecord
from acpo.stats.comparison import difference_groups
from acpo.stats.crossed import crossed_mean
from acpo.stats.multiplicity import adjust
from acpo.stats.raw import Tally, tally
from acpo.store import StoreError, read_json, read_table

Verdict = Literal["same", "within noise", "beyond noise", "checkpoints differ", "noise unknown"]
ABSENT = "(absent)"


class Change(Record):
    """Something that differs, in the cells named; `what` is a path such as `training.learning_rate`."""

    kind: Literal["configuration", "code", "data", "package", "environment"]
    what: str
    before: str
    after: str
    cells: list[str]


class NumberChange(Record):
    """A cell's mean accuracy in both folders, as fractions of 1.

    `p` is of the difference over training seeds, paired by question; None with one seed, which says nothing about the
    algorithm. `checkpoint_p` is of these checkpoints. Both are two-sided, and None where a folder has no verdict stores
    or asked other questions. The verdict goes by both, each corrected by Holm over all numbers that are not the same.
    """

    cell: str
    benchmark: str
    checkpoint: str
    before: float
    after: float
    difference: float
    p: float | None
    checkpoint_p: float | None
    verdict: Verdict


class StudyDifference(Record):
    """What two results folders have in common, and what not."""

    only_before: list[str]
    only_after: list[str]
    common: list[str]
    changes: list[Change]
    numbers: list[NumberChange]


def compare_studies(before: Path, after: Path, alpha: float) -> StudyDifference:
    """Compare two results folders, cell by cell.

    Args:
        before: A results folder, with `<cell>.json` and `runs/`.
        after: Another.
        alpha: Level, over all numbers that are not the same (Holm).

    Raises:
        StoreError: a folder has no cell, or a file is damaged.
    """
    ours, theirs = _cells(before), _cells(after)
    common = [name for name in ours if name in theirs]
    tested = [test for name in common for test in _number_changes(before, after, ours[name], theirs[name])]
    return StudyDifference(
        only_before=[name for name in ours if name not in theirs],
        only_after=[name for name in theirs if name not in ours],
        common=common,
        changes=_gather(
            (name, *change) for name in common for change in _cell_changes(before, after, ours, theirs, name)
        ),
        numbers=_judge(tested, alpha),
    )


def _cells(folder: Path) -> dict[str, CellResult]:
    found = {path.stem: read_json(path, CellResult) for path in sorted(folder.glob("*.json"))}
    if not found:
        raise StoreError(f"{folder}: no cell's result (<cell>.json) in it: name a results folder")
    return found


def _cell_changes(
    before: Path, after: Path, ours: dict[str, CellResult], theirs: dict[str, CellResult], name: str
) -> Iterator[tuple[str, str, str, str]]:
    """Yield (kind, what, before, after) of a cell: of its scoring, then of its first training run."""
    yield from _origin_changes(ours[name].provenance, theirs[name].provenance, "scoring")
    runs = [next(iter(sorted((folder / "runs" / name).glob("seed*/run.json"))), None) for folder in (before, after)]
    if runs[0] and runs[1]:
        first, second = (read_json(run, RunRecord).provenance for run in runs if run)
        yield from _origin_changes(first, second, "training")
        yield from _differing("data", first.data_hashes, second.data_hashes)


def _origin_changes(before: Provenance, after: Provenance, step: str) -> Iterator[tuple[str, str, str, str]]:
    if step == "scoring":
        yield from _differing("configuration", _flat(before.configuration), _flat(after.configuration))
    yield from _differing("code", {step: before.code_hash}, {step: after.code_hash})
    yield from _differing("package", before.packages, after.packages)
    environment = [
        {"python": origin.python, "platform": origin.platform, "device": origin.device, "commit": origin.git_commit}
        for origin in (before, after)
    ]
    yield from _differing("environment", *environment)


def _differing(kind: str, before: dict[str, Any], after: dict[str, Any]) -> Iterator[tuple[str, str, str, str]]:
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


def _gather(found: Iterator[tuple[str, str, str, str, str]]) -> list[Change]:
    """Join equal changes of several cells."""
    cells: dict[tuple[str, str, str, str], list[str]] = {}
    for name, *change in found:
        kind, what, before, after = change
        named = cells.setdefault((kind, what, before, after), [])
        if name not in named:
            named.append(name)
    return [
        Change.model_validate({"kind": kind, "what": what, "before": before, "after": after, "cells": names})
        for (kind, what, before, after), names in cells.items()
    ]


def _number_changes(before: Path, after: Path, ours: CellResult, theirs: CellResult) -> Iterator[NumberChange]:
    stores = [_verdicts(folder, result) for folder, result in ((before, ours), (after, theirs))]
    for benchmark, score in ours.benchmarks.items():
        other = theirs.benchmarks.get(benchmark)
        for checkpoint, kept in score.checkpoints.items():
            if other is None or checkpoint not in other.checkpoints:
                continue
            old, new = kept.avg_at_k, other.checkpoints[checkpoint].avg_at_k
            p, checkpoint_p = _test(ours, stores, benchmark, checkpoint)
            yield NumberChange(
                cell=ours.cell, benchmark=benchmark, checkpoint=checkpoint, before=old, after=new,
                difference=new - old, p=p, checkpoint_p=checkpoint_p, verdict="noise unknown",
            )  # fmt: skip


def _verdicts(folder: Path, result: CellResult) -> pd.DataFrame | None:
    """Read the verdicts of the training seeds that a cell was scored from; None where a store is gone."""
    seeds = {
        seed.seed for score in result.benchmarks.values() for kept in score.checkpoints.values() for seed in kept.seeds
    }
    paths = {seed: folder / "runs" / result.cell / f"seed{seed}" / "verdicts.parquet" for seed in sorted(seeds)}
    if not paths or not all(path.exists() for path in paths.values()):
        return None
    frames = [read_table(path, VERDICT_SCHEMA).assign(cell=result.cell, seed=seed) for seed, path in paths.items()]
    return pd.concat(frames, ignore_index=True)


def _test(
    result: CellResult, stores: list[pd.DataFrame | None], benchmark: str, checkpoint: str
) -> tuple[float | None, float | None]:
    cell = Cell(result.suite, result.method, result.regime)
    items: list[Tally] = [tally(store, cell, benchmark, checkpoint) for store in stores if store is not None]
    if len(items) < 2 or items[0].questions != items[1].questions or items[0].k != items[1].k:
        return None, None
    groups = difference_groups(items[1], items[0])
    found = crossed_mean(groups)
    checkpoints = crossed_mean([group.mean(0, keepdims=True) for group in groups])
    return found.decisive.p if found.algorithm else None, checkpoints.p


def _judge(numbers: list[NumberChange], alpha: float) -> list[NumberChange]:
    """Say which numbers changed beyond noise: of training seeds, or only of the samples of these checkpoints."""
    changed = [item for item in numbers if item.difference != 0]
    seeds = adjust([item.p for item in changed])
    checkpoints = adjust([item.checkpoint_p for item in changed])
    verdicts: dict[int, Verdict] = {}
    for item, over_seeds, over_samples in zip(changed, seeds, checkpoints, strict=True):
        if item.checkpoint_p is None:
            verdicts[id(item)] = "noise unknown"
        elif over_seeds.holm < alpha:
            verdicts[id(item)] = "beyond noise"
        else:
            verdicts[id(item)] = "checkpoints differ" if over_samples.holm < alpha else "within noise"
    return [item.model_copy(update={"verdict": verdicts.get(id(item), "same")}) for item in numbers]
