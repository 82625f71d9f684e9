"""The schemas of what the pipeline keeps: runs, samples, verdicts, cells (see `docs/results.md`)."""

from typing import Any, Literal

import pandas as pd
import pyarrow as pa
from pydantic import BaseModel, ConfigDict

SCHEMA_VERSION = 1


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
    """

    seed: int
    rollout: int
    avg_at_k: float
    standard_error: float
    pass_at_k: dict[int, float]
    repeat_means: list[float]
    truncation_rate: float
    extraction_rate: float
    mean_response_tokens: float
    undecided: int


class CheckpointScore(Record):
    """One kind of checkpoint (`last` or `best`) over the training seeds.

    `seed_sd` (ddof 1) and `seed_standard_error` are None with a single seed: its spread is unknown.
    """

    seeds: list[SeedScore]
    avg_at_k: float
    seed_sd: float | None
    seed_standard_error: float | None


class BenchmarkScore(Record):
    """A benchmark's scores in a cell, by kind of checkpoint."""

    task: str
    questions: int
    k: int
    grader_version: str
    checkpoints: dict[str, CheckpointScore]


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
