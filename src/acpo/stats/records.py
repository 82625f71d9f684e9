"""The schemas of `results/statistics/statistics.json`. Accuracies and their differences are fractions of 1."""

from typing import Any, Literal

from acpo.results import Record

Scope = Literal["algorithm", "checkpoints"]
CHECKPOINTS_ONLY = "no inference about the algorithm, only about these checkpoints"


class Interval(Record):
    """An interval that covers 1 - alpha."""

    low: float
    high: float


class Welch(Record):
    """Paper mode: Welch's one-tailed t-test (Eq. 60) on the repeat-means of one checkpoint per method.

    `t`, `df` and `p` are None only where neither side has any spread: the test is then undefined.
    """

    treatment_seed: int
    baseline_seed: int
    treatment_mean: float
    baseline_mean: float
    treatment_sd: float
    baseline_sd: float
    treatment_n: int
    baseline_n: int
    t: float | None
    df: float | None
    p: float | None


class Inference(Record):
    """Inference mode: paired by question, over training seeds where both sides have several.

    `standard_error`, `df`, `t`, `p` (two-sided) and `interval` are about what `scope` says; of the two estimates of
    `acpo.stats.crossed` the test is by the one with the larger p, the interval by the wider one. `permutation_p` flips
    the signs of the questions' differences: it is about these checkpoints whatever the scope. `t` and `interval` are
    None where the difference has no spread.
    """

    scope: Scope
    note: str | None
    treatment_seeds: list[int]
    baseline_seeds: list[int]
    paired_seeds: bool
    questions: int
    k: int
    difference: float
    standard_error: float
    df: float
    t: float | None
    p: float
    permutation_p: float
    interval: Interval | None
    cliffs_delta: float
    probability_of_improvement: float


class Adjusted(Record):
    """A hypothesis's p within its family: Holm (family-wise error) and Benjamini-Hochberg (false discoveries)."""

    holm: float
    bh: float


class ComparisonResult(Record):
    """A treatment against a baseline on one benchmark, at one kind of checkpoint, in both modes.

    `paper` has one test for each training seed of the treatment, against the baseline's same seed (or its only one).
    `adjusted` is by family. `base` has no `best` checkpoint: its `last` stands in.
    """

    suite: str
    regime: str
    benchmark: str
    checkpoint: str
    treatment: str
    baseline: str
    treatment_cell: str
    baseline_cell: str
    treatment_mean: float
    baseline_mean: float
    paper: list[Welch]
    inference: Inference
    adjusted: dict[str, Adjusted]


class FamilyResult(Record):
    """What was corrected together. A hypothesis that could not be tested counts in `hypotheses`, as p = 1."""

    label: str
    checkpoint: str
    hypotheses: int
    tested: int
    rejected_holm: int
    rejected_bh: int
    untested: list[str]
    outside_grid: list[str]


class Components(Record):
    """Variance of one verdict by its source, unbiased (so an estimate of little may be below 0).

    `seed` and `seed_by_question` are None with one training seed.
    """

    seed: float | None
    question: float | None
    seed_by_question: float | None
    sample: float | None


class CellScore(Record):
    """A cell on one benchmark at one kind of checkpoint, over its training seeds.

    `mean` is `right / denominator`, checked. `interval` and `standard_error` are about what `scope` says.
    """

    cell: str
    suite: str
    method: str
    regime: str | None
    benchmark: str
    checkpoint: str
    seeds: list[int]
    expected_seeds: int
    questions: int
    k: int
    right: int
    denominator: int
    mean: float
    scope: Scope
    standard_error: float
    df: float
    interval: Interval | None
    components: Components
    majority_at_k: dict[int, float]
    truncation_rate: float
    extraction_failure_rate: float
    grader_version: str


class MethodRank(Record):
    """A method's ranks over configurations; 1 is best. `interval` is of the hierarchical bootstrap."""

    method: str
    average: float
    interval: Interval
    first_places: int
    second_places: int


class Ranking(Record):
    """Methods ranked on every configuration (suite, benchmark, regime) in which all of them have a result.

    Friedman's test and Nemenyi's critical difference use average ranks of ties whatever `ties` is; they are None with
    fewer than three methods or two configurations.
    """

    checkpoint: str
    ties: str
    configurations: list[str]
    left_out: list[str]
    methods: list[MethodRank]
    friedman: float | None
    friedman_df: int | None
    friedman_p: float | None
    critical_difference: float | None


class Profile(Record):
    """A method over all configurations and training seeds: interquartile mean and performance profile.

    `above[i]` is the fraction of runs that score more than `thresholds[i]`. Intervals are of the bootstrap
    stratified by configuration; None with one training seed.
    """

    checkpoint: str
    method: str
    runs: int
    configurations: int
    iqm: float
    iqm_interval: Interval | None
    thresholds: list[float]
    above: list[float]
    above_intervals: list[Interval] | None


class Detectable(Record):
    """The smallest difference that a comparison of some size finds with the configured power.

    With one seed it is about checkpoints; with more, about the algorithm.
    """

    suite: str
    regime: str
    benchmark: str
    checkpoint: str
    treatment: str
    baseline: str
    seeds: int
    questions: int
    k: int
    difference: float


class StatisticsResult(Record):
    """`results/statistics/statistics.json`."""

    schema_version: Literal[1] = 1
    settings: dict[str, Any]
    cells: list[CellScore]
    comparisons: list[ComparisonResult]
    families: dict[str, list[FamilyResult]]
    rankings: list[Ranking]
    profiles: list[Profile]
    detectable: list[Detectable]
    missing: list[str]
