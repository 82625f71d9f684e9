"""What `make bench` times: sampler, updates and training of the embedded engine, each beside its yardstick.

Contestants take turns within one process on one thread, and only ratios of medians are judged: a busy machine
slows all of them alike.
"""

import contextlib
import io
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import torch

from acpo.cells import Cell
from acpo.config import Study
from acpo.engines import TrainingJob
from acpo.engines.tiny.checkpoint import architecture_of, load_weights
from acpo.engines.tiny.engine import embedded_task
from acpo.engines.tiny.model import Architecture, Model, Weights
from acpo.engines.tiny.rollout import Rollout, collect, rollout_problems
from acpo.engines.tiny.sampler import sample
from acpo.engines.tiny.trainer import Trainer
from acpo.engines.tiny.update import Learner, update
from acpo.engines.tiny.vocabulary import Vocabulary
from acpo.errors import ConfigError
from acpo.methods import method_objective
from acpo.sections import TinyEngine, Training
from acpo.segments import Segment
from acpo.streams import uniforms
from acpo.tasks.base import EmbeddedTask, Problem
from acpo.timing import REFERENCE

NEVER = 10**9


@dataclass(frozen=True)
class Measurement:
    """One line of the result: a median, and where there is a yardstick its median and the ratio of the two.

    `ratio` is value over yardstick; without a yardstick the value itself is judged. `at_least` and `at_most` are
    the target; both None: nothing is promised.
    """

    name: str
    value: float
    unit: str
    yardstick: float | None = None
    at_least: float | None = None
    at_most: float | None = None

    @property
    def ratio(self) -> float | None:
        """Value over yardstick."""
        return None if self.yardstick is None else self.value / self.yardstick

    @property
    def met(self) -> bool | None:
        """Whether the target is reached; None without one."""
        judged = self.value if self.ratio is None else self.ratio
        if self.at_least is not None:
            return judged >= self.at_least
        return None if self.at_most is None else judged <= self.at_most


@dataclass(frozen=True)
class Setting:
    """A suite of the embedded engine with its base model, as every benchmark needs it."""

    study: Study
    suite: str
    base: Path
    task: EmbeddedTask
    problems: list[Problem]
    sizes: Architecture
    weights: Weights

    @classmethod
    def of(cls, study: Study, suite: str, base: Path) -> "Setting":
        """Read the base model and generate the training problems.

        Raises:
            ConfigError: not a suite of the embedded engine.
            StoreError: no such base model.
        """
        if suite not in study.suites or not isinstance(study.suites[suite].engine, TinyEngine):
            raise ConfigError(f"{suite!r} is no suite of the embedded engine")
        task = embedded_task(study.suites[suite].task)
        problems = list(task.problems(study.suites[suite].train_split, study.root_seed, {}))
        return cls(study, suite, base, task, problems, architecture_of(base), load_weights(base))

    @property
    def training(self) -> Training:
        """The suite's training section."""
        return self.study.suites[self.suite].training

    @property
    def engine(self) -> TinyEngine:
        """The suite's engine section."""
        engine = self.study.suites[self.suite].engine
        assert isinstance(engine, TinyEngine)
        return engine

    @property
    def model(self) -> Model:
        """The base model, ready to sample."""
        with torch.no_grad():
            return Model.of(self.weights, self.sizes)

    def prompts(self, count: int) -> list[list[int]]:
        """Token ids of the first training prompts."""
        return Vocabulary.of(self.task).encode_prompts([problem.prompt for problem in self.problems[:count]])

    def rollout(self, regime: str) -> Rollout:
        """Sample the first rollout of a regime from the base model."""
        size = self.study.regime(self.suite, regime).train_batch_size
        problems = rollout_problems(self.problems, 0, size, self.study.root_seed, 0)
        batch = self.engine.generation_batch_size
        return collect(self.model, self.task, problems, self.training, batch, self.study.root_seed, "bench")


@contextlib.contextmanager
def one_thread() -> Any:
    """Run on one thread, as the embedded engine does."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def interleave(contestants: Mapping[str, Callable[[], Sequence[float]]], rounds: int) -> dict[str, list[float]]:
    """Let contestants take turns; who begins moves on by one each round.

    Args:
        contestants: By name, what makes one or more measurements.
        rounds: Turns each.

    Returns:
        All measurements of each contestant.
    """
    names, found = list(contestants), {name: list[float]() for name in contestants}
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            found[name].extend(contestants[name]())
    return found


def compare_sampling(setting: Setting, prompts: int, rounds: int) -> list[Measurement]:
    """Response tokens per second of the embedded sampler and of transformers' `model.generate`."""
    model, library = setting.model, transformers_model(setting)
    ids = setting.prompts(prompts)

    def ours() -> list[float]:
        with one_thread():
            return [_embedded_sampling(setting, model, ids)]

    def theirs() -> list[float]:
        with one_thread():
            return [_library_sampling(setting, library, ids)]

    ours(), theirs()  # warm-up
    found = interleave({"ours": ours, "theirs": theirs}, rounds)
    speeds = {name: median(values) for name, values in found.items()}
    return [Measurement("sampler / model.generate", speeds["ours"], "tokens/s", speeds["theirs"], at_least=3)]


def _embedded_sampling(setting: Setting, model: Model, ids: list[list[int]]) -> float:
    training = setting.training
    shape = (len(ids) * training.group_size, training.max_response_tokens)
    ends = Vocabulary.of(setting.task).end_tokens
    start = time.perf_counter()
    draws = uniforms(shape, setting.study.root_seed, "bench")
    batch = setting.engine.generation_batch_size
    responses = sample(model, ids, training.group_size, draws, training.temperature, ends, batch)
    return int(responses.lengths.sum()) / (time.perf_counter() - start)


def transformers_model(setting: Setting) -> Any:
    """Load the base model as transformers does."""
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(setting.base, dtype=torch.float32).eval()


def _library_sampling(setting: Setting, model: Any, ids: list[list[int]]) -> float:
    training, width = setting.training, len(ids[0])
    size = max(1, setting.engine.generation_batch_size // training.group_size)
    assert all(len(row) == width for row in ids), "prompts of one length need no padding"
    tokens, start = 0, time.perf_counter()
    for i in range(0, len(ids), size):
        prompt = torch.tensor(ids[i : i + size])
        answer = model.generate(
            prompt, attention_mask=torch.ones_like(prompt), do_sample=True, temperature=training.temperature,
            top_k=0, top_p=1.0, max_new_tokens=training.max_response_tokens, num_return_sequences=training.group_size,
        )  # fmt: skip
        tokens += int((answer[:, width:] != model.generation_config.pad_token_id).sum())
    return tokens / (time.perf_counter() - start)


def compare_updates(setting: Setting, regime: str, methods: Sequence[str], rounds: int) -> list[Measurement]:
    """Seconds of an update of each method, relative to DAPO's; both passes of AR-Lopti count."""
    with one_thread():
        found = update_seconds(setting, regime, methods, rounds)
    reference = median(found[REFERENCE])
    limits = {"acpo": 1.02}
    return [
        Measurement(
            f"update {method} / {REFERENCE}, {regime}", 1000 * median(found[method]), "CPU ms", 1000 * reference,
            at_most=limits.get(method),
        )
        for method in methods
    ]  # fmt: skip


def update_seconds(setting: Setting, regime: str, methods: Sequence[str], rounds: int) -> dict[str, list[float]]:
    """Time updates on one rollout: every round starts from the base model and passes over its mini-batches.

    CPU seconds, because a promise of 2 % does not survive a neighbour's time slices.
    """
    rollout = setting.rollout(regime)
    size = setting.study.regime(setting.suite, regime).mini_batch_size * setting.training.group_size
    parts = [slice(start, start + size) for start in range(0, len(rollout.reward), size)]
    found = {method: list[float]() for method in methods}
    for number in range(rounds + 1):
        learners = {method: _learner(setting, method) for method in methods}
        for part in parts[: 1 if number == 0 else None]:
            turns = {method: _update_turn(learner, rollout, part) for method, learner in learners.items()}
            order = list(turns)[number % len(turns) :] + list(turns)[: number % len(turns)]
            for method, seconds in interleave({name: turns[name] for name in order}, 1).items():
                found[method] += seconds if number else []  # round 0 warms up
    return found


def _learner(setting: Setting, method: str) -> Learner:
    objective = method_objective(setting.study, method, {})
    return Learner.of(setting.weights, setting.sizes, objective, setting.training, setting.engine)


def _update_turn(learner: Learner, rollout: Rollout, part: slice) -> Callable[[], list[float]]:
    def turn() -> list[float]:
        start = time.process_time()
        for stage in learner.objective.stages:
            update(learner, rollout, part, stage)
        return [time.process_time() - start]

    return turn


def training_speed(setting: Setting, regime: str, rollouts: int) -> list[float]:
    """Response tokens per second of DAPO training, by rollout: sampling, grading and updates; the first is dropped."""
    with TemporaryDirectory() as place, one_thread(), contextlib.redirect_stderr(io.StringIO()):
        job = _training_job(setting, regime, rollouts + 1, Path(place))
        objective = method_objective(setting.study, REFERENCE, {})
        trainer = Trainer(job, setting.task, objective, setting.sizes, setting.weights, "bench")
        with Segment(job.run_directory, job.name, trainer.fingerprint) as segment:
            totals = trainer.run(segment).rollouts["response_tokens_total"].diff().tolist()[2:]
        seconds = (trainer.timings["sampling_seconds"] + trainer.timings["update_seconds"]).tolist()[1:]
    return [tokens / time_taken for tokens, time_taken in zip(totals, seconds, strict=True)]


def _training_job(setting: Setting, regime: str, rollouts: int, place: Path) -> TrainingJob:
    suite, size = setting.study.suites[setting.suite], setting.study.regime(setting.suite, regime).train_batch_size
    changes = {"prompts": rollouts * size, "epochs": None, "validation_every": NEVER, "checkpoint_every": NEVER}
    suite = suite.model_copy(
        update={
            "training": suite.training.model_copy(update=changes),
            "token_store": suite.token_store.model_copy(update={"rollouts": []}),
        }
    )
    study = setting.study.model_copy(update={"suites": {setting.suite: suite}})
    cell = Cell(setting.suite, REFERENCE, regime)
    return TrainingJob(study, cell, 0, setting.problems, setting.problems[:1], None, None, {}, setting.base, {}, place)


def format_table(measurements: Sequence[Measurement]) -> str:
    """Lay measurements out as text."""
    lines = [f"{'what':44} {'median':>12} {'yardstick':>12} {'ratio':>7}  target"]
    for item in measurements:
        target = f">= {item.at_least:g}" if item.at_least is not None else ""
        target = f"<= {item.at_most:g}" if item.at_most is not None else target
        verdict = {True: "met", False: "MISSED", None: ""}[item.met]
        yardstick = "" if item.yardstick is None else f"{item.yardstick:,.2f}"
        ratio = "" if item.ratio is None else f"{item.ratio:.3f}"
        name = f"{item.name} ({item.unit})"
        lines.append(f"{name:44} {item.value:12,.2f} {yardstick:>12} {ratio:>7}  {target} {verdict}".rstrip())
    return "\n".join(lines)
