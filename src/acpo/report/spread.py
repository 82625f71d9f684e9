"""What a study can find and where its noise comes from, as printed: detectable differences, variance of a verdict."""

from collections.abc import Iterator
from dataclasses import dataclass

from acpo.config import Study
from acpo.report.inference import Shown, benchmark_label, label_of, method_label
from acpo.report.table import MISSING, percent
from acpo.report.text_table import TextTable
from acpo.stats.power import SEED_COUNTS
from acpo.stats.records import Components, Detectable, StatisticsResult

SOURCES = ("Seed", "Question", "Seed by question", "Sample")
MEANING = (
    "Variance of one verdict (0 or 1) by its source: which training seed, which question, how that seed does on that "
    "question, which of the k samples. Unbiased, so a small one may be below 0; a dash where one training seed cannot "
    "tell them apart."
)
"""What the variance components say."""


@dataclass(frozen=True)
class DetectableRow:
    """The least differences that one comparison finds, in points, by training seeds a method (`SEED_COUNTS`)."""

    suite: str
    benchmark: str
    regime: str
    checkpoint: str
    treatment: str
    baseline: str
    differences: tuple[Shown, ...]


@dataclass(frozen=True)
class VarianceRow:
    """A cell's variance of a verdict by its `SOURCES`."""

    cell: str
    benchmark: str
    checkpoint: str
    components: tuple[Shown, ...]


def detectable_rows(study: Study, statistics: StatisticsResult) -> list[DetectableRow]:
    """Print the minimum detectable differences, one row a comparison and kind of checkpoint."""
    found: dict[tuple[str, ...], dict[int, Detectable]] = {}
    for item in statistics.detectable:
        key = (item.suite, item.regime, item.benchmark, item.checkpoint, item.treatment, item.baseline)
        found.setdefault(key, {})[item.seeds] = item
    return [
        DetectableRow(
            suite=label_of(study.suites, suite),
            benchmark=benchmark_label(study, suite, benchmark),
            regime=label_of(study.regimes, regime),
            checkpoint=checkpoint,
            treatment=method_label(study, treatment),
            baseline=method_label(study, baseline),
            differences=tuple(_difference(by_seeds.get(seeds)) for seeds in SEED_COUNTS),
        )
        for (suite, regime, benchmark, checkpoint, treatment, baseline), by_seeds in found.items()
    ]


def _difference(item: Detectable | None) -> Shown:
    return Shown(MISSING, None) if item is None else Shown(percent(item.difference), item.difference)


def variance_rows(study: Study, statistics: StatisticsResult) -> list[VarianceRow]:
    """Print the variance of a verdict of every cell, benchmark and kind of checkpoint."""
    return [
        VarianceRow(
            cell=item.cell,
            benchmark=benchmark_label(study, item.suite, item.benchmark),
            checkpoint=item.checkpoint,
            components=tuple(_components(item.components)),
        )
        for item in statistics.cells
    ]


def _components(found: Components) -> Iterator[Shown]:
    for value in (found.seed, found.question, found.seed_by_question, found.sample):
        yield Shown(MISSING if value is None else f"{value:.5f}".replace("-", "−"), value)


def variance_table(study: Study, statistics: StatisticsResult) -> TextTable:
    """Return the variance of verdicts as a table that may break over pages."""
    rows = [
        (row.cell, row.benchmark, row.checkpoint, *(shown.text for shown in row.components))
        for row in variance_rows(study, statistics)
    ]
    columns = ("Cell", "Benchmark", "Checkpoint", *SOURCES)
    return TextTable("Variance", "of a verdict, by source", columns, (0.22, 0.17, 0.11, 0.08, 0.08, 0.08, 0.08), rows)
