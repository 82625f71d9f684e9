"""Objectives follow their tokens to a device: nothing is made on the default device.

There is no accelerator here, so the tokens lie on the CPU and the default device is another one (`meta`): whatever an
objective makes without naming a device lies there, and cannot be combined with the tokens.
"""

from pathlib import Path

import pytest
import torch
import yaml
from objective_cases import Outcome, accumulate, assert_identical, random_batch, split

from acpo.objectives import Objective, make_objective

PRESETS = yaml.safe_load((Path(__file__).parents[3] / "config.yaml").read_text(encoding="utf-8"))["methods"]
NAMES = sorted(name for name, method in PRESETS.items() if not method.get("measured"))


def outcome(objective: Objective, stage: str) -> Outcome:
    """Loss, gradient and metrics over the micro-batches of a random mini-batch, which lies on the CPU."""
    with torch.device("cpu"):
        batches = split(random_batch(seed=3), 3)
    return accumulate(objective, [batches], stage)


@pytest.mark.parametrize("name", NAMES)
def test_every_method_runs_where_its_tokens_lie(name: str) -> None:
    objective = make_objective(PRESETS[name]["objective"], PRESETS[name]["parameters"])
    for stage in objective.stages:
        wanted = outcome(objective, stage)
        with torch.device("meta"):
            found = outcome(objective, stage)
        assert_identical(found, wanted)


def test_a_tensor_without_a_device_would_be_found() -> None:
    with torch.device("meta"), pytest.raises(RuntimeError, match="meta"):
        (torch.ones(3, device="cpu") * torch.arange(3)).tolist()
