"""The training loop: rollout, updates, validation, checkpoint; killed at any point, it resumes to the same bytes."""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import torch

from acpo.engines import EngineError, TrainingJob
from acpo.engines.runs import STATES
from acpo.engines.tiny.checkpoint import TrainingState, load_newest_state, save_state
from acpo.engines.tiny.event_log import EventLog
from acpo.engines.tiny.model import Architecture, Weights
from acpo.engines.tiny.rollout import Rollout, collect, grade_responses, rollout_problems
from acpo.engines.tiny.sampler import sample
from acpo.engines.tiny.token_store import write_tokens
from acpo.engines.tiny.update import Learner, update
from acpo.engines.tiny.vocabulary import Vocabulary
from acpo.objectives import Objective, TokenBatch
from acpo.progress import Progress
from acpo.sections import Regime, TinyEngine, Training
from acpo.segments import Segment
from acpo.streams import uniforms
from acpo.tasks.base import EmbeddedTask

ON_POLICY_TOLERANCE = 1e-3


class RatioError(EngineError):
    """The importance ratios are impossible: old log-probabilities do not belong to this rollout."""


@dataclass
class Trainer:
    """One training run of the embedded engine."""

    job: TrainingJob
    task: EmbeddedTask
    objective: Objective
    sizes: Architecture
    base_weights: Weights
    fingerprint: str
    _timings: list[dict[str, float]] = field(default_factory=list)

    @property
    def training(self) -> Training:
        """The suite's training section."""
        return self.job.study.suites[self.job.cell.suite].training

    @property
    def engine(self) -> TinyEngine:
        """The suite's engine section."""
        engine = self.job.study.suites[self.job.cell.suite].engine
        assert isinstance(engine, TinyEngine)
        return engine

    @property
    def regime(self) -> Regime:
        """The batch sizes."""
        assert self.job.cell.regime is not None
        return self.job.study.regime(self.job.cell.suite, self.job.cell.regime)

    @property
    def rollouts(self) -> int:
        """How many rollouts the budget allows."""
        prompts = self.training.prompts or (self.training.epochs or 0) * len(self.job.problems)
        return prompts // self.regime.train_batch_size

    def run(self, segment: Segment) -> TrainingState:
        """Train to the end of the budget, from the newest whole checkpoint if there is one.

        Args:
            segment: Tells when a signal asks for an end; the state is then saved after the current rollout.

        Returns:
            The final state, with the weights of the last and the best rollout and all metrics.

        Raises:
            SegmentEndedError: a signal ended the segment.
        """
        states = self.job.run_directory / STATES
        state, warnings = load_newest_state(states, self.fingerprint)
        for warning in warnings:
            print(f"warning: {warning}", file=sys.stderr)
        learner = Learner.of(
            state.weights if state else self.base_weights,
            self.sizes,
            self.objective,
            self.training,
            self.engine,
        )
        if state:
            learner.optimizer.load(state.optimizer)
            print(f"resumed {self.job.name} after rollout {state.rollout}", file=sys.stderr)
        segment.begin(state.rollout if state else 0)
        state = state or self._start(learner)
        segment.end_if_signalled()
        with (
            Progress(self.job.name, self.rollouts, state.rollout, directory=self.job.run_directory) as progress,
            EventLog(self.job.run_directory / "tensorboard", state.update + 1) as events,
        ):
            for number in range(state.rollout, self.rollouts):
                facts = self._one_rollout(learner, state, number, events)
                progress.advance(**facts)
                segment.alive()
                due = state.rollout % self.training.checkpoint_every == 0 or segment.signalled
                if due and state.rollout < self.rollouts:
                    state.weights, state.optimizer = learner.weights, learner.optimizer.tensors()
                    save_state(states, state, self.fingerprint)
                    segment.saved(state.rollout)
                    segment.end_if_signalled()
        state.weights = {name: tensor.detach() for name, tensor in learner.weights.items()}
        return state

    @property
    def timings(self) -> pd.DataFrame:
        """Seconds of sampling and of updates, by rollout made in this process."""
        return pd.DataFrame(self._timings)

    def _start(self, learner: Learner) -> TrainingState:
        validation = self._validate(learner, 0)
        first = pd.DataFrame([{"rollout": 0, "response_tokens_total": 0, "validation": validation}])
        return TrainingState(
            rollout=0, update=0, response_tokens=0, weights={}, optimizer={}, best_weights=_copy(learner.weights),
            best_rollout=0, best_validation=validation, updates=pd.DataFrame(), rollouts=first,
        )  # fmt: skip

    def _one_rollout(self, learner: Learner, state: TrainingState, number: int, events: EventLog) -> dict[str, Any]:
        clock = _Stopwatch()
        seed, root_seed = self.job.seed, self.job.study.root_seed
        problems = rollout_problems(self.job.problems, number, self.regime.train_batch_size, root_seed, seed)
        with torch.no_grad():
            model = learner.model()
        rollout = collect(
            model,
            self.task,
            problems,
            self.training,
            self.engine.generation_batch_size,
            root_seed,
            seed,
            number,
        )
        sampling_seconds = clock.lap()
        rows = self._updates(learner, state, rollout, number, events)
        update_seconds = clock.lap()
        tokens = int(rollout.responses.lengths.sum())
        state.rollout, state.response_tokens = number + 1, state.response_tokens + tokens
        facts = {"rollout": state.rollout, **rollout.facts(), "response_tokens_total": state.response_tokens}
        facts["validation"] = self._validate_if_due(learner, state)
        state.updates = pd.concat([state.updates, pd.DataFrame(rows)], ignore_index=True)
        state.rollouts = pd.concat([state.rollouts, pd.DataFrame([facts])], ignore_index=True)
        bins = {key: value for key, value in rows[-1].items() if "/" in key}
        events.scalars("rollout", facts | bins, state.update)
        self._timings.append(
            {"rollout": state.rollout, "sampling_seconds": sampling_seconds, "update_seconds": update_seconds}
        )
        return {"tokens": tokens, "reward": facts["reward_mean"], "entropy": rows[-1]["entropy"]}

    def _updates(
        self, learner: Learner, state: TrainingState, rollout: Rollout, number: int, events: EventLog
    ) -> list[dict[str, Any]]:
        """Make all updates of a rollout: every stage of the objective passes over all mini-batches."""
        size = self.regime.mini_batch_size * self.training.group_size
        stored: list[tuple[int, slice, Sequence[TokenBatch]]] = []
        rows: list[dict[str, Any]] = []
        for stage in self.objective.stages:
            for start in range(0, len(rollout.reward), size):
                part = slice(start, start + size)
                facts, batches = update(learner, rollout, part, stage)
                state.update += 1
                _check_ratios(facts, first=not rows, rollout=number + 1)
                rows.append({"rollout": number + 1, "update": state.update, "stage": stage, **facts})
                events.scalars("update", {key: facts[key] for key in facts if "/" not in key}, state.update)
                stored.append((state.update, part, batches))
        if number + 1 in self._token_store_rollouts():
            path = self.job.run_directory / "tokens" / f"rollout_{number + 1:06d}.parquet"
            write_tokens(path, f"{self.job.cell}/seed{self.job.seed}", number + 1, rollout, stored)
        return rows

    def _token_store_rollouts(self) -> list[int]:
        return self.job.study.suites[self.job.cell.suite].token_store.rollouts

    def _validate_if_due(self, learner: Learner, state: TrainingState) -> float:
        if state.rollout % self.training.validation_every and state.rollout != self.rollouts:
            return float("nan")
        validation = self._validate(learner, state.rollout)
        if validation >= state.best_validation:
            state.best_validation, state.best_rollout = validation, state.rollout
            state.best_weights = _copy(learner.weights)
        return validation

    def _validate(self, learner: Learner, rollout: int) -> float:
        """Return avg@k on the validation problems."""
        samples = self.job.study.suites[self.job.cell.suite].validation.samples
        vocabulary = Vocabulary.of(self.task)
        shape = (len(self.job.validation) * samples, self.training.max_response_tokens)
        draws = uniforms(shape, self.job.study.root_seed, "validation", self.job.seed, rollout)
        prompts = vocabulary.encode_prompts([problem.prompt for problem in self.job.validation])
        with torch.no_grad():
            model = learner.model()
        responses = sample(
            model, prompts, samples, draws, self.training.temperature, vocabulary.end_tokens,
            self.engine.generation_batch_size,
        )  # fmt: skip
        return grade_responses(self.task, vocabulary, self.job.validation, responses).double().mean().item()


def _check_ratios(facts: dict[str, float], first: bool, rollout: int) -> None:
    """Refuse a first update of a rollout whose ratios are not 1: its old log-probabilities would be wrong."""
    spread = max(facts[f"bin{b}/ratio_std"] for b in range(1, 6) if facts[f"bin{b}/count"])
    if first and max(abs(facts["ratio_max"] - 1), spread) > ON_POLICY_TOLERANCE:
        raise RatioError(
            f"rollout {rollout}: the importance ratio before any update is up to {facts['ratio_max']:.6f} "
            f"(spread {spread:.2e}), expected 1: sampler and trainer disagree about log-probabilities. "
            "This is a fault of the engine: please report it"
        )


def _copy(weights: Weights) -> Weights:
    return {name: tensor.detach().clone() for name, tensor in weights.items()}


class _Stopwatch:
    """Measures laps in seconds."""

    def __init__(self) -> None:
        self._last = time.perf_counter()

    def lap(self) -> float:
        now = time.perf_counter()
        seconds, self._last = now - self._last, now
        return seconds
