"""The embedded engine as the workflow sees it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from acpo.cells import Cell
from acpo.config import Study
from acpo.engines import Engine, TrainingJob
from acpo.engines.runs import complete, exclusive, fingerprint
from acpo.engines.tiny.checkpoint import WEIGHTS_FILE, architecture_of, load_weights, save_policy
from acpo.engines.tiny.model import Architecture, Model
from acpo.engines.tiny.sampler import sample
from acpo.engines.tiny.supervised import train_on_demonstrations, write_template
from acpo.engines.tiny.trainer import Trainer
from acpo.engines.tiny.vocabulary import Vocabulary
from acpo.errors import ConfigError
from acpo.methods import method_objective
from acpo.progress import Progress
from acpo.provenance import Clock, file_hash
from acpo.results import CheckpointInfo, metrics_schema
from acpo.sections import BuiltModel, TinyEngine
from acpo.segments import Segment
from acpo.store import atomic_directory, write_table
from acpo.streams import uniforms
from acpo.tasks import load_task
from acpo.tasks.base import EmbeddedTask, Problem


class TinyEngineRunner(Engine):
    """Trains and samples a small model in one process on one CPU thread, so that bits are reproducible."""

    def make_base(self, job: TrainingJob) -> None:
        """See `Engine.make_base`: supervised training on demonstrations, for any engine's suite."""
        clock = Clock()
        _one_thread()
        suite = job.study.suites[job.cell.suite]
        model = job.study.models[suite.model]
        if not isinstance(model, BuiltModel):
            raise ConfigError(f"suites.{job.cell.suite}.model: the embedded engine runs models with `source: built`")
        task = embedded_task(suite.task)
        vocabulary = Vocabulary.of(task)
        positions = suite.training.max_prompt_tokens + suite.training.max_response_tokens
        sizes = Architecture.of(model, len(vocabulary), positions)
        _check_prompts(job, vocabulary)
        with (
            exclusive(job.run_directory),
            Progress(str(job.cell), model.supervised.steps, directory=job.run_directory) as progress,
        ):
            weights = train_on_demonstrations(model, sizes, task, job.problems, job.study.root_seed, progress)
            template = job.run_directory / "template"
            with atomic_directory(template) as temporary:
                write_template(temporary, sizes, vocabulary)
            sha256 = save_policy(job.run_directory / "last", weights, template)
            checkpoint = CheckpointInfo(path="last", rollout=0, weights_sha256=sha256, validation=None)
            complete(job, clock, {"last": checkpoint}, 0, 0, 0)

    def train(self, job: TrainingJob) -> None:
        """See `Engine.train`."""
        clock = Clock()
        _one_thread()
        suite = job.study.suites[job.cell.suite]
        task = embedded_task(suite.task)
        if job.base_directory is None:
            raise ConfigError(f"{job.cell}: needs the suite's base model")
        if not job.validation:
            raise ConfigError(f"{job.cell}: needs validation data to choose the best checkpoint")
        objective = method_objective(job.study, job.cell.method, job.measured)
        _check_prompts(job, Vocabulary.of(task))
        sizes, weights = architecture_of(job.base_directory), load_weights(job.base_directory)
        base_hash = {f"base/{WEIGHTS_FILE}": file_hash(job.base_directory / WEIGHTS_FILE)}
        job = replace(job, data_hashes=job.data_hashes | base_hash)
        identity = fingerprint(job)
        with exclusive(job.run_directory), Segment(job.run_directory, job.name, identity) as segment:
            trainer = Trainer(job, task, objective, sizes, weights, identity)
            if not trainer.rollouts:
                raise ConfigError(
                    f"suites.{job.cell.suite}.training: {len(job.problems)} training problems are less than one rollout"
                )
            state = trainer.run(segment)
            run, base = job.run_directory, job.base_directory
            assert base is not None
            write_table(run / "metrics.parquet", state.updates, metrics_schema(state.updates))
            write_table(run / "rollouts.parquet", state.rollouts, metrics_schema(state.rollouts))
            write_table(run / "timings.parquet", trainer.timings, metrics_schema(trainer.timings))
            last = save_policy(run / "last", state.weights, base)
            best = save_policy(run / "best", state.best_weights, base)
            segment.saved(state.rollout)
            validation = float(state.rollouts["validation"].iloc[-1])
            checkpoints = {
                "last": CheckpointInfo(path="last", rollout=state.rollout, weights_sha256=last, validation=validation),
                "best": CheckpointInfo(
                    path="best",
                    rollout=state.best_rollout,
                    weights_sha256=best,
                    validation=state.best_validation,
                ),
            }
            complete(job, clock, checkpoints, state.rollout, state.update, state.response_tokens)

    def sample(
        self,
        study: Study,
        cell: Cell,
        checkpoint: Path,
        benchmark: str,
        problems: Sequence[Problem],
        seed: int,
        partial: Path,  # noqa: ARG002
    ) -> pd.DataFrame:
        """See `Engine.sample`; it takes seconds, so nothing partial is kept.

        Sample i draws from the stream ("evaluation", benchmark, seed, i).
        """
        _one_thread()
        suite = study.suites[cell.suite]
        assert isinstance(suite.engine, TinyEngine)
        samples, limit = suite.benchmarks[benchmark].samples, suite.training.max_response_tokens
        draws = [
            uniforms((len(problems), limit), study.root_seed, "evaluation", benchmark, seed, i) for i in range(samples)
        ]
        vocabulary = Vocabulary.of(embedded_task(suite.benchmarks[benchmark].task))
        with torch.no_grad():
            model = Model.of(load_weights(checkpoint), architecture_of(checkpoint))
        responses = sample(
            model, vocabulary.encode_prompts([problem.prompt for problem in problems]), samples,
            np.stack(draws, 1).reshape(-1, limit), suite.training.temperature, vocabulary.end_tokens,
            suite.engine.generation_batch_size,
        )  # fmt: skip
        lengths = responses.lengths.tolist()
        texts = [
            vocabulary.decode(row[:length]) for row, length in zip(responses.tokens.tolist(), lengths, strict=True)
        ]
        return pd.DataFrame(
            {
                "question": np.repeat([problem.id for problem in problems], samples),
                "sample": np.tile(np.arange(samples), len(problems)),
                "response": texts,
                "response_tokens": lengths,
                "finish_reason": np.where(responses.finished.numpy(), "stop", "length"),
            }
        )


def embedded_task(name: str) -> EmbeddedTask:
    """Return a task that the embedded engine can run.

    Raises:
        ConfigError: unknown, or without vocabulary and demonstrations.
    """
    task = load_task(name)
    if not isinstance(task, EmbeddedTask):
        raise ConfigError(f"the task {name!r} has no vocabulary and demonstrations: the embedded engine cannot run it")
    return task


def _one_thread() -> None:
    """Run on one thread: the number of threads changes the order of sums, and so the bits."""
    torch.set_num_threads(1)


def _check_prompts(job: TrainingJob, vocabulary: Vocabulary) -> None:
    """Refuse prompts that the trainer cannot batch or that its model has no positions for."""
    limit = job.study.suites[job.cell.suite].training.max_prompt_tokens
    try:
        prompts = vocabulary.encode_prompts([problem.prompt for problem in (*job.problems, *job.validation)])
    except ValueError as error:
        raise ConfigError(f"{job.cell}: {error}: are these the data of its task?") from error
    lengths = {len(prompt) for prompt in prompts}
    if max(lengths) > limit or len(lengths) > 1:
        raise ConfigError(
            f"suites.{job.cell.suite}.training.max_prompt_tokens: prompts have {min(lengths)} to {max(lengths)} "
            f"tokens, the limit is {limit}, and the embedded engine needs them equally long"
        )


ENGINE = TinyEngineRunner()
