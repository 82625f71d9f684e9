"""vLLM against transformers and against the embedded engine, on one small checkpoint; and a killed job that goes on."""

import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pandas as pd
import psutil
import pytest
import torch
from small_study import SmallStudy, make_small_study
from transformers import AutoModelForCausalLM

from acpo.cells import Cell
from acpo.data.problems import read_problems
from acpo.engines.generation import TransformersGenerator
from acpo.engines.sampling import BenchmarkSampler, Codec, Generator, Request, SamplingSettings
from acpo.engines.tiny.checkpoint import architecture_of, load_weights
from acpo.engines.tiny.model import Model
from acpo.engines.tiny.sampler import sample
from acpo.engines.tiny.vocabulary import Vocabulary
from acpo.engines.vllm import VllmGenerator
from acpo.sections import VerlEngine
from acpo.streams import uniforms
from acpo.tasks.base import Problem
from acpo.tasks.countdown_mini import TASK

pytestmark = pytest.mark.verl

CELL = Cell("mini_vllm", "base", None)
HEADS = {"attention_heads": 1, "key_value_heads": 1}
"""One head of 32: vLLM runs no smaller ones."""
RESPONSES_A_QUESTION = 160
STRICT = 1e-3


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> SmallStudy:
    torch.set_num_threads(1)
    return make_small_study(tmp_path_factory.mktemp("wide"), **HEADS)


@pytest.fixture(scope="module")
def engine(small: SmallStudy) -> VerlEngine:
    engine = small.study().suites["mini_vllm"].engine
    assert isinstance(engine, VerlEngine)
    return engine


@pytest.fixture(scope="module")
def settings(small: SmallStudy) -> SamplingSettings:
    return SamplingSettings(1.0, 7, 36, Codec(small.base, TASK).end_tokens)


@pytest.fixture(scope="module")
def vllm(small: SmallStudy, engine: VerlEngine, settings: SamplingSettings) -> Iterator[VllmGenerator]:
    generator = VllmGenerator(small.base, engine, settings)
    yield generator
    generator.close()


def requests(small: SmallStudy, split: str, samples: int) -> tuple[list[Problem], list[Request]]:
    problems, codec = read_problems(small.split(split)), Codec(small.base, TASK)
    asked = [
        Request(problem.id, i, codec.encode(problem), (0, "test", problem.id, i))
        for problem in problems
        for i in range(samples)
    ]
    return problems, asked


def accuracy(golds: Sequence[str], tokens: Sequence[Sequence[int]]) -> float:
    vocabulary = Vocabulary.of(TASK)
    return float(
        np.mean([TASK.grade(vocabulary.decode(row), gold).correct for row, gold in zip(tokens, golds, strict=True)])
    )


def two_proportions(first: float, second: float, count: int) -> float:
    """Return the two-sided p-value of equal proportions, `count` responses each."""
    pooled = (first + second) / 2
    return 2 * NormalDist().cdf(-abs(first - second) / math.sqrt(2 * pooled * (1 - pooled) / count))


def test_log_probabilities_agree_with_transformers(
    small: SmallStudy, vllm: VllmGenerator, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of every token of prompts and responses, both models having read the same ones."""
    from vllm import SamplingParams

    _, asked = requests(small, "test", 8)
    rows = [[*request.prompt, *answer.tokens] for request, answer in zip(asked, vllm.generate(asked), strict=True)]
    rows = [row[:42] for row in rows]
    scored = vllm._model.generate(
        [{"prompt_token_ids": row} for row in rows], SamplingParams(max_tokens=1, prompt_logprobs=0), use_tqdm=False
    )
    model = AutoModelForCausalLM.from_pretrained(small.base)
    largest, tokens = 0.0, 0
    for row, score in zip(rows, scored, strict=True):
        found = [entry[token].logprob for token, entry in zip(row[1:], score.prompt_logprobs[1:], strict=True)]
        with torch.no_grad():
            logits = model(torch.tensor([row])).logits[0, :-1].double()
        wanted = torch.log_softmax(logits, -1).gather(1, torch.tensor(row[1:])[:, None])[:, 0]
        largest = max(largest, float((wanted - torch.tensor(found)).abs().max()))
        tokens += len(found)
    with capsys.disabled():
        print(
            f"\nlargest difference of a log-probability, vLLM against transformers: {largest:.2g} ({tokens:,} tokens)"
        )
    assert largest < 5e-5


def test_accuracy_is_that_of_the_embedded_sampler(
    small: SmallStudy, vllm: VllmGenerator, engine: VerlEngine, settings: SamplingSettings,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Three samplers with draws of their own answer the questions that the model knows best."""
    problems, asked = requests(small, "train", RESPONSES_A_QUESTION)
    golds = [problem.gold for problem in problems for _ in range(RESPONSES_A_QUESTION)]
    vocabulary = Vocabulary.of(TASK)
    responses = sample(
        Model.of(load_weights(small.base), architecture_of(small.base)),
        vocabulary.encode_prompts([problem.prompt for problem in problems]), RESPONSES_A_QUESTION,
        uniforms((len(asked), 36), 0, "embedded"), 1.0, vocabulary.end_tokens, 256,
    )  # fmt: skip
    embedded = [row[:n] for row, n in zip(responses.tokens.tolist(), responses.lengths.tolist(), strict=True)]
    others: dict[str, Generator] = {
        "vLLM": vllm, "transformers": TransformersGenerator(small.base, engine, settings)
    }  # fmt: skip
    wanted = accuracy(golds, embedded)
    assert 0.02 < wanted < 0.98
    lengths = {"embedded": float(np.mean([len(row) for row in embedded]))}
    found = {"embedded": wanted}
    for name, generator in others.items():
        tokens = [completion.tokens for completion in generator.generate(asked)]
        found[name], lengths[name] = accuracy(golds, tokens), float(np.mean([len(row) for row in tokens]))
    with capsys.disabled():
        print(f"\naccuracy of {len(asked):,} responses: {found}; mean length: {lengths}")
    for name in others:
        assert two_proportions(wanted, found[name], len(asked)) > STRICT, name


def drawn(small: SmallStudy, generator: Generator, partial: Path, chunk: int, seed: int = 0) -> pd.DataFrame:
    sampler = BenchmarkSampler(lambda *_: generator, chunk)
    problems = read_problems(small.split("test"))
    return sampler.sample(small.study(), CELL, small.base, "countdown_mini", problems, seed, partial)


def test_what_is_drawn_depends_on_the_seed_alone(small: SmallStudy, vllm: VllmGenerator, tmp_path: Path) -> None:
    first = drawn(small, vllm, tmp_path / "first", 12)
    drawn(small, vllm, tmp_path / "again", 12)
    name = "questions_000000_12.parquet"
    assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    assert drawn(small, vllm, tmp_path / "single", 1).equals(first)
    assert drawn(small, vllm, tmp_path / "fives", 5).equals(first)
    assert (drawn(small, vllm, tmp_path / "other", 12, seed=1)["response"] != first["response"]).mean() > 0.5


def test_words_lengths_and_reasons_of_the_end_agree(small: SmallStudy, vllm: VllmGenerator, tmp_path: Path) -> None:
    frame = drawn(small, vllm, tmp_path, 12)
    words = frame["response"].str.split(" ")
    assert (words.str.len() == frame["response_tokens"]).all()
    assert ((words.str[-1] == "yes") == (frame["finish_reason"] == "stop")).all()
    assert set(frame["finish_reason"]) == {"stop", "length"}
    assert (frame.loc[frame["finish_reason"] == "length", "response_tokens"] == 36).all()


def test_an_early_limit_cuts_off(small: SmallStudy, vllm: VllmGenerator, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what came before the limit is what would have come without it."""
    _, asked = requests(small, "test", 2)
    whole = vllm.generate(asked)
    monkeypatch.setattr(vllm, "_settings", replace(vllm._settings, max_response_tokens=5))
    for cut, full in zip(vllm.generate(asked), whole, strict=True):
        assert cut.tokens == full.tokens[:5]
        assert not cut.finished


def test_goes_on_after_sigkill_and_leaves_no_process(small: SmallStudy, vllm: VllmGenerator, tmp_path: Path) -> None:
    undisturbed = drawn(small, vllm, tmp_path / "undisturbed", 1)
    partial = tmp_path / "killed"
    script = Path(__file__).with_name("sample_and_be_killed.py")
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1] / "unit")}
    environment.pop("ACPO_STARTED_BY", None)
    job = subprocess.Popen([sys.executable, script, small.root, partial], env=environment)
    try:
        wait_for(lambda: any(partial.glob("questions_*")), 240, job)
        started = psutil.Process(job.pid).children(recursive=True)
    finally:
        job.kill()
        job.wait()
    assert started
    wait_for(lambda: not any(map(lives, started)), 30)
    assert 1 <= len(list(partial.glob("questions_*.parquet"))) < 12
    assert drawn(small, vllm, partial, 1).equals(undisturbed)


def lives(process: psutil.Process) -> bool:
    """Say whether a process runs; one that has ended and that nobody has asked about does not."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_for(condition: Callable[[], bool], seconds: float, job: subprocess.Popen[bytes] | None = None) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s"
        assert job is None or job.poll() is None, "the job ended early"
        time.sleep(0.02)
