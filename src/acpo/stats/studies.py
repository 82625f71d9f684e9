"""What changed between two results folders: configuration, code, data, and numbers beyond noise."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic import RootModel

from acpo.cells import Cell
from acpo.results import VERDICT_SCHEMA, CellResult, Record
from acpo.stats.changes import Change, gather, paired_runs, scoring_changes, seeds_of, training_changes
from acpo.stats.comparison import difference_groups
from acpo.stats.crossed import crossed_mean
from acpo.stats.multiplicity import adjust
from acpo.stats.raw import tally
from acpo.stats.scores import check_against_result
from acpo.store import StoreError, read_json, read_table

Verdict = Literal["same", "within noise", "beyond noise", "checkpoints differ", "noise unknown"]


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
    """What two results folders have in common, and what not.

    `only_before` and `only_after` name cells, and of cells in both `<cell>/<benchmark>/<checkpoint>` and
    `<cell>/seed<N>`. `without_run` names training seeds in both whose `run.json` either folder lacks: their training
    could not be compared.
    """

    only_before: list[str]
    only_after: list[str]
    common: list[str]
    without_run: list[str]
    changes: list[Change]
    numbers: list[NumberChange]


def compare_studies(before: Path, after: Path, alpha: float) -> StudyDifference:
    """Compare two results folders, cell by cell.

    Args:
        before: A results folder, with `<cell>.json` and `runs/`.
        after: Another.
        alpha: Level, over all numbers that are not the same (Holm).

    Raises:
        StoreError: a folder has no cell, a file is damaged, or a score is not its verdicts' count over their number.
    """
    ours, theirs = read_cells(before), read_cells(after)
    common = [name for name in ours if name in theirs]
    runs = {name: paired_runs(before, after, ours[name], theirs[name]) for name in common}
    changes = [
        found
        for name in common
        for found in (*scoring_changes(ours[name], theirs[name]), *training_changes(name, runs[name]))
    ]
    tested = [test for name in common for test in _number_changes(before, after, ours[name], theirs[name])]
    return StudyDifference(
        only_before=_lacking(ours, theirs),
        only_after=_lacking(theirs, ours),
        common=common,
        without_run=[f"{name}/seed{seed}" for name in common for seed, pair in runs[name].items() if pair is None],
        changes=gather(changes),
        numbers=_judge(tested, alpha),
    )


def read_cells(folder: Path) -> dict[str, CellResult]:
    """Read the cells of a results folder by name; other files in it, such as `timing.json`, are left alone.

    Raises:
        StoreError: there is no cell, or a file is damaged.
    """
    found = {}
    for path in sorted(folder.glob("*.json")):
        content = read_json(path, RootModel[Any]).root
        # A damaged cell must not pass for something else: one of its own fields is enough.
        if not isinstance(content, dict) or not {"cell", "benchmarks"} & content.keys():
            continue
        cell = found[path.stem] = read_json(path, CellResult)
        if cell.cell != path.stem:
            raise StoreError(f"{path}: cell: it is {cell.cell}'s result. Give the file that name, or move it away")
    if not found:
        raise StoreError(f"{folder}: no cell's result (<cell>.json) in it: name a results folder")
    return found


def _lacking(have: dict[str, CellResult], lack: dict[str, CellResult]) -> list[str]:
    """Name what one folder has and the other has not: cells, then scores and training seeds of cells in both."""
    parts = {name: [_parts(cells[name]) for cells in (have, lack)] for name in have if name in lack}
    return [name for name in have if name not in lack] + [
        f"{name}/{part}" for name, (ours, theirs) in parts.items() for part in ours if part not in theirs
    ]


def _parts(cell: CellResult) -> list[str]:
    scores = [f"{name}/{kind}" for name, score in cell.benchmarks.items() for kind in score.checkpoints]
    return scores + [f"seed{seed}" for seed in seeds_of(cell)]


def _number_changes(before: Path, after: Path, ours: CellResult, theirs: CellResult) -> Iterator[NumberChange]:
    stores = [(folder, _verdicts(folder, result)) for folder, result in ((before, ours), (after, theirs))]
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
    paths = {seed: folder / "runs" / result.cell / f"seed{seed}" / "verdicts.parquet" for seed in seeds_of(result)}
    if not paths or not all(path.exists() for path in paths.values()):
        return None
    frames = [read_table(path, VERDICT_SCHEMA).assign(cell=result.cell, seed=seed) for seed, path in paths.items()]
    return pd.concat(frames, ignore_index=True)


def _test(
    result: CellResult, stores: list[tuple[Path, pd.DataFrame | None]], benchmark: str, checkpoint: str
) -> tuple[float | None, float | None]:
    cell = Cell(result.suite, result.method, result.regime)
    items = []
    for folder, store in stores:
        if store is not None:
            items.append(tally(store, cell, benchmark, checkpoint))
            # What is tested must be what is printed.
            check_against_result(items[-1], folder)
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
