"""Loss and gradient inside verl's worker equal the library's, for every method, split into micro-batches, and ranks.

verl's real worker and FSDP2 engine train a tiny Llama over gloo (`training_rank.py`); the same tokens go through
transformers and the objectives directly. The first mini-batch is on-policy, the second far from it.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from acpo.engines.verl.records import merge_tokens, read_updates
from acpo.objectives import Objective, TokenBatch, make_objective, pooled_statistics
from acpo.results import TOKEN_SCHEMA
from acpo.store import read_table

pytestmark = pytest.mark.verl

ROOT = Path(__file__).parents[2]
PRESETS = yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8"))["methods"]
VARIANTS = {
    "grpo": ("grpo", {}),
    "dapo": ("dapo", {}),
    "dapo, token-mean": ("dapo", {"aggregation": "token-mean"}),
    "cispo": ("cispo", {}),
    "cispo gated": ("cispo_released", {}),
    "high_entropy": ("high_entropy", {}),
    "high_entropy, batch": ("high_entropy", {"scope": "batch"}),
    "low_entropy": ("low_entropy", {}),
    "low_entropy, batch, all": ("low_entropy", {"scope": "batch", "denominator": "all"}),
    "ar_lopti": ("ar_lopti", {}),
    "acpo": ("acpo", {}),
    "acpo, ranks": ("acpo", {"pool": "ranks"}),
    "acpo, microbatch": ("acpo", {"pool": "microbatch"}),
    "acpo_released": ("acpo_released", {}),
}
SPLITS: list[int | str] = [1, 2, 4, "all", "dynamic"]
RANKS = [1, 2]
MINI_BATCH = 16
MINI_BATCHES = 2
TEMPERATURE = 0.8
DYNAMIC_LIMIT = 60
TOLERANCE = 2e-5
FAULTS = {
    "gradient not multiplied by ranks": ("dapo", 2),
    "statistics of the micro-batch": ("acpo", 1),
    "normalised by the micro-batch": ("dapo", 1),
}


@dataclass(frozen=True)
class Case:
    variant: str
    micro: int | str
    fault: str | None = None
    tampering: str | None = None
    learning_rate: float = 0.0
    precision: str = "fp32"

    @property
    def name(self) -> str:
        return "_".join(map(str, astuple(self))).replace(",", "").replace(" ", "_")

    @property
    def preset(self) -> dict[str, Any]:
        method, changes = VARIANTS[self.variant]
        preset = PRESETS[method]
        return {"objective": preset["objective"], "parameters": preset["parameters"] | changes}

    def objective(self) -> Objective:
        return make_objective(self.preset["objective"], self.preset["parameters"])


def _cases() -> list[Case]:
    """A pool that is not the mini-batch depends on the split by definition: there verl's own split has no reference."""
    cases = [
        Case(variant, micro)
        for variant in VARIANTS
        for micro in SPLITS
        if micro != "dynamic" or Case(variant, micro).objective().pool == "minibatch"
    ]
    return cases + [Case(variant, 2, fault) for fault, (variant, _) in FAULTS.items()]


CASES = _cases()
HALF = Case("acpo", "all", precision="bf16")
WRONG_OLD = Case("dapo", 4, tampering="old log-probabilities of another policy")
POISONED = Case("dapo", 4, tampering="infinite advantage", learning_rate=1e-2)
MOVING = Case("dapo", 4, learning_rate=1e-2)
OTHERS = [HALF, WRONG_OLD, POISONED, MOVING]  # the one that moves the policy comes last


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model and tokens, the cases, and what verl made of them on one and on two ranks."""
    place = tmp_path_factory.mktemp("equality")
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=24, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        intermediate_size=48, max_position_embeddings=64, tie_word_embeddings=False, initializer_range=0.4,
        bos_token_id=1, pad_token_id=0, eos_token_id=2,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(place / "model")
    torch.save(_tokens(place / "model"), place / "tokens.pt")
    cases = [{"name": case.name, **asdict(case), **case.preset} for case in [*CASES, *OTHERS]]
    (place / "cases.json").write_text(json.dumps(cases))
    processes = {log: process for ranks in RANKS for log, process in _start_ranks(place, ranks).items()}
    try:
        for log, process in processes.items():
            assert process.wait(timeout=600) == 0, log.read_text()[-3000:]
    finally:
        for process in processes.values():
            process.kill()
    return place


def _tokens(model: Path) -> dict[str, Any]:
    """Prompts and responses of many lengths; one response has an empty mask, and one has a hole in it."""
    generator = torch.Generator().manual_seed(1)
    rows = MINI_BATCH * MINI_BATCHES

    def text(shortest: int, longest: int) -> list[Tensor]:
        lengths = torch.randint(shortest, longest + 1, (rows,), generator=generator).tolist()
        return [torch.randint(3, 24, (length,), generator=generator) for length in lengths]

    prompts, responses = text(2, 7), text(1, 20)
    mask = [torch.ones_like(response) for response in responses]
    mask[3].zero_()
    mask[MINI_BATCH + 5].zero_()
    mask[MINI_BATCH + 6][1:3] = 0
    advantage = torch.randn(rows, generator=generator)
    tokens = {
        "prompts": prompts,
        "responses": responses,
        "response_mask": mask,
        "advantages": [value * part.float() for value, part in zip(advantage, mask, strict=True)],
        "temperature": TEMPERATURE,
        "mini_batch": MINI_BATCH,
        "dynamic_limit": DYNAMIC_LIMIT,
    }
    with torch.no_grad():
        log_prob, _ = _scores(LlamaForCausalLM.from_pretrained(model), tokens, range(rows))
    old = [part[: len(response)].clone() for part, response in zip(log_prob, responses, strict=True)]
    for row in range(MINI_BATCH, rows):
        old[row] = (old[row] + 0.5 * torch.randn(old[row].shape, generator=generator)).clamp(max=-1e-3)
    return tokens | {"old_log_probs": old}


def _start_ranks(place: Path, ranks: int) -> dict[Path, "subprocess.Popen[bytes]"]:
    """Start the ranks of one run; returns them by their logs."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    shared = {"WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    shared |= {"OMP_NUM_THREADS": 1, "HF_HUB_OFFLINE": 1}
    shared["VERL_USE_EXTERNAL_MODULES"] = "acpo.engines.verl.cpu,acpo.engines.verl.plugin"
    script = [sys.executable, str(Path(__file__).with_name("training_rank.py")), str(place)]
    started = {}
    for rank in range(ranks):
        environment = os.environ | {name: str(value) for name, value in {**shared, "RANK": rank}.items()}
        path = place / f"log_{ranks}_{rank}.txt"
        with path.open("w") as log:
            started[path] = subprocess.Popen(script, env=environment, stdout=log, stderr=subprocess.STDOUT)
    return started


def _scores(model: LlamaForCausalLM, tokens: dict[str, Any], rows: range) -> tuple[Tensor, Tensor]:
    """Score each response by itself: (rows, longest) log-probability and entropy, NaN at padding."""
    width = max(len(tokens["responses"][row]) for row in rows)
    log_probs, entropies = [], []
    for row in rows:
        prompt, response = tokens["prompts"][row], tokens["responses"][row]
        logits = model(torch.cat([prompt, response]).unsqueeze(0)).logits[0, len(prompt) - 1 : -1] / TEMPERATURE
        log_softmax = logits.log_softmax(-1)
        room = (0, width - len(response))
        chosen = log_softmax.gather(1, response.unsqueeze(1)).squeeze(1)
        log_probs.append(torch.nn.functional.pad(chosen, room, value=torch.nan))
        entropy = -(log_softmax.exp() * log_softmax).sum(1)
        entropies.append(torch.nn.functional.pad(entropy, room, value=torch.nan))
    return torch.stack(log_probs), torch.stack(entropies)


class Reference:
    """The library's losses and gradients on the same tokens, with plain torch."""

    def __init__(self, directory: Path) -> None:
        self.tokens = torch.load(directory / "tokens.pt", weights_only=True)
        self.model = LlamaForCausalLM.from_pretrained(directory / "model")
        starts = range(0, MINI_BATCH * MINI_BATCHES, MINI_BATCH)
        self.scores = [_scores(self.model, self.tokens, range(start, start + MINI_BATCH)) for start in starts]

    def updates(self, objective: Objective, micro: int | str, ranks: int) -> list[tuple[float, dict[str, Tensor]]]:
        """Loss and gradients of every update, in order."""
        return [
            self._update(objective, number, micro, ranks, stage)
            for stage in objective.stages
            for number in range(MINI_BATCHES)
        ]

    def _update(
        self, objective: Objective, number: int, micro: int | str, ranks: int, stage: str
    ) -> tuple[float, dict[str, Tensor]]:
        start, part = number * MINI_BATCH, MINI_BATCH // ranks
        size = part if isinstance(micro, str) else micro
        log_prob, entropy = self.scores[number]
        parts = [
            [
                self._batch(log_prob, entropy, start, first, size)
                for first in range(rank * part, (rank + 1) * part, size)
            ]
            for rank in range(ranks)
        ]
        statistics = pooled_statistics(objective, parts)
        loss = torch.stack(
            [
                objective.loss(batch, known, stage).value
                for rank, known_of_rank in zip(parts, statistics, strict=True)
                for batch, known in zip(rank, known_of_rank, strict=True)
            ]
        ).sum()
        names, parameters = zip(*self.model.named_parameters(), strict=True)
        gradients = torch.autograd.grad(loss, parameters, retain_graph=True)
        return loss.item(), dict(zip(names, gradients, strict=True))

    def _batch(self, log_prob: Tensor, entropy: Tensor, start: int, first: int, size: int) -> TokenBatch:
        rows = range(start + first, start + first + size)
        chosen = slice(first, first + size)

        def padded(name: str) -> Tensor:
            out = torch.full((size, log_prob.shape[1]), torch.nan)
            for place, row in enumerate(rows):
                out[place, : len(self.tokens[name][row])] = self.tokens[name][row].float()
            return out

        mask = padded("response_mask") == 1
        advantages = torch.where(mask, padded("advantages"), torch.nan)
        advantage = torch.tensor(np.nanmax(advantages.numpy(), axis=1, initial=-np.inf)).float()
        return TokenBatch(
            log_prob=log_prob[chosen],
            old_log_prob=padded("old_log_probs"),
            mask=mask,
            advantage=torch.where(mask.any(1), advantage, 0.0),
            entropy=entropy[chosen].detach(),
        )


@pytest.fixture(scope="module")
def reference(directory: Path) -> Reference:
    return Reference(directory)


@pytest.fixture(scope="module")
def results(directory: Path) -> dict[int, dict[str, Any]]:
    return {ranks: torch.load(directory / f"results_{ranks}.pt", weights_only=True) for ranks in RANKS}


@pytest.fixture(scope="module")
def table(request: pytest.FixtureRequest) -> Iterator[dict[tuple[str, int], dict[str, float]]]:
    """Largest relative difference by method, ranks and split; printed when the module is done."""
    differences: dict[tuple[str, int], dict[str, float]] = {}
    yield differences
    frame = pd.DataFrame(differences).T.rename_axis(["method", "ranks"])
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print("\nlargest relative difference of loss and gradient, verl against the library, by micro-batch size")
        print(frame.to_string(float_format="{:.1e}".format, na_rep="-"))


def _difference(made: dict[str, Any], expected: list[tuple[float, dict[str, Tensor]]]) -> float:
    """Largest over updates of the relative difference of the loss and of each parameter's gradient (norms)."""
    assert len(made["gradients"]) == len(made["loss"]) == len(expected)
    worst = 0.0
    for loss, gradients, (expected_loss, expected_gradients) in zip(
        made["loss"], made["gradients"], expected, strict=True
    ):
        assert gradients.keys() == expected_gradients.keys()
        worst = max(worst, abs(loss - expected_loss) / max(abs(expected_loss), 1e-2))
        whole = torch.cat([value.flatten() for value in expected_gradients.values()]).norm()
        for name, value in expected_gradients.items():
            worst = max(worst, ((gradients[name] - value).norm() / max(value.norm(), 1e-2 * whole)).item())
    return worst


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_loss_and_gradient_equal_the_library(variant, ranks, reference, results, table) -> None:
    row = table.setdefault((variant, ranks), {})
    cases = [case for case in CASES if case.variant == variant and case.fault is None]
    for case in cases:
        expected = reference.updates(case.objective(), case.micro, ranks)
        row[str(case.micro)] = _difference(results[ranks][case.name], expected)
    assert max(row.values()) < TOLERANCE, row


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_detected(fault, reference, results) -> None:
    variant, ranks = FAULTS[fault]
    case = Case(variant, 2, fault)
    expected = reference.updates(case.objective(), case.micro, ranks)
    assert _difference(results[ranks][case.name], expected) > 100 * TOLERANCE


@pytest.mark.parametrize("ranks", RANKS)
def test_only_a_statistic_of_the_policy_costs_a_forward_pass(ranks, results) -> None:
    costly = {"acpo", "high_entropy, batch", "low_entropy, batch, all"}
    for case in CASES:
        expected = MINI_BATCHES if case.variant in costly else 0
        assert results[ranks][case.name]["forward_passes"] == expected, case


@pytest.mark.parametrize("ranks", RANKS)
def test_learning_rate_advances_once_a_rollout_and_every_update_is_logged(ranks, results) -> None:
    for case in CASES:
        made = results[ranks][case.name]
        assert made["scheduler_steps"] == 1
        assert made["updates_logged"] == MINI_BATCHES * len(case.objective().stages)


@pytest.mark.parametrize("ranks", RANKS)
def test_a_gradient_that_is_not_finite_moves_nothing_and_is_counted(ranks, directory, results) -> None:
    assert results[ranks][POISONED.name]["moved"] == 0
    assert results[ranks][MOVING.name]["moved"] > 1e-3
    for case, skipped in ((POISONED, 1.0), (MOVING, 0.0)):
        rows = read_updates(directory / f"records_{ranks}" / case.name, 1)
        assert rows["skipped"].tolist() == [skipped] * MINI_BATCHES


@pytest.mark.parametrize("ranks", RANKS)
def test_old_log_probabilities_of_another_policy_are_refused(ranks, results) -> None:
    assert (
        "rollout 1: before any update the importance ratio differs from 1 by up to 0.0100"
        in (results[ranks][WRONG_OLD.name]["error"])
    )


@pytest.mark.parametrize("ranks", RANKS)
def test_old_log_probabilities_in_bf16_are_accepted(ranks, results) -> None:
    (error,) = results[ranks][HALF.name]["on_policy_error"]
    assert error < 0.5
    assert results[ranks][HALF.name]["updates_logged"] == MINI_BATCHES


@pytest.mark.parametrize("ranks", RANKS)
def test_recorded_updates_are_those_of_the_library(ranks, directory, reference) -> None:
    case = Case("ar_lopti", 2)
    objective = case.objective()
    rows = read_updates(directory / f"records_{ranks}" / case.name, 1)
    assert rows["stage"].tolist() == [stage for stage in objective.stages for _ in range(MINI_BATCHES)]
    assert rows["rollout"].eq(1).all()
    assert rows["skipped"].eq(0).all()
    for row, (loss, gradients) in zip(rows.itertuples(), reference.updates(objective, 2, ranks), strict=True):
        norm = torch.cat([value.flatten() for value in gradients.values()]).norm().item()
        assert row.loss == pytest.approx(loss, rel=1e-4, abs=1e-6)
        assert row.gradient_norm == pytest.approx(norm, rel=1e-4)
    masks = reference.tokens["response_mask"]
    counts = [sum(int(mask.sum()) for mask in masks[start : start + MINI_BATCH]) for start in (0, MINI_BATCH)]
    assert rows["tokens"].tolist() == counts * 2
    assert rows["responses"].tolist() == [MINI_BATCH - 1] * 4


@pytest.mark.parametrize("ranks", RANKS)
def test_token_store_holds_every_token_of_every_update(ranks, directory, reference, tmp_path) -> None:
    records = directory / f"records_{ranks}" / Case("ar_lopti", 4).name
    merge_tokens(records / "tokens_000001", tmp_path / "tokens.parquet")
    rows = read_table(tmp_path / "tokens.parquet", TOKEN_SCHEMA)
    tokens, expected = reference.tokens, []
    for update in range(1, 5):
        start = (update - 1) % MINI_BATCHES * MINI_BATCH
        for row in range(start, start + MINI_BATCH):
            for position in tokens["response_mask"][row].nonzero().flatten().tolist():
                token, old = tokens["responses"][row][position].item(), tokens["old_log_probs"][row][position].item()
                advantage = tokens["advantages"][row][position].item()
                expected.append((update, f"question{row // 4}", row % 4, position, token, old, advantage))
    columns = ["update", "question", "sample", "position", "token", "old_log_prob", "advantage"]
    frame = pd.DataFrame(expected, columns=columns).sort_values(columns[:4]).reset_index(drop=True)
    pd.testing.assert_frame_equal(rows[columns], frame, check_dtype=False)
    assert rows["run"].eq("mini_verl/seed0").all()
    assert rows["rollout"].eq(1).all()
    assert rows["mask"].all()
    first = rows[rows["update"] == 1]
    np.testing.assert_allclose(first["log_prob"], first["old_log_prob"], atol=1e-5)
