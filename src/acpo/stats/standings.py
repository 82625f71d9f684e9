"""Methods over many configurations: average ranks and performance profiles of a study."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from acpo.cells import Cell
from acpo.config import Study
from acpo.stats.aggregate import interquartile_mean, performance_profile, stratified_resamples
from acpo.stats.bootstrap import percentile_interval
from acpo.stats.ranks import critical_difference, friedman, ranks
from acpo.stats.raw import Tally
from acpo.stats.records import Interval, MethodRank, Profile, Ranking

THRESHOLDS = np.linspace(0, 1, 101)


@dataclass(frozen=True)
class Configuration:
    """What methods are ranked on: one benchmark of one suite in one regime."""

    suite: str
    benchmark: str
    regime: str

    def __str__(self) -> str:
        return f"{self.suite} {self.benchmark} {self.regime}"


Standing = Mapping[tuple[Cell, str], Tally]
Replicates = Mapping[tuple[Cell, str], np.ndarray]


def configurations(study: Study, standing: Standing) -> tuple[list[Configuration], list[Configuration]]:
    """Split the grid's configurations into those where every method has a result and the others."""
    grid = study.grid
    every = [Configuration(s, b, r) for s in grid.suites for b in study.suites[s].benchmarks for r in grid.regimes]
    whole = [c for c in every if all((Cell(c.suite, m, c.regime), c.benchmark) in standing for m in grid.methods)]
    return whole, [c for c in every if c not in whole]


def rank_methods(study: Study, checkpoint: str, standing: Standing, replicates: Replicates) -> Ranking | None:
    """Rank the grid's methods; None where no configuration has a result of every method.

    Args:
        study: The study.
        checkpoint: Which kind of checkpoint.
        standing: Verdicts by cell and benchmark, at that checkpoint.
        replicates: Bootstrap replicates of their means.
    """
    whole, left_out = configurations(study, standing)
    methods = study.grid.methods
    if not whole or len(methods) < 2:
        return None
    keys = [[(Cell(c.suite, m, c.regime), c.benchmark) for m in methods] for c in whole]
    scores = np.array([[standing[key].mean for key in row] for row in keys])
    placed = ranks(scores, study.statistics.ties)
    # [configurations, methods, resamples] -> ranks of every resample -> [resamples, methods]
    drawn = np.array([[replicates[key] for key in row] for row in keys]).transpose(2, 0, 1)
    averages = ranks(drawn, study.statistics.ties).mean(1)
    test = friedman(scores)
    alpha = study.statistics.alpha
    return Ranking(
        checkpoint=checkpoint,
        ties=study.statistics.ties,
        configurations=[str(c) for c in whole],
        left_out=[str(c) for c in left_out],
        methods=[
            MethodRank(
                method=method,
                average=float(placed[:, index].mean()),
                interval=percentile_interval(averages[:, index], alpha),
                first_places=int((placed[:, index] == 1).sum()),
                second_places=int(((placed[:, index] > 1) & (placed[:, index] <= 2)).sum()),
            )
            for index, method in enumerate(methods)
        ],
        friedman=test and test.statistic,
        friedman_df=test and test.df,
        friedman_p=test and test.p,
        critical_difference=critical_difference(len(methods), len(whole), alpha) if test else None,
    )


def profile_methods(study: Study, checkpoint: str, standing: Standing, rng: np.random.Generator) -> list[Profile]:
    """Profile every method of the grid over the configurations that all of them have.

    A training seed takes part where a method has it in all of them.
    """
    whole, _ = configurations(study, standing)
    profiles = []
    for method in study.grid.methods if whole else ():
        found = [standing[Cell(c.suite, method, c.regime), c.benchmark] for c in whole]
        seeds = sorted(set.intersection(*(set(item.seeds) for item in found)))
        if seeds:
            profiles.append(_profile(study, checkpoint, method, _runs(found, seeds), rng))
    return profiles


def _runs(found: Sequence[Tally], seeds: Sequence[int]) -> np.ndarray:
    """Arrange scores as [runs, configurations]."""
    return np.array([[item.question_means[item.seeds.index(seed)].mean() for item in found] for seed in seeds])


def _profile(study: Study, checkpoint: str, method: str, runs: np.ndarray, rng: np.random.Generator) -> Profile:
    intervals: list[Interval] | None = None
    iqm_interval = None
    alpha = study.statistics.alpha
    if len(runs) > 1:
        drawn = stratified_resamples(runs, study.statistics.resamples, rng)
        iqm_interval = percentile_interval(interquartile_mean(drawn), alpha)
        intervals = [percentile_interval(column, alpha) for column in performance_profile(drawn, THRESHOLDS).T]
    return Profile(
        checkpoint=checkpoint,
        method=method,
        runs=len(runs),
        configurations=runs.shape[1],
        iqm=float(interquartile_mean(runs.ravel())),
        iqm_interval=iqm_interval,
        thresholds=[round(float(threshold), 2) for threshold in THRESHOLDS],
        above=performance_profile(runs.ravel(), THRESHOLDS).tolist(),
        above_intervals=intervals,
    )
