"""Sampling benchmarks in chunks with transformers: what is drawn, what is kept after a kill, what is refused."""

import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
import torch
from small_study import SmallStudy
from transformers import AutoModelForCausalLM, AutoTokenizer

from acpo.cells import Cell
from acpo.config import Study
from acpo.data.problems import read_problems
from acpo.data.prompts import messages
from acpo.engines import EngineError
from acpo.engines.generation import TransformersGenerator, generate
from acpo.engines.sampling import (
    BenchmarkSampler,
    Codec,
    Completion,
    Generator,
    Request,
    SamplingSettings,
    open_generator,
)
from acpo.engines.tiny.checkpoint import architecture_of, load_weights
from acpo.engines.tiny.model import Model
from acpo.engines.tiny.sampler import sample
from acpo.engines.tiny.vocabulary import Vocabulary
from acpo.errors import ConfigError
from acpo.evaluation import sample_run
from acpo.results import SAMPLE_SCHEMA, RunRecord
from acpo.sections import VerlEngine
from acpo.store import read_json, read_table, write_json
from acpo.streams import uniforms
from acpo.tasks.base import Problem
from acpo.tasks.countdown_mini import TASK

CELL = Cell("mini_verl", "base", None)
BENCHMARK = "countdown_mini"
SAMPLES = 8


@dataclass
class Recorder:
    """Opens generators, remembers what they were asked, and stops after a number of calls as a kill would."""

    calls_before_kill: int | None = None
    asked: list[list[Request]] = field(default_factory=list)
    opened: int = 0

    def __call__(self, checkpoint: Path, engine: VerlEngine, settings: SamplingSettings) -> Generator:
        self.opened += 1
        inner = TransformersGenerator(checkpoint, engine, settings)
        recorder = self

        class Recorded(Generator):
            def generate(self, requests: Sequence[Request]) -> list[Completion]:
                if len(recorder.asked) == recorder.calls_before_kill:
                    raise KeyboardInterrupt
                recorder.asked.append(list(requests))
                return inner.generate(requests)

            def close(self) -> None:
                inner.close()

        return Recorded()


@pytest.fixture
def problems(small_base: SmallStudy) -> list[Problem]:
    return read_problems(small_base.split("test"))


def drawn(
    small: SmallStudy, problems: Sequence[Problem], partial: Path, recorder: Recorder | None = None, chunk: int = 5,
    seed: int = 0,
) -> pd.DataFrame:  # fmt: skip
    sampler = BenchmarkSampler(recorder or Recorder(), chunk)
    return sampler.sample(small.study(), CELL, small.base, BENCHMARK, problems, seed, partial)


class TestGenerate:
    def test_draws_what_the_embedded_sampler_draws(self, small_base: SmallStudy, problems: list[Problem]) -> None:
        """Two implementations of model and sampler, the same uniforms: the same tokens and log-probabilities."""
        vocabulary = Vocabulary.of(TASK)
        prompts = vocabulary.encode_prompts([problem.prompt for problem in problems for _ in range(20)])
        draws = uniforms((len(prompts), 36), 5, "test")
        embedded = Model.of(load_weights(small_base.base), architecture_of(small_base.base))
        wanted = sample(embedded, prompts, 1, draws, 0.8, vocabulary.end_tokens, 64)
        model = AutoModelForCausalLM.from_pretrained(small_base.base)
        made = generate(model, prompts, draws, [0.8] * len(prompts), vocabulary.end_tokens)
        for row, response in enumerate(made):
            length = int(wanted.lengths[row])
            assert response.tokens == wanted.tokens[row, :length].tolist()
            assert response.log_probs == pytest.approx(wanted.log_prob[row, :length].tolist(), abs=5e-5)
        assert {len(response.tokens) for response in made} > {36}

    def test_a_shorter_prompt_beside_longer_ones_is_answered_as_alone(self, small_base: SmallStudy) -> None:
        vocabulary = Vocabulary.of(TASK)
        prompts = vocabulary.encode_prompts(["2 5 9 to 19 >", "3 to 5 >", "to >"])
        draws = uniforms((3, 20), 5, "padding")
        model = AutoModelForCausalLM.from_pretrained(small_base.base)
        together = generate(model, prompts, draws, [1.0, 0.7, 1.3], vocabulary.end_tokens)
        for row, (prompt, heat) in enumerate(zip(prompts, [1.0, 0.7, 1.3], strict=True)):
            alone = generate(model, [prompt], draws[row : row + 1], [heat], vocabulary.end_tokens)[0]
            assert together[row].tokens == alone.tokens
            assert together[row].log_probs == pytest.approx(alone.log_probs, abs=5e-5)


class TestBenchmarkSampler:
    def test_the_store_is_that_of_the_embedded_engine(
        self, small_base: SmallStudy, problems: list[Problem], tmp_path: Path
    ) -> None:
        frame = drawn(small_base, problems, tmp_path)
        assert list(zip(frame["question"], frame["sample"], strict=True)) == [
            (problem.id, i) for problem in problems for i in range(SAMPLES)
        ]
        words = frame["response"].str.split(" ")
        assert (words.str.len() == frame["response_tokens"]).all()
        assert ((words.str[-1] == "yes") == (frame["finish_reason"] == "stop")).all()
        assert Counter(frame["finish_reason"]).keys() == {"stop", "length"}
        assert (frame.loc[frame["finish_reason"] == "length", "response_tokens"] == 36).all()
        verdicts = [TASK.grade(r, q) for r, q in zip(frame["response"], frame["question"], strict=True)]
        assert any(verdict.extracted for verdict in verdicts)

    @pytest.mark.parametrize("chunk", [1, 7, 100])
    def test_the_size_of_chunks_changes_nothing(
        self, small_base: SmallStudy, problems: list[Problem], tmp_path: Path, chunk: int
    ) -> None:
        whole = drawn(small_base, problems, tmp_path / "whole", chunk=12)
        assert drawn(small_base, problems, tmp_path / "parts", chunk=chunk).equals(whole)

    def test_order_and_number_of_questions_change_no_response(
        self, small_base: SmallStudy, problems: list[Problem], tmp_path: Path
    ) -> None:
        whole = drawn(small_base, problems, tmp_path / "whole").set_index(["question", "sample"]).sort_index()
        part = drawn(small_base, problems[7:2:-1], tmp_path / "part").set_index(["question", "sample"]).sort_index()
        assert part.equals(whole.loc[part.index])

    def test_another_seed_draws_others(self, small_base: SmallStudy, problems: list[Problem], tmp_path: Path) -> None:
        first, second = (drawn(small_base, problems, tmp_path / str(seed), seed=seed) for seed in (0, 1))
        assert (first["response"] != second["response"]).mean() > 0.5

    def test_goes_on_after_a_kill_as_if_there_had_been_none(
        self, small_base: SmallStudy, problems: list[Problem], tmp_path: Path
    ) -> None:
        undisturbed = drawn(small_base, problems, tmp_path / "undisturbed")
        killed = Recorder(calls_before_kill=2)
        with pytest.raises(KeyboardInterrupt):
            drawn(small_base, problems, tmp_path / "killed", killed)
        resumed = Recorder()
        assert drawn(small_base, problems, tmp_path / "killed", resumed).equals(undisturbed)
        assert [{request.question for request in call} for call in killed.asked + resumed.asked] == [
            {problem.id for problem in problems[start : start + 5]} for start in (0, 5, 10)
        ]
        assert len(resumed.asked) == 1
        files = [sorted((tmp_path / name).iterdir()) for name in ("undisturbed", "killed")]
        assert [file.read_bytes() for file in files[0]] == [file.read_bytes() for file in files[1]]

    def test_loads_no_model_for_what_is_finished(
        self, small_base: SmallStudy, problems: list[Problem], tmp_path: Path
    ) -> None:
        drawn(small_base, problems, tmp_path)
        again = Recorder()
        drawn(small_base, problems, tmp_path, again)
        assert again.opened == 0

    def test_one_model_serves_all_benchmarks_of_a_checkpoint(
        self, small_base: SmallStudy, problems: list[Problem], tmp_path: Path
    ) -> None:
        recorder = Recorder()
        sampler = BenchmarkSampler(recorder, 5)
        other = shutil.copytree(small_base.base, tmp_path / "other")
        for number, checkpoint in enumerate([small_base.base, small_base.base, other]):
            sampler.sample(
                small_base.study(), CELL, checkpoint, BENCHMARK, problems[:2], 0, tmp_path / f"partial{number}"
            )
        assert recorder.opened == 2

    @pytest.mark.parametrize("damage", ["truncated", "foreign"])
    def test_a_damaged_chunk_is_sampled_again(
        self, small_base: SmallStudy, problems: list[Problem], tmp_path: Path, damage: str,
        capsys: pytest.CaptureFixture[str],
    ) -> None:  # fmt: skip
        undisturbed = drawn(small_base, problems, tmp_path)
        first, second = sorted(tmp_path.iterdir())[:2]
        first.write_bytes(first.read_bytes()[:-9] if damage == "truncated" else second.read_bytes())
        recorder = Recorder()
        assert drawn(small_base, problems, tmp_path, recorder).equals(undisturbed)
        assert len(recorder.asked) == 1
        assert f"warning: {first}" in capsys.readouterr().err


class TestBadInput:
    def test_an_empty_prompt_is_named_before_anything_is_sampled(
        self, small_base: SmallStudy, problems: list[Problem], tmp_path: Path
    ) -> None:
        empty = replace(problems[3], messages=({"role": "user", "content": " "},))
        recorder = Recorder()
        with pytest.raises(EngineError, match=f"countdown_mini, question '{problems[3].id}': its prompt is empty"):
            drawn(small_base, [*problems[:3], empty], tmp_path, recorder)
        assert recorder.opened == 0

    def test_an_overlong_prompt_is_named(self, small_base: SmallStudy, problems: list[Problem], tmp_path: Path) -> None:
        long = replace(problems[3], messages=({"role": "user", "content": "1 2 3 4 to 9 >"},))
        with pytest.raises(
            EngineError,
            match=f"question '{problems[3].id}': its prompt has 8 tokens, "
            r"suites\.mini_verl\.training\.max_prompt_tokens is 7",
        ):
            drawn(small_base, [*problems[:3], long], tmp_path)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"tensor_parallel": 2}, "tensor_parallel: 2, but sampling with transformers on cpu runs on one device"),
            ({"tensor_parallel": 2, "rollout": "vllm"}, "sampling with vllm on cpu runs on one device: set 1"),
            ({"device": "cuda", "tensor_parallel": 2, "rollout": "vllm"}, "needs 2 GPUs, this machine has 0"),
            ({"device": "cuda"}, "needs 1 GPUs, this machine has 0"),
        ],
    )
    def test_a_machine_that_cannot(
        self, small_base: SmallStudy, change: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
        engine = small_base.study().suites["mini_verl"].engine.model_copy(update=change)
        with pytest.raises(ConfigError, match=message):
            open_generator(small_base.base, engine, SamplingSettings(1.0, 7, 36, frozenset({112})))

    @pytest.mark.parametrize(
        ("missing", "message"), [("tokenizer.json", "no tokenizer"), ("generation_config.json", "generation config")]
    )
    def test_an_incomplete_checkpoint(self, small: SmallStudy, missing: str, message: str) -> None:
        (small.base / missing).unlink()
        with pytest.raises(EngineError, match=f"seed0/last: .*{message}"):
            Codec(small.base, TASK)


class TestCodec:
    def test_encodes_as_the_embedded_engine(self, small_base: SmallStudy, problems: list[Problem]) -> None:
        codec, vocabulary = Codec(small_base.base, TASK), Vocabulary.of(TASK)
        wanted = vocabulary.encode_prompts([problem.prompt for problem in problems])
        assert [list(codec.encode(problem)) for problem in problems] == wanted
        assert codec.end_tokens == vocabulary.end_tokens

    def test_a_chat_uses_the_models_own_template(self, small: SmallStudy) -> None:
        """And a response's text is free of the end marks that no task reads."""
        tokenizer = AutoTokenizer.from_pretrained(small.base)
        tokenizer.chat_template = (
            "{% for m in messages %}{{ 'no' if m.role == 'system' else '>' }} {{ m.content }} {% endfor %}"
            "{% if add_generation_prompt %}={% endif %}"
        )
        tokenizer.save_pretrained(small.base)
        codec = Codec(small.base, SimpleNamespace(prompt_style="chat"))  # type: ignore[arg-type]
        turns = ({"role": "system", "content": "1 2"}, {"role": "user", "content": "3"})
        tokens = codec.encode(Problem("a", "3", "", messages=turns))
        words = Vocabulary.of(TASK)
        assert [words.words[token] for token in tokens] == ["no", "1", "2", ">", "3", "="]
        assert codec.decode([*words.encode(["1 + 2"])[0], words.ids["<pad>"]]) == "1 + 2"

    def test_a_base_models_text_is_given_as_it_is(self, small_base: SmallStudy) -> None:
        codec = Codec(small_base.base, SimpleNamespace(prompt_style="base"))  # type: ignore[arg-type]
        text = messages("1 + 2", "", "base")
        problem = Problem("a", "", "", messages=({**text[0], "content": "1 + 2 = >"},))
        assert codec.encode(problem) == tuple(Vocabulary.of(TASK).encode_prompts(["1 + 2 = >"])[0])


class StubEngine:
    """An engine whose first try is killed after it has kept a part."""

    def __init__(self, problems: Sequence[Problem]):
        self._problems, self.partial = problems, []

    def sample(self, *asked: Any) -> pd.DataFrame:
        partial = asked[-1]
        self.partial.append(partial)
        if not partial.exists():
            partial.mkdir(parents=True)
            (partial / "part").write_text("kept")
            raise KeyboardInterrupt
        frame = pd.DataFrame([(problem.id, i) for problem in self._problems for i in range(SAMPLES)])
        return frame.set_axis(["question", "sample"], axis=1).assign(
            response="1", response_tokens=1, finish_reason="stop"
        )


class TestPartialWork:
    """`sample_run` gives an engine a place for unfinished work that fits exactly what it samples."""

    @pytest.fixture
    def run(self, small: SmallStudy) -> Path:
        run = small.run("mini_base")
        record = read_json(run / "run.json", RunRecord)
        write_json(run / "run.json", record.model_copy(update={"cell": "mini_verl_base"}))
        return run

    def test_is_found_again_and_removed_in_the_end(
        self, small: SmallStudy, run: Path, problems: list[Problem], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        engine = StubEngine(problems)
        monkeypatch.setattr("acpo.evaluation.load_engine", lambda name: engine)
        output = run / "samples.parquet"
        with pytest.raises(KeyboardInterrupt):
            sample_run(small.study(), CELL, 0, run, {BENCHMARK: problems}, output)
        assert (engine.partial[0] / "part").exists()
        assert engine.partial[0].parent == run / "samples.partial"
        sample_run(small.study(), CELL, 0, run, {BENCHMARK: problems}, output)
        assert engine.partial[0] == engine.partial[1]
        assert not (run / "samples.partial").exists()
        assert len(read_table(output, SAMPLE_SCHEMA)) == len(problems) * SAMPLES

    @pytest.mark.parametrize("changed", ["configuration", "seed", "questions", "weights", "code"])
    def test_of_anything_else_is_removed(
        self, small: SmallStudy, run: Path, problems: list[Problem], monkeypatch: pytest.MonkeyPatch, changed: str
    ) -> None:
        engine, study, seed = StubEngine(problems), small.study(), 0
        monkeypatch.setattr("acpo.evaluation.load_engine", lambda name: engine)
        with pytest.raises(KeyboardInterrupt):
            sample_run(study, CELL, seed, run, {BENCHMARK: problems}, run / "samples.parquet")
        if changed == "configuration":
            study = _hotter(study)
        elif changed == "seed":
            seed = 1
        elif changed == "questions":
            problems = [replace(problems[0], messages=({"role": "user", "content": "1"},)), *problems[1:]]
        elif changed == "weights":
            monkeypatch.setattr("acpo.evaluation.weights_hash", lambda checkpoint: "0" * 64)
        else:
            monkeypatch.setattr("acpo.evaluation.code_hash", lambda modules: "0" * 16)
        record = read_json(run / "run.json", RunRecord)
        last = record.checkpoints["last"]
        if changed == "weights":
            last = last.model_copy(update={"weights_sha256": "0" * 64})
        write_json(run / "run.json", record.model_copy(update={"seed": seed, "checkpoints": {"last": last}}))
        with pytest.raises(KeyboardInterrupt):
            sample_run(study, CELL, seed, run, {BENCHMARK: problems}, run / "samples.parquet")
        assert engine.partial[0] != engine.partial[1]
        assert not engine.partial[0].exists()


def _hotter(study: Study) -> Study:
    suite = study.suites["mini_verl"]
    training = suite.training.model_copy(update={"temperature": 1.5})
    return study.model_copy(update={"suites": {"mini_verl": suite.model_copy(update={"training": training})}})
