"""The schemas of what the pipeline keeps: runs, samples, verdicts, cells (see `docs/results.md`)."""

import math
import statistics
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

import pandas as pd
import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, NonNegativeInt, PositiveInt, model_validator
from pydantic_core import PydanticCustomError

SCHEMA_VERSION = 1
TOLERANCE = 1e-9
"""How far sums of the same floats in another order may be apart: far more than they are, far less than is printed."""
Rate = Annotated[float, Field(ge=0, le=1)]


class Record(BaseModel):
    """A stored record: unknown fields are refused, so that an old reader never guesses."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Provenance(Record):
    """Where a result comes from: enough to make it again."""

    configuration: dict[str, Any]
    configuration_hash: str
    code_hash: str
    data_hashes: dict[str, str]
    git_commit: str
    git_dirty: bool
    packages: dict[str, str]
    python: str
    platform: str
    device: str
    wall_seconds: float
    peak_memory_mb: float


class CheckpointInfo(Record):
    """A saved model of a run. `rollout` is how many rollouts it has been trained on."""

    path: str
    rollout: int
    weights_sha256: str
    validation: float | None


class RunRecord(Record):
    """`run.json`: the completion file of one training run, written last."""

    schema_version: Literal[1] = 1
    cell: str
    seed: int
    rollouts: int
    updates: int
    response_tokens: int
    checkpoints: dict[str, CheckpointInfo]
    measured_parameters: dict[str, float]
    provenance: Provenance


class SeedScore(Record):
    """One training seed's checkpoint on one benchmark. Rates are fractions of all samples.

    `standard_error` is over questions (clustered: each question's mean is one observation).
    `undecided` counts verdicts whose grader stopped at a limit or failed; they count as wrong.
    `repeat_means` are the k accuracies of sample 1, 2, ... k of every question: the paper's repeats.

    Refused where avg@k is not the mean of the repeats and pass@1, or pass@k falls as k rises.
    """

    seed: int
    rollout: int
    avg_at_k: Rate
    standard_error: NonNegativeFloat
    pass_at_k: dict[PositiveInt, Rate]
    repeat_means: Annotated[list[Rate], Field(min_length=1)]
    truncation_rate: Rate
    extraction_rate: Rate
    mean_response_tokens: NonNegativeFloat
    undecided: NonNegativeInt

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        _check_equal("avg_at_k", self.avg_at_k, "the mean of repeat_means", statistics.fmean(self.repeat_means))
        _check_equal("avg_at_k", self.avg_at_k, "pass_at_k.1", self.pass_at_k.get(1))
        for (fewer, low), (more, high) in pairwise(sorted(self.pass_at_k.items())):
            if high < low - TOLERANCE:
                raise _contradiction(f"pass_at_k.{more} is {high}, below pass_at_k.{fewer}, {low}")
        return self

    def check_denominators(self, where: str, questions: int, k: int) -> None:
        """Check that every mean can be one over so many questions with k samples each.

        Args:
            where: The record's place in its file.
            questions: How many questions each sample was drawn for.
            k: Samples a question.

        Raises:
            PydanticCustomError: a mean is no whole number over its denominator, or the repeats are not k.
        """
        samples = questions * k
        if len(self.repeat_means) != k:
            raise _contradiction(f"{where}.repeat_means has {len(self.repeat_means)} values, k is {k}")
        if self.undecided > samples:
            raise _contradiction(f"{where}.undecided is {self.undecided} of {samples} samples")
        if max(self.pass_at_k) > k:
            raise _contradiction(f"{where}.pass_at_k.{max(self.pass_at_k)} is of more samples than k, {k}")
        means = [
            ("avg_at_k", self.avg_at_k, samples),
            ("truncation_rate", self.truncation_rate, samples),
            ("extraction_rate", self.extraction_rate, samples),
            ("mean_response_tokens", self.mean_response_tokens, samples),
            *((f"repeat_means.{index}", mean, questions) for index, mean in enumerate(self.repeat_means)),
            # The share of the sets of n samples that have a right one is a fraction of C(k, n) for every question.
            *((f"pass_at_k.{n}", value, questions * math.comb(k, n)) for n, value in self.pass_at_k.items()),
        ]
        for name, value, denominator in means:
            # Steps as small as the tolerance say nothing.
            if denominator * TOLERANCE < 1 and abs(math.remainder(value, 1 / denominator)) > TOLERANCE:
                raise _contradiction(f"{where}.{name} is {value}, which {questions} questions, k = {k}, cannot give")


class CheckpointScore(Record):
    """One kind of checkpoint (`last` or `best`) over the training seeds.

    `seed_sd` (ddof 1) and `seed_standard_error` are None with a single seed: its spread is unknown. Refused where they
    or the mean are not those of `seeds`.
    """

    seeds: Annotated[list[SeedScore], Field(min_length=1)]
    avg_at_k: Rate
    seed_sd: float | None
    seed_standard_error: float | None

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        means = [seed.avg_at_k for seed in self.seeds]
        spread = statistics.stdev(means) if len(means) > 1 else None
        error = None if spread is None else spread / math.sqrt(len(means))
        _check_equal("avg_at_k", self.avg_at_k, "the mean of its seeds", statistics.fmean(means))
        _check_equal("seed_sd", self.seed_sd, "the standard deviation of its seeds", spread)
        _check_equal("seed_standard_error", self.seed_standard_error, "that of its seeds", error)
        return self


class BenchmarkScore(Record):
    """A benchmark's scores in a cell, by kind of checkpoint. Refused where a mean does not fit its denominator."""

    task: str
    questions: PositiveInt
    k: PositiveInt
    grader_version: str
    checkpoints: dict[str, CheckpointScore]

    @model_validator(mode="after")
    def _has_denominators(self) -> Self:
        for kind, score in self.checkpoints.items():
            for index, seed in enumerate(score.seeds):
                seed.check_denominators(f"checkpoints.{kind}.seeds.{index}", self.questions, self.k)
        return self


def _check_equal(name: str, stored: float | None, what: str, made: float | None) -> None:
    equal = stored is made if stored is None or made is None else abs(stored - made) <= TOLERANCE
    if not equal:
        raise _contradiction(f"{name} is {stored}, but {what} is {made}")


def _contradiction(problem: str) -> PydanticCustomError:
    # Not a ValueError, before whose words pydantic puts its own.
    return PydanticCustomError("contradiction", "{problem}", {"problem": problem})


class CellResult(Record):
    """`results/<cell>.json`.

    `updates_per_rollout` counts optimizer steps, None for the base model: a method of several passes makes more than
    its regime's off-policy degree.
    """

    schema_version: Literal[1] = 1
    cell: str
    suite: str
    method: str
    regime: str | None
    benchmarks: dict[str, BenchmarkScore]
    updates_per_rollout: float | None
    run_wall_seconds: dict[int, float]
    provenance: Provenance


DATA_SCHEMA = pa.schema(
    [
        ("data_source", pa.string()),
        ("prompt", pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))),
        ("ability", pa.string()),
        ("reward_model", pa.struct([("style", pa.string()), ("ground_truth", pa.string())])),
        ("extra_info", pa.struct([("id", pa.string()), ("split", pa.string()), ("index", pa.int64())])),
    ]
)

SAMPLE_SCHEMA = pa.schema(
    [
        ("benchmark", pa.string()),
        ("checkpoint", pa.string()),
        ("question", pa.string()),
        ("sample", pa.int32()),
        ("response", pa.string()),
        ("response_tokens", pa.int32()),
        ("finish_reason", pa.string()),
    ]
)

VERDICT_SCHEMA = pa.schema(
    [
        ("benchmark", pa.string()),
        ("checkpoint", pa.string()),
        ("question", pa.string()),
        ("sample", pa.int32()),
        ("correct", pa.bool_()),
        ("extracted", pa.string()),
        ("reason", pa.string()),
        ("grader_version", pa.string()),
    ]
)

TOKEN_SCHEMA = pa.schema(
    [
        ("run", pa.string()),
        ("rollout", pa.int32()),
        ("update", pa.int32()),
        ("question", pa.string()),
        ("sample", pa.int32()),
        ("position", pa.int32()),
        ("token", pa.int32()),
        ("old_log_prob", pa.float32()),
        ("log_prob", pa.float32()),
        ("entropy", pa.float32()),
        ("advantage", pa.float32()),
        ("mask", pa.bool_()),
    ]
)


def metrics_schema(frame: pd.DataFrame) -> pa.Schema:
    """Return the schema of a table of metrics: whole numbers as int64, text as string, the rest as float64."""
    whole = {"rollout", "update", "response_tokens_total"}
    fields = []
    for column in frame.columns:
        kind = pa.int64() if column in whole else pa.string() if column == "stage" else pa.float64()
        fields.append((column, kind))
    return pa.schema(fields)
