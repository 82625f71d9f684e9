"""Evaluation in three separate steps: sample, grade, score.

Samples are kept, so that a changed grader regrades them without sampling again.
"""

import math
import shutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from acpo.cells import Cell, resolve_evaluation
from acpo.config import Study, digest
from acpo.engines import load_engine
from acpo.grading.verdict import UNDECIDED
from acpo.provenance import code_hash, sampling_modules, weights_hash
from acpo.results import (
    SAMPLE_SCHEMA,
    VERDICT_SCHEMA,
    BenchmarkScore,
    CheckpointScore,
    RunRecord,
    SeedScore,
)
from acpo.store import StoreError, read_json, read_table, write_table
from acpo.tasks import load_task
from acpo.tasks.base import Problem, Task

KEY = ["benchmark", "checkpoint", "question", "sample"]


def sample_run(
    study: Study,
    cell: Cell,
    seed: int,
    run_directory: Path,
    problems: Mapping[str, Sequence[Problem]],
    output: Path,
) -> None:
    """Sample every benchmark of a suite from every checkpoint of a run; equal weights are sampled once.

    What an engine has finished when it is killed lies beside the store, under a hash of all that it depends on: a job
    that goes on takes it, one with another configuration, code, checkpoint, seed or question removes it.

    Args:
        study: The study.
        cell: The run's cell.
        seed: The run's seed.
        run_directory: Where `run.json` lies.
        problems: The questions of each benchmark.
        output: The sample store to write (`acpo.results.SAMPLE_SCHEMA`).

    Raises:
        StoreError: a checkpoint's weights are not those that were saved.
    """
    run = read_record(run_directory, cell, seed)
    engine = load_engine(study.suites[cell.suite].engine.name)
    code = code_hash(sampling_modules(study, cell))
    work = {
        (info.weights_sha256, name): digest(
            {
                "configuration": resolve_evaluation(study, cell),
                "code": code,
                "weights": info.weights_sha256,
                "benchmark": name,
                "seed": seed,
                "questions": [[problem.id, list(problem.messages)] for problem in questions],
            }
        )
        for info in run.checkpoints.values()
        for name, questions in problems.items()
    }
    partial = output.with_name(f"{output.stem}.partial")
    _remove_all_but(partial, set(work.values()))
    frames = []
    sampled: dict[tuple[str, str], pd.DataFrame] = {}
    for checkpoint, info in run.checkpoints.items():
        weights = run_directory / info.path
        if info.weights_sha256 not in {key for key, _ in sampled} and weights_hash(weights) != info.weights_sha256:
            raise StoreError(f"{weights}: its weights are not those that run.json names: train or fetch them again")
        for benchmark, questions in problems.items():
            key = (info.weights_sha256, benchmark)
            if key not in sampled:
                sampled[key] = engine.sample(study, cell, weights, benchmark, questions, seed, partial / work[key])
            frames.append(sampled[key].assign(benchmark=benchmark, checkpoint=checkpoint))
    samples = pd.concat(frames, ignore_index=True)[SAMPLE_SCHEMA.names]
    check_complete(samples, study, cell, problems, output, run.checkpoints)
    write_table(output, samples, SAMPLE_SCHEMA)
    _remove_all_but(partial, set())


def _remove_all_but(directory: Path, names: Collection[str]) -> None:
    """Remove the parts of unfinished sample stores that are not of `names`, and the directory if none is left."""
    if not directory.is_dir():
        return
    for part in directory.iterdir():
        if part.name not in names:
            shutil.rmtree(part)
    if not names:
        directory.rmdir()


def check_complete(
    frame: pd.DataFrame,
    study: Study,
    cell: Cell,
    problems: Mapping[str, Sequence[Problem]],
    path: Path,
    checkpoints: Collection[str] = (),
) -> None:
    """Refuse a store in which any question lacks exactly k samples, or that has questions of its own.

    Args:
        frame: The store.
        study: The study.
        cell: The cell.
        problems: The questions of each benchmark.
        path: Where the store lies, for the message.
        checkpoints: The checkpoints that it must have; it must have any of them for every benchmark.

    Raises:
        StoreError: names the first such question.
    """
    wanted = {*checkpoints, *frame["checkpoint"]}
    for foreign in sorted(set(frame["benchmark"]) - problems.keys()):
        raise StoreError(f"{path}: {foreign!r} is not a benchmark of {cell.suite}. Sample again")
    for foreign in sorted(wanted.difference(checkpoints)) if checkpoints else ():
        raise StoreError(f"{path}: the run has no checkpoint {foreign!r}. Sample again")
    for benchmark, questions in problems.items():
        expected = range(study.suites[cell.suite].benchmarks[benchmark].samples)
        rows = frame[frame["benchmark"] == benchmark]
        if rows.empty:
            raise StoreError(f"{path}: no samples of the benchmark {benchmark!r}. Sample again")
        known = {problem.id for problem in questions}
        for checkpoint in sorted(wanted):
            part = rows[rows["checkpoint"] == checkpoint]
            found = part.groupby("question")["sample"].apply(sorted).to_dict()
            for question in sorted(known | found.keys()):
                if question not in known or found.get(question) != list(expected):
                    raise StoreError(
                        f"{path}: {benchmark}, checkpoint {checkpoint}, question {question!r}: expected samples "
                        f"0..{len(expected) - 1} once each, found {found.get(question, [])}"
                        f"{'' if question in known else ' (not a question of this benchmark)'}. Sample again"
                    )


def grade_run(study: Study, cell: Cell, problems: Mapping[str, Sequence[Problem]], samples: Path, output: Path) -> None:
    """Grade a sample store into a verdict store (`acpo.results.VERDICT_SCHEMA`)."""
    frame = read_table(samples, SAMPLE_SCHEMA)
    check_complete(frame, study, cell, problems, samples)
    graded = [
        _grade(frame[frame["benchmark"] == name], load_task(study.suites[cell.suite].benchmarks[name].task), questions)
        for name, questions in problems.items()
    ]
    write_table(output, pd.concat(graded).sort_index(), VERDICT_SCHEMA)


def _grade(rows: pd.DataFrame, task: Task, problems: Sequence[Problem]) -> pd.DataFrame:
    """Grade the samples of one benchmark; keeps their order and index."""
    golds = {problem.id: problem.gold for problem in problems}
    pairs = zip(rows["response"], rows["question"].map(golds), strict=True)
    verdicts = [
        (verdict.correct, verdict.extracted, verdict.reason, task.grader_version) for verdict in task.grade_many(pairs)
    ]
    columns = ["correct", "extracted", "reason", "grader_version"]
    return rows[KEY].join(pd.DataFrame(verdicts, columns=columns, index=rows.index))


def pass_at_k(samples: int, correct: int, k: int) -> float:
    """Estimate without bias the chance that at least one of k samples is right: 1 - C(n-c, k) / C(n, k).

    Args:
        samples: n, how many samples there are.
        correct: c, how many of them are right.
        k: How many may be drawn; at most n.

    Raises:
        ValueError: k is not in 1..n, or c not in 0..n.
    """
    if not (1 <= k <= samples and 0 <= correct <= samples):
        raise ValueError(f"pass@k needs 1 <= k <= n and 0 <= c <= n, got n={samples}, c={correct}, k={k}")
    return 1 - math.comb(samples - correct, k) / math.comb(samples, k)


def score_seed(rows: pd.DataFrame, seed: int, rollout: int, k: int) -> SeedScore:
    """Score one checkpoint of one run on one benchmark.

    Args:
        rows: Its verdicts joined with its samples, exactly k rows a question.
        seed: The training seed.
        rollout: How long the checkpoint was trained.
        k: Samples a question.
    """
    table = rows.pivot(index="question", columns="sample", values="correct").to_numpy(dtype=float)
    question_means = table.mean(1)
    right = table.sum(1).astype(int)
    powers = [2**i for i in range(k.bit_length()) if 2**i <= k]
    spread = question_means.std(ddof=1) / math.sqrt(len(table)) if len(table) > 1 else 0.0
    return SeedScore(
        seed=seed,
        rollout=rollout,
        avg_at_k=float(table.mean()),
        standard_error=float(spread),
        pass_at_k={n: float(np.mean([pass_at_k(k, int(c), n) for c in right])) for n in powers},
        repeat_means=[float(mean) for mean in table.mean(0)],
        truncation_rate=float((rows["finish_reason"] == "length").mean()),
        extraction_rate=float(rows["extracted"].notna().mean()),
        mean_response_tokens=float(rows["response_tokens"].mean()),
        undecided=int(rows["reason"].str.startswith(UNDECIDED).sum()),
    )


def score_cell(
    study: Study, cell: Cell, runs: Mapping[int, Path], problems: Mapping[str, Sequence[Problem]]
) -> dict[str, BenchmarkScore]:
    """Score a cell from the stores of its runs.

    Args:
        study: The study.
        cell: The cell.
        runs: The run directory of each training seed.
        problems: The questions of each benchmark.

    Raises:
        StoreError: a store is damaged, incomplete, or graded by more than one version.
    """
    records = {seed: read_record(run, cell, seed) for seed, run in runs.items()}
    tables = {seed: read_run(study, cell, run, problems, records[seed].checkpoints) for seed, run in runs.items()}
    scores = {}
    for name, benchmark in study.suites[cell.suite].benchmarks.items():
        versions = {version for table in tables.values() for version in _rows(table, name)["grader_version"].unique()}
        if len(versions) != 1:
            raise StoreError(f"{cell}: {name} was graded by several versions {sorted(versions)}: grade again")
        checkpoints = {}
        for checkpoint in next(iter(records.values())).checkpoints:
            seeds = [
                score_seed(
                    _rows(table, name, checkpoint), seed, records[seed].checkpoints[checkpoint].rollout,
                    benchmark.samples,
                )
                for seed, table in tables.items()
            ]  # fmt: skip
            checkpoints[checkpoint] = over_seeds(seeds)
        scores[name] = BenchmarkScore(
            task=benchmark.task, questions=len(problems[name]), k=benchmark.samples, grader_version=versions.pop(),
            checkpoints=checkpoints,
        )  # fmt: skip
    return scores


def updates_per_rollout(records: Sequence[RunRecord]) -> float:
    """Return how many optimizer steps the runs of a cell made a rollout.

    Raises:
        StoreError: the runs differ.
    """
    found = {record.updates / record.rollouts for record in records}
    if len(found) != 1:
        raise StoreError(f"{records[0].cell}: its runs made different numbers of updates a rollout: {sorted(found)}")
    return found.pop()


def over_seeds(seeds: list[SeedScore]) -> CheckpointScore:
    """Average training seeds; the spread of a single one is unknown."""
    means = np.array([score.avg_at_k for score in seeds])
    spread = float(means.std(ddof=1)) if len(means) > 1 else None
    error = None if spread is None else spread / math.sqrt(len(means))
    return CheckpointScore(seeds=seeds, avg_at_k=float(means.mean()), seed_sd=spread, seed_standard_error=error)


def read_record(run_directory: Path, cell: Cell, seed: int) -> RunRecord:
    """Read a run's completion file and check whose run it is.

    Raises:
        StoreError: missing, damaged, or the run of another cell or seed.
    """
    path = run_directory / "run.json"
    record = read_json(path, RunRecord)
    if (record.cell, record.seed) != (str(cell), seed):
        raise StoreError(f"{path}: is the run of {record.cell} seed {record.seed}, expected {cell} seed {seed}")
    return record


def read_run(
    study: Study, cell: Cell, run: Path, problems: Mapping[str, Sequence[Problem]], checkpoints: Collection[str]
) -> pd.DataFrame:
    """Read what a run sampled and how it was graded: one row a sample, without the responses.

    Args:
        study: The study.
        cell: The run's cell.
        run: The run's directory.
        problems: The questions of each benchmark.
        checkpoints: The checkpoints that both stores must have.

    Raises:
        StoreError: a store is missing, damaged, or has a question without exactly k samples.
    """
    samples = read_table(run / "samples.parquet", SAMPLE_SCHEMA)
    verdicts = read_table(run / "verdicts.parquet", VERDICT_SCHEMA)
    check_complete(samples, study, cell, problems, run / "samples.parquet", checkpoints)
    check_complete(verdicts, study, cell, problems, run / "verdicts.parquet", checkpoints)
    return samples.drop(columns="response").merge(verdicts, on=KEY, validate="one_to_one")


def _rows(table: pd.DataFrame, benchmark: str, checkpoint: str | None = None) -> pd.DataFrame:
    rows = table[table["benchmark"] == benchmark]
    return rows if checkpoint is None else rows[rows["checkpoint"] == checkpoint]
