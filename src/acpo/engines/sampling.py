"""Sampling a benchmark in chunks of questions; a finished chunk is kept, so that a killed job goes on from there."""

import importlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from acpo.cells import Cell
from acpo.config import Study
from acpo.data.prompts import chat_template
from acpo.engines import EngineError
from acpo.engines.tiny.vocabulary import Vocabulary
from acpo.errors import ConfigError
from acpo.progress import Progress
from acpo.results import SAMPLE_SCHEMA
from acpo.sections import Suite, VerlEngine
from acpo.store import StoreError, read_table, write_table
from acpo.tasks import load_task
from acpo.tasks.base import EmbeddedTask, Problem, Task

QUESTIONS_PER_CHUNK = 256
CHUNK_SCHEMA = pa.schema([field for field in SAMPLE_SCHEMA if field.name not in ("benchmark", "checkpoint")])


@dataclass(frozen=True)
class Request:
    """One response to draw: the question's id, which of its samples, the prompt's tokens, and the random stream."""

    question: str
    sample: int
    prompt: tuple[int, ...]
    stream: tuple[Any, ...]


@dataclass(frozen=True)
class Completion:
    """A response's tokens, the end token included; not `finished` where the limit cut it off."""

    tokens: Sequence[int]
    finished: bool


@dataclass(frozen=True)
class SamplingSettings:
    """How every response of a suite is drawn."""

    temperature: float
    max_prompt_tokens: int
    max_response_tokens: int
    end_tokens: frozenset[int]


class Generator(ABC):
    """Draws responses from one checkpoint."""

    @abstractmethod
    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Draw the response to each request, in order.

        Raises:
            EngineError: the model ended a response otherwise than by an end token or the limit.
        """

    @abstractmethod
    def close(self) -> None:
        """Free the device."""


class Codec:
    """A checkpoint's tokenizer: from messages to prompt tokens, from response tokens to the text that is graded."""

    def __init__(self, checkpoint: Path, task: Task):
        """Load the tokenizer and the end tokens of a checkpoint.

        Args:
            checkpoint: A transformers checkpoint.
            task: Whose questions are asked.

        Raises:
            EngineError: the checkpoint has no tokenizer or names no end token.
        """
        from transformers import AutoTokenizer, GenerationConfig

        try:
            self._tokenizer = AutoTokenizer.from_pretrained(checkpoint, local_files_only=True, trust_remote_code=False)
            ends = GenerationConfig.from_pretrained(checkpoint, local_files_only=True).eos_token_id
        except (OSError, ValueError) as error:
            raise EngineError(f"{checkpoint}: no tokenizer or generation config that loads ({error})") from error
        self.end_tokens = frozenset([ends] if isinstance(ends, int) else ends or ())
        if not self.end_tokens:
            raise EngineError(f"{checkpoint}/generation_config.json: names no eos_token_id: no response would end")
        self._template = chat_template(task.prompt_style)
        self._vocabulary = Vocabulary.of(task) if isinstance(task, EmbeddedTask) else None

    def encode(self, problem: Problem) -> tuple[int, ...]:
        """Return the tokens of a problem's messages, by the same template as in training."""
        text = self._tokenizer.apply_chat_template(
            list(problem.messages), chat_template=self._template, tokenize=False, add_generation_prompt=True
        )
        return tuple(self._tokenizer.encode(text, add_special_tokens=False))

    def decode(self, tokens: Sequence[int]) -> str:
        """Return a response's text; an embedded task's end word is one of its words, and stays."""
        if self._vocabulary is not None:
            return self._vocabulary.decode(tokens)
        text = self._tokenizer.decode(list(tokens), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        assert isinstance(text, str)
        return text


def open_generator(checkpoint: Path, engine: VerlEngine, settings: SamplingSettings) -> Generator:
    """Load a checkpoint with what the suite samples its rollouts with.

    Raises:
        ConfigError: the machine cannot run it so.
        EngineError: it does not start.
    """
    import torch

    wanted, there = engine.tensor_parallel, torch.cuda.device_count()
    if wanted > 1 and (engine.device == "cpu" or engine.rollout == "transformers"):
        raise ConfigError(
            f"engine.tensor_parallel: {wanted}, but sampling with {engine.rollout} on {engine.device} runs on one "
            "device: set 1"
        )
    if engine.device == "cuda" and there < wanted:
        raise ConfigError(
            f"engine.tensor_parallel: sampling needs {wanted} GPUs, this machine has {there}: run on one that has "
            "them, or set engine.device to cpu for a model that a CPU can run"
        )
    # Found by name and not by import: a change of a sampler must sample again, but train nothing again.
    module = importlib.import_module(f"acpo.engines.{'vllm' if engine.rollout == 'vllm' else 'generation'}")
    generator: Generator = module.GENERATOR(checkpoint, engine, settings)
    return generator


class BenchmarkSampler:
    """Samples benchmarks; keeps the model of the last checkpoint, which its other benchmarks need too."""

    def __init__(
        self,
        opener: Callable[[Path, VerlEngine, SamplingSettings], Generator] = open_generator,
        questions_per_chunk: int = QUESTIONS_PER_CHUNK,
    ):
        """Start without a model.

        Args:
            opener: Loads a checkpoint (replaced in tests).
            questions_per_chunk: How many questions are sampled, and kept, at once.
        """
        self._opener, self._size = opener, questions_per_chunk
        self._open: tuple[Path, Generator] | None = None

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
        """Sample a benchmark (see `acpo.engines.Engine.sample`); the model is loaded only if a chunk is missing.

        Sample i of a question draws from the stream ("evaluation", benchmark, seed, question id, i), whatever chunk it
        is in.

        Raises:
            EngineError: a prompt is empty or too long; names the question, before anything is sampled.
        """
        suite = study.suites[cell.suite]
        codec = Codec(checkpoint, load_task(suite.benchmarks[benchmark].task))
        _check_prompts(codec, suite, cell, benchmark, problems)
        samples = suite.benchmarks[benchmark].samples
        chunks = [problems[start : start + self._size] for start in range(0, len(problems), self._size)]
        paths = [partial / f"questions_{number * self._size:06d}_{len(chunk)}.parquet" for number, chunk in
                 enumerate(chunks)]  # fmt: skip
        missing = [not _is_kept(path, chunk, samples) for path, chunk in zip(paths, chunks, strict=True)]
        with Progress(f"sample {benchmark}", len(chunks), done=missing.count(False)) as progress:
            for path, chunk, wanted in zip(paths, chunks, missing, strict=True):
                if not wanted:
                    continue
                requests = [
                    Request(problem.id, i, prompt, (study.root_seed, "evaluation", benchmark, seed, problem.id, i))
                    for problem, prompt in ((problem, codec.encode(problem)) for problem in chunk)
                    for i in range(samples)
                ]
                completions = self._model(checkpoint, suite, codec).generate(requests)
                frame = _table(requests, completions, codec)
                write_table(path, frame, CHUNK_SCHEMA)
                progress.advance(int(frame["response_tokens"].sum()))
        return pd.concat([read_table(path, CHUNK_SCHEMA) for path in paths], ignore_index=True)

    def close(self) -> None:
        """Free the device."""
        if self._open is not None:
            self._open[1].close()
            self._open = None

    def _model(self, checkpoint: Path, suite: Suite, codec: Codec) -> Generator:
        if self._open is None or self._open[0] != checkpoint:
            self.close()
            assert isinstance(suite.engine, VerlEngine)
            training = suite.training
            settings = SamplingSettings(
                training.temperature, training.max_prompt_tokens, training.max_response_tokens, codec.end_tokens
            )
            self._open = (checkpoint, self._opener(checkpoint, suite.engine, settings))
        return self._open[1]


def _check_prompts(codec: Codec, suite: Suite, cell: Cell, benchmark: str, problems: Sequence[Problem]) -> None:
    limit = suite.training.max_prompt_tokens
    for problem in problems:
        if not any(turn["content"].strip() for turn in problem.messages):
            raise EngineError(f"{benchmark}, question {problem.id!r}: its prompt is empty: format the data set again")
        length = len(codec.encode(problem))
        if length > limit:
            raise EngineError(
                f"{benchmark}, question {problem.id!r}: its prompt has {length} tokens, "
                f"suites.{cell.suite}.training.max_prompt_tokens is {limit}: raise it, or format the data set again "
                "with a smaller budget"
            )


def _is_kept(path: Path, problems: Sequence[Problem], samples: int) -> bool:
    """Say whether a chunk is there and whole; a damaged one is removed, and said so."""
    if not path.exists():
        return False
    try:
        frame = read_table(path, CHUNK_SCHEMA)
    except StoreError as error:
        print(f"warning: {error}", file=sys.stderr)
    else:
        wanted = [(problem.id, i) for problem in problems for i in range(samples)]
        if list(zip(frame["question"], frame["sample"], strict=True)) == wanted:
            return True
        print(f"warning: {path}: holds other questions than expected; sampled again", file=sys.stderr)
    path.unlink()
    return False


def _table(requests: Sequence[Request], completions: Sequence[Completion], codec: Codec) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "question": [request.question for request in requests],
            "sample": [request.sample for request in requests],
            "response": [codec.decode(completion.tokens) for completion in completions],
            "response_tokens": [len(completion.tokens) for completion in completions],
            "finish_reason": ["stop" if completion.finished else "length" for completion in completions],
        }
    )
