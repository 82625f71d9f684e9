"""Cells as scored from the raw layer, each number checked against its denominator."""

import math
from pathlib import Path

import numpy as np
import pandas as pd

from acpo.cells import cell_seeds
from acpo.config import Study
from acpo.results import CellResult
from acpo.stats.bootstrap import calibrated_interval
from acpo.stats.comparison import estimate_mean, scope_of
from acpo.stats.denominator import check_fraction
from acpo.stats.majority import majority_scores
from acpo.stats.raw import Tally
from acpo.stats.records import CellScore
from acpo.stats.variance import variance_components
from acpo.store import StoreError, read_json


def score(study: Study, item: Tally, rows: pd.DataFrame, replicates: np.ndarray) -> CellScore:
    """Score a cell on one benchmark at one kind of checkpoint.

    Args:
        study: The study.
        item: The cell's verdicts.
        rows: The raw layer's rows that `item` was counted from.
        replicates: Bootstrap replicates of its mean, [resamples].
    """
    found = estimate_mean(item)
    return CellScore(
        cell=str(item.cell),
        suite=item.cell.suite,
        method=item.cell.method,
        regime=item.cell.regime,
        benchmark=item.benchmark,
        checkpoint=item.checkpoint,
        seeds=list(item.seeds),
        expected_seeds=len(cell_seeds(study, item.cell)),
        questions=len(item.questions),
        k=item.k,
        right=int(item.right.sum()),
        denominator=math.prod(item.correct.shape),
        mean=item.mean,
        scope=scope_of(found),
        standard_error=found.standard_error,
        df=found.df,
        interval=calibrated_interval(replicates, found, study.statistics.alpha, lowest=0.0),
        components=variance_components(item.correct),
        majority_at_k=majority_scores(rows, item.k),
        truncation_rate=float((rows["finish_reason"] == "length").mean()),
        extraction_failure_rate=float(rows["extracted"].isna().mean()),
        grader_version=str(rows["grader_version"].iloc[0]),
    )


def check_against_result(item: Tally, results: Path) -> None:
    """Check that the cell's file, from which tables are printed, says what the verdicts say, seed by seed.

    A cell without a file, for want of some training seed, has nothing to check.

    Raises:
        StoreError: a printed score is not the verdicts' count over their number, or there is none.
    """
    path = results / f"{item.cell}.json"
    if not path.exists():
        return
    where = f"{path}: benchmarks.{item.benchmark}.checkpoints.{item.checkpoint}"
    benchmark = read_json(path, CellResult).benchmarks.get(item.benchmark)
    stored = benchmark.checkpoints.get(item.checkpoint) if benchmark else None
    if stored is None:
        raise StoreError(f"{where}: no such score, but there are verdicts. Score the cell again")
    by_seed = dict(zip(item.seeds, item.right, strict=True))
    for seed in stored.seeds:
        right = by_seed.get(seed.seed, np.zeros(0, dtype=int))
        check_fraction(seed.avg_at_k, int(right.sum()), right.size * item.k, f"{where}.seeds[{seed.seed}].avg_at_k")
    check_fraction(stored.avg_at_k, int(item.right.sum()), math.prod(item.correct.shape), f"{where}.avg_at_k")
