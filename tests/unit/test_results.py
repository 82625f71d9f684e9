"""A cell's scores agree with each other and with their denominators, or are refused by file and field."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from acpo.evaluation import over_seeds, score_seed
from acpo.results import BenchmarkScore, CheckpointScore
from acpo.store import StoreError, read_json, write_json

QUESTIONS, K = 12, 8
Change = Callable[[dict[str, Any]], None]


def scored(questions: int, k: int, seeds: int) -> BenchmarkScore:
    """Score random verdicts as the pipeline does."""
    rng = np.random.default_rng([questions, k, seeds])
    chances = np.repeat(rng.random(questions), k)
    made = []
    for seed in range(seeds):
        right = rng.random(questions * k) < chances
        frame = pd.DataFrame(
            {
                "question": np.repeat([f"q{number}" for number in range(questions)], k),
                "sample": np.tile(np.arange(k), questions),
                "correct": right,
                "extracted": np.where(rng.random(questions * k) < 0.9, "answer", None),
                "reason": "made up",
                "finish_reason": np.where(rng.random(questions * k) < 0.1, "length", "stop"),
                "response_tokens": rng.integers(1, 30_000, questions * k),
            }
        )
        made.append(score_seed(frame, seed, 1, k))
    return BenchmarkScore(
        task="t", questions=questions, k=k, grader_version="1", checkpoints={"last": over_seeds(made)}
    )


@given(st.integers(1, 60), st.integers(1, 40), st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_whatever_the_pipeline_scores_is_accepted(questions: int, k: int, seeds: int) -> None:
    made = scored(questions, k, seeds)
    assert BenchmarkScore.model_validate_json(made.model_dump_json()) == made


def test_scores_of_large_benchmarks_are_accepted() -> None:
    made = scored(1500, 32, 3)
    assert BenchmarkScore.model_validate_json(made.model_dump_json()) == made


def setter(path: str, value: Callable[[Any], Any]) -> Change:
    *parents, last = path.split(".")

    def change(content: dict[str, Any]) -> None:
        for name in parents:
            content = content[int(name)] if isinstance(content, list) else content[name]
        key: Any = int(last) if isinstance(content, list) else last
        content[key] = value(content[key])

    return change


LAST, SEED = "checkpoints.last", "checkpoints.last.seeds.1"
EDITS = {
    f"{LAST}.avg_at_k": (lambda value: value + 0.05, "checkpoints.last: avg_at_k is"),
    f"{LAST}.seed_sd": (lambda value: 0.001, "checkpoints.last: seed_sd is 0.001"),
    f"{LAST}.seed_standard_error": (lambda value: None, "checkpoints.last: seed_standard_error is None"),
    f"{SEED}.avg_at_k": (lambda value: value + 0.05, "seeds.1: avg_at_k is"),
    f"{SEED}.standard_error": (lambda value: -0.1, "seeds.1.standard_error: Input should be"),
    f"{SEED}.pass_at_k.1": (lambda value: value + 1 / (QUESTIONS * K), "pass_at_k.1 is"),
    f"{SEED}.pass_at_k.2": (lambda value: 0.0, "seeds.1: pass_at_k.2 is 0.0, below pass_at_k.1"),
    f"{SEED}.pass_at_k.4": (lambda value: value + 0.001, "seeds.1.pass_at_k.4 is"),
    f"{SEED}.pass_at_k.8": (lambda value: 0.999, "seeds.1.pass_at_k.8 is 0.999, which 12 questions, k = 8, cannot"),
    f"{SEED}.repeat_means.3": (lambda value: value + 1 / QUESTIONS, "the mean of repeat_means"),
    f"{SEED}.repeat_means": (lambda value: value * 2, "seeds.1.repeat_means has 16 values, k is 8"),
    f"{SEED}.truncation_rate": (lambda value: value + 0.001, "seeds.1.truncation_rate is"),
    f"{SEED}.extraction_rate": (lambda value: 1.01, "seeds.1.extraction_rate: Input should be"),
    f"{SEED}.mean_response_tokens": (lambda value: value + 0.001, "seeds.1.mean_response_tokens is"),
    f"{SEED}.undecided": (lambda value: QUESTIONS * K + 1, "seeds.1.undecided is 97 of 96 samples"),
    "questions": (lambda value: QUESTIONS + 1, "which 13 questions, k = 8, cannot give"),
    "k": (lambda value: K - 1, "repeat_means has 8 values, k is 7"),
}


@pytest.mark.parametrize("field", EDITS)
def test_an_edited_number_is_refused_by_file_and_field(field: str, tmp_path: Path) -> None:
    content = json.loads(scored(QUESTIONS, K, 2).model_dump_json())
    edit, expected = EDITS[field]
    setter(field, edit)(content)
    path = tmp_path / "mini_acpo_offp.json"
    write_json(path, content)
    with pytest.raises(StoreError) as caught:
        read_json(path, BenchmarkScore)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert expected in message
    assert message.endswith("delete it and run the same command again")


def test_the_refusal_says_what_contradicts_what() -> None:
    content = json.loads(scored(QUESTIONS, K, 2).model_dump_json())
    content["checkpoints"]["last"]["seed_sd"] = 0.001
    with pytest.raises(ValidationError, match=r"seed_sd is 0\.001, but the standard deviation of its seeds is 0\.\d+"):
        BenchmarkScore.model_validate(content)


def test_a_mean_moved_with_all_its_parts_meets_its_denominator() -> None:
    content = json.loads(scored(QUESTIONS, K, 1).model_dump_json())
    last = content["checkpoints"]["last"]
    seed = last["seeds"][0]
    seed["repeat_means"] = [mean + 0.001 for mean in seed["repeat_means"]]
    last["avg_at_k"] = seed["avg_at_k"] = seed["pass_at_k"]["1"] = seed["avg_at_k"] + 0.001
    with pytest.raises(ValidationError, match=r"checkpoints\.last\.seeds\.0\.avg_at_k is .* which 12 questions, k = 8"):
        BenchmarkScore.model_validate(content)


def test_one_seed_has_no_spread() -> None:
    score = scored(QUESTIONS, K, 1).checkpoints["last"].model_dump()
    with pytest.raises(ValidationError, match=r"seed_sd is 0\.0, but the standard deviation of its seeds is None"):
        CheckpointScore.model_validate(score | {"seed_sd": 0.0})
