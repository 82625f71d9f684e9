"""The study's statistics as printed rows: scores with intervals, comparisons in both modes, families and ranks."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from acpo.cells import BASE
from acpo.config import Study
from acpo.report.quantities import exact_p
from acpo.report.table import MISSING, percent
from acpo.stats.records import ComparisonResult, FamilyResult, Interval, Ranking, StatisticsResult, Welch

SMALLEST_P = 0.001


@dataclass(frozen=True)
class Shown:
    """A number as printed, and unrounded to sort by (None where there is none)."""

    text: str
    value: float | None


@dataclass(frozen=True)
class ScoreInterval:
    """A cell on one benchmark at one kind of checkpoint: its interval in percent, and what that is about."""

    interval: str
    scope: str


@dataclass(frozen=True)
class ComparisonRow:
    """A comparison in both modes; numbers are in points where they are differences."""

    suite: str
    benchmark: str
    regime: str
    checkpoint: str
    treatment: str
    baseline: str
    treatment_cell: str
    baseline_cell: str
    difference: Shown
    interval: str
    p: Shown
    adjusted: tuple[tuple[str, Shown, Shown], ...]
    permutation: Shown
    cliffs_delta: Shown
    improvement: Shown
    scope: str
    paper: tuple[str, ...]
    paper_p: float | None


@dataclass(frozen=True)
class RankRow:
    """A method's average rank over configurations."""

    checkpoint: str
    method: str
    average: Shown
    interval: str
    first: int
    second: int
    configurations: int


def score_intervals(statistics: StatisticsResult | None) -> dict[tuple[str, str, str], ScoreInterval]:
    """Return intervals by cell, benchmark and kind of checkpoint; none without statistics."""
    return {
        (item.cell, item.benchmark, item.checkpoint): ScoreInterval(percent_interval(item.interval), item.scope)
        for item in (statistics.cells if statistics else [])
    }


def comparison_rows(study: Study, statistics: StatisticsResult) -> list[ComparisonRow]:
    """Print every declared comparison."""
    return [_comparison(study, item) for item in statistics.comparisons]


def _comparison(study: Study, item: ComparisonResult) -> ComparisonRow:
    found = item.inference
    tested = [test.p for test in item.paper if test.p is not None]
    return ComparisonRow(
        suite=label_of(study.suites, item.suite),
        benchmark=benchmark_label(study, item.suite, item.benchmark),
        regime=label_of(study.regimes, item.regime),
        checkpoint=item.checkpoint,
        treatment=method_label(study, item.treatment),
        baseline=method_label(study, item.baseline),
        treatment_cell=item.treatment_cell,
        baseline_cell=item.baseline_cell,
        difference=Shown(points(found.difference), found.difference),
        interval=points_interval(found.interval),
        p=p_value(found.p),
        adjusted=tuple(
            (label_of(study.statistics.families, name), p_value(values.holm), p_value(values.bh))
            for name, values in item.adjusted.items()
        ),
        permutation=p_value(found.permutation_p),
        cliffs_delta=Shown(f"{found.cliffs_delta:+.3f}", found.cliffs_delta),
        improvement=Shown(f"{found.probability_of_improvement:.2f}", found.probability_of_improvement),
        scope=found.scope,
        paper=tuple(_paper(test) for test in item.paper),
        paper_p=max(tested, default=None),
    )


def _paper(test: Welch) -> str:
    """Print Eq. 60 for one training seed, its p as Table 10 does: exact."""
    if test.t is None or test.df is None or test.p is None:
        return f"seed {test.treatment_seed}: no spread"
    p = exact_p(test.p)
    return f"seed {test.treatment_seed}: t({test.df:.1f}) = {test.t:.2f}, p {p if p.startswith('<') else f'= {p}'}"


def family_rows(statistics: StatisticsResult) -> list[FamilyResult]:
    """List what was corrected together, at each kind of checkpoint."""
    return [item for items in statistics.families.values() for item in items]


def rank_rows(study: Study, statistics: StatisticsResult) -> list[RankRow]:
    """Print the average ranks, best first."""
    return [row for ranking in statistics.rankings for row in _ranks(study, ranking)]


def _ranks(study: Study, ranking: Ranking) -> list[RankRow]:
    return [
        RankRow(
            checkpoint=ranking.checkpoint,
            method=method_label(study, item.method),
            average=Shown(f"{item.average:.2f}", item.average),
            interval=f"{item.interval.low:.2f} to {item.interval.high:.2f}",
            first=item.first_places,
            second=item.second_places,
            configurations=len(ranking.configurations),
        )
        for item in sorted(ranking.methods, key=lambda item: item.average)
    ]


def label_of(defined: Mapping[str, Any], name: str) -> str:
    """Return what the study calls something; statistics of an earlier study may name what this one has not."""
    return str(defined[name].label) if name in defined else name


def benchmark_label(study: Study, suite: str, benchmark: str) -> str:
    """Return a benchmark's name in print."""
    return label_of(study.suites[suite].benchmarks, benchmark) if suite in study.suites else benchmark


def method_label(study: Study, method: str) -> str:
    """Return a method's name in print, `base` included."""
    return "Base Model" if method == BASE else label_of(study.methods, method)


def points(difference: float) -> str:
    """Print a difference of fractions in points, always with its sign."""
    printed = percent(difference)
    return printed if printed.startswith("-") else f"+{printed}"


def points_interval(interval: Interval | None) -> str:
    """Print an interval of a difference."""
    return MISSING if interval is None else f"{points(interval.low)} to {points(interval.high)}"


def percent_interval(interval: Interval | None) -> str:
    """Print an interval of a score."""
    return MISSING if interval is None else f"{percent(interval.low)} to {percent(interval.high)}"


def p_value(p: float) -> Shown:
    """Print a p; a very small one is an extrapolation and only said to be small (docs/statistics.md)."""
    return Shown(f"< {SMALLEST_P}" if p < SMALLEST_P else f"{p:.3f}", p)
