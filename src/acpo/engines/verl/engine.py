"""verl as the workflow sees it; what needs verl, Ray or vLLM is imported where it runs."""

import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from acpo.cells import Cell
from acpo.config import Study
from acpo.engines import Engine, EngineError, TrainingJob, load_engine
from acpo.engines.orphans import leave_no_orphans
from acpo.engines.runs import STATES, complete, exclusive, fingerprint
from acpo.engines.sampling import BenchmarkSampler
from acpo.engines.verl.check import check_run
from acpo.engines.verl.checkpoints import (
    best_rollout,
    copy_checkpoint,
    export,
    kept_validation,
    newest_step,
    prepare,
    shards_of,
)
from acpo.engines.verl.launch import launch
from acpo.engines.verl.overrides import engine_of, expected_rollouts, ranks_per_node
from acpo.engines.verl.records import collect, forget_after, has_validation, read_validation
from acpo.errors import ConfigError
from acpo.provenance import Clock, weights_hash
from acpo.results import CheckpointInfo
from acpo.segments import Segment
from acpo.tasks.base import Problem

RECORDS = "records"


class VerlEngineRunner(Engine):
    """Trains with verl and samples with vLLM or transformers."""

    def __init__(self) -> None:
        """Start without a model."""
        self._sampler = BenchmarkSampler()

    def make_base(self, job: TrainingJob) -> None:
        """See `Engine.make_base`: the embedded engine's supervised start (published models are linked by a rule)."""
        load_engine("tiny").make_base(job)

    def train(self, job: TrainingJob) -> None:
        """See `Engine.train`."""
        clock, base = Clock(), job.base_directory
        if base is None:
            raise ConfigError(f"{job.cell}: needs the suite's base model")
        if not job.validation:
            raise ConfigError(f"{job.cell}: needs validation data to choose the best checkpoint")
        total = expected_rollouts(job)
        if not total:
            raise ConfigError(
                f"suites.{job.cell.suite}.training: {len(job.problems)} training problems are less than one rollout"
            )
        check_run(job)
        job = replace(job, data_hashes=job.data_hashes | {"base": weights_hash(base)})
        suite = job.study.suites[job.cell.suite]
        ranks = suite.resources.nodes * ranks_per_node(suite)
        run = job.run_directory
        records, states = run / RECORDS, run / STATES
        identity = fingerprint(job)
        with exclusive(run), Segment(run, job.name, identity, signals=()) as segment:
            leave_no_orphans()
            done, warnings = prepare(states, identity, ranks)
            segment.begin(done)
            for warning in warnings:
                print(f"warning: {warning}", file=sys.stderr)
            if done:
                forget_after(records, done)
            else:
                shutil.rmtree(records, ignore_errors=True)
            if done < total or not has_validation(records, total):
                try:
                    launch(job, done)
                finally:
                    segment.saved(newest_step(states, ranks))
            reached = newest_step(states, ranks)
            if reached != total or not has_validation(records, total):
                raise EngineError(
                    f"{job.cell} seed {job.seed}: verl ended without a failure after rollout {reached} of {total}: the "
                    "run is not finished; the same command goes on from there"
                )
            updates, rollouts = collect(records, run, total)
            checkpoints = _checkpoints(run, base, total, read_validation(records))
            tokens = int(rollouts["response_tokens_total"].iloc[-1])
            complete(job, clock, checkpoints, total, len(updates), tokens, device=engine_of(suite).device)
            shutil.rmtree(records)

    def sample(
        self,
        study: Study,
        cell: Cell,
        checkpoint: Path,
        benchmark: str,
        problems: Sequence[Problem],
        seed: int,
        partial: Path,
    ) -> pd.DataFrame:
        """See `Engine.sample`."""
        leave_no_orphans()
        return self._sampler.sample(study, cell, checkpoint, benchmark, problems, seed, partial)


def _checkpoints(run: Path, base: Path, total: int, validation: dict[int, float]) -> dict[str, CheckpointInfo]:
    """Write the last and the best model as transformers checkpoints."""
    states = run / STATES
    kept = kept_validation(states, validation)
    best, wanted = best_rollout(kept), best_rollout(validation)
    if best != wanted:
        print(
            f"warning: {run}: the model of rollout {wanted}, the best on validation, is no longer kept: best is that "
            f"of rollout {best}",
            file=sys.stderr,
        )
    made = {}
    for kind, rollout in (("last", total), ("best", best)):
        shards = shards_of(states, rollout)
        hashed = export(shards, base, run / kind) if rollout else copy_checkpoint(base, run / kind)
        made[kind] = CheckpointInfo(path=kind, rollout=rollout, weights_sha256=hashed, validation=validation[rollout])
    return made


ENGINE = VerlEngineRunner()
