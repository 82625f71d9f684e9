"""A policy that drifts from the one that made the responses: what gradient probes measure.

A rollout is split by prompts. On one half the policy is updated, on the other its gradient is measured later, as if
those responses were the last mini-batch. The measured responses are therefore the same after any number of updates.
"""

from dataclasses import dataclass
from pathlib import Path

import torch

from acpo.cells import Cell
from acpo.config import Study
from acpo.engines.tiny.checkpoint import architecture_of, load_weights, save_policy
from acpo.engines.tiny.engine import embedded_task
from acpo.engines.tiny.rollout import Rollout, collect, rollout_problems
from acpo.engines.tiny.token_store import write_tokens
from acpo.engines.tiny.update import Learner, token_batch, update
from acpo.methods import method_objective
from acpo.sections import Probes, TinyEngine
from acpo.tasks.base import Problem


@dataclass(frozen=True)
class Drift:
    """What to let drift.

    Args:
        study: The study; `probes` says how far.
        cell: Whose policy.
        seed: The training seed.
        checkpoint: The policy's folder: the behavior policy.
        problems: The training problems.
    """

    study: Study
    cell: Cell
    seed: int
    checkpoint: Path
    problems: list[Problem]

    @property
    def probes(self) -> Probes:
        """The study's section on probes."""
        return self.study.probes

    def run(self, directory: Path) -> dict[int, Path]:
        """Write `tokens.parquet`, the measured responses, and a checkpoint for each off-policy degree above 1.

        Updates are made with the reference method, from a fresh optimizer, at the suite's learning rate.

        Returns:
            The folder of each policy by off-policy degree; that of 1 is the behavior policy's own.
        """
        torch.set_num_threads(1)
        behavior = self._learner()
        rollout = self._rollout(behavior)
        half = len(rollout.reward) // 2
        measured = slice(half, 2 * half)
        self._write_tokens(directory / "tokens.parquet", behavior, rollout, measured)
        policies = {}
        for degree in self.probes.updates:
            if degree == 1:
                policies[degree] = self.checkpoint
                continue
            learner, size = self._learner(), half // degree
            for number in range(degree - 1):
                rows = slice(number * size, (number + 1) * size)
                update(learner, rollout, rows, learner.objective.stages[0])
            policies[degree] = directory / f"updates_{degree:02d}"
            save_policy(policies[degree], learner.weights, self.checkpoint)
        return policies

    def _learner(self) -> Learner:
        suite = self.study.suites[self.cell.suite]
        assert isinstance(suite.engine, TinyEngine)
        objective = method_objective(self.study, self.probes.reference, {})
        weights, sizes = load_weights(self.checkpoint), architecture_of(self.checkpoint)
        return Learner.of(weights, sizes, objective, suite.training, suite.engine)

    def _rollout(self, learner: Learner) -> Rollout:
        suite, root_seed = self.study.suites[self.cell.suite], self.study.root_seed
        assert isinstance(suite.engine, TinyEngine)
        problems = rollout_problems(self.problems, 0, 2 * self.probes.prompts, root_seed, self.seed)
        with torch.no_grad():
            return collect(
                learner.model(), embedded_task(suite.task), problems, suite.training,
                suite.engine.generation_batch_size, root_seed, "probe", self.seed,
            )  # fmt: skip

    def _write_tokens(self, path: Path, learner: Learner, rollout: Rollout, rows: slice) -> None:
        with torch.no_grad():
            batch = token_batch(learner, learner.model(), rollout, rows)
        write_tokens(path, f"{self.cell}/seed{self.seed}", 1, rollout, [(1, rows, [batch])])
