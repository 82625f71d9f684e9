"""Registry, parameters, metrics and dtypes."""

import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from objective_cases import (
    CONFIGURED,
    PAPER,
    RELEASED,
    VARIANTS,
    evaluate,
    every_method,
    every_variant,
    from_probabilities,
    from_ratios,
    paper,
    preset,
    random_batch,
    released,
)
from pydantic import ValidationError

import acpo.objectives
from acpo.objectives import make_objective, objective_names, parameters_model, registry

# Modules of the package that methods share.
SHARED = {
    *("__init__", "advantage", "aggregation", "base", "batch", "binning", "clipping", "metrics", "pooling"),
    *("registry", "selection", "statistics"),
}


def test_methods_are_the_files_of_the_package():
    files = {path.stem for path in Path(acpo.objectives.__file__).parent.glob("*.py")}
    assert files >= SHARED
    assert set(objective_names()) == files - SHARED
    assert set(PAPER) == set(RELEASED) <= set(objective_names())


def test_every_method_is_tested_with_the_parameters_that_it_is_configured_with():
    assert list(CONFIGURED) == objective_names(), "a method without an entry in config.yaml"
    assert {name for name, _ in VARIANTS} == set(objective_names())


def test_the_papers_methods_are_configured_as_the_cases_by_hand_assume():
    assert {name: CONFIGURED[name] for name in PAPER} == PAPER


def test_one_new_file_is_one_new_method(tmp_path: Path, monkeypatch):
    (tmp_path / "unclipped.py").write_text(
        "from acpo.objectives.grpo import Grpo\n\n\nclass Unclipped(Grpo):\n    '''A method.'''\n"
    )
    monkeypatch.setattr(acpo.objectives, "__path__", [*acpo.objectives.__path__, str(tmp_path)])
    registry._classes.cache_clear()
    try:
        assert "unclipped" in objective_names()
        objective = make_objective("unclipped", PAPER["grpo"])
        assert type(objective).__name__ == "Unclipped"
    finally:
        registry._classes.cache_clear()
        sys.modules.pop("acpo.objectives.unclipped", None)


@pytest.mark.parametrize(("name", "nearest"), [("acpo2", "acpo"), ("highentropy", "high_entropy"), ("DAPO", "dapo")])
def test_an_unknown_method_names_the_nearest(name, nearest):
    for call in (lambda: make_objective(name, {}), lambda: parameters_model(name)):
        with pytest.raises(ValueError, match=rf"unknown objective '{name}': did you mean '{nearest}'"):
            call()


@every_variant
def test_statistics_need_the_policy_where_the_method_says_so(name, change):
    objective, batch = preset(name, **change), random_batch(1)
    other = replace(batch, log_prob=batch.log_prob - 0.3, entropy=batch.entropy + 0.1)
    one, two = objective.statistics(batch), objective.statistics(other)
    same = torch.equal(one.sums, two.sums) and torch.equal(one.values, two.values)
    assert same is not objective.statistic_needs_policy


@every_method
def test_every_parameter_is_required_and_no_other_accepted(name):
    model = parameters_model(name)
    assert set(model.model_fields) == set(CONFIGURED[name])
    for key in CONFIGURED[name]:
        rest = {k: v for k, v in CONFIGURED[name].items() if k != key}
        with pytest.raises(ValidationError, match=f"{key}\n.*Field required"):
            make_objective(name, rest)
    with pytest.raises(ValidationError, match=r"epsilon\n.*Extra inputs"):
        preset(name, epsilon=0.2)
    assert make_objective(name, model.model_validate(CONFIGURED[name])).parameters == model.model_validate(
        CONFIGURED[name]
    )


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("dapo", {"clip_low": -0.1}),
        ("dapo", {"clip_high": math.inf}),
        ("dapo", {"dual_clip": 1.0}),
        ("dapo", {"aggregation": "mean"}),
        ("dapo", {"aggregation": "seq-mean-token-sum-norm"}),
        ("dapo", {"aggregation": {"mode": "seq-mean-token-sum-norm", "divisor": 0}}),
        ("high_entropy", {"ratio": 1.0}),
        ("high_entropy", {"ratio": 0.0}),
        ("high_entropy", {"scope": "group"}),
        ("acpo", {"bins": 0}),
        ("acpo", {"clip_min": 4.0}),
        ("acpo", {"pool": "global"}),
    ],
)
def test_values_out_of_range_are_refused(name, change):
    with pytest.raises(ValidationError, match=next(iter(change))):
        paper(name, **change)


def test_a_stage_that_does_not_exist_is_refused():
    batch = random_batch(30)
    with pytest.raises(ValueError, match="stage 'all' is not one of low_probability, high_probability"):
        paper("ar_lopti")(batch)
    with pytest.raises(ValueError, match="stage 'low_probability' is not one of all"):
        paper("dapo")(batch, "low_probability")


def test_pool_is_the_minibatch_unless_acpo_says_otherwise():
    assert {name: paper(name).pool for name in PAPER} == dict.fromkeys(PAPER, "minibatch")
    assert released("acpo").pool == "microbatch"


def test_summary_keys():
    logged = evaluate(paper("acpo"), random_batch(31)).summary
    overall = {
        *("tokens", "responses", "approx_kl", "clip_fraction", "dual_clip_fraction", "entropy"),
        *("selected_fraction", "ratio_mean", "ratio_max", "clip_width_mean", "clip_width_max"),
    }
    per_bin = {
        *("count", "ratio_mean", "ratio_std", "clip_width_low", "clip_width_high", "clip_fraction"),
        *("clip_low_fraction", "clip_high_fraction", "gradient_std"),
    }
    assert set(logged) == overall | {f"bin{b}/{key}" for b in range(1, 6) for key in per_bin}
    assert all(type(value) is float for value in logged.values())


def test_an_empty_bin_is_nan_with_count_zero():
    logged = evaluate(paper("dapo"), from_ratios([1.1], [1.0])).summary
    assert (logged["bin1/count"], logged["bin2/count"]) == (1, 0)
    assert all(math.isnan(v) for k, v in logged.items() if k.startswith("bin2/") and k != "bin2/count")


def test_approx_kl_and_bins_by_hand():
    logged = evaluate(paper("dapo"), from_ratios([2.0, 0.5, 0.5], [1.0, 1.0, 1.0])).summary
    assert logged["approx_kl"] == pytest.approx(math.log(2) / 3)
    assert (logged["ratio_mean"], logged["ratio_max"]) == (pytest.approx(1.0), pytest.approx(2.0))
    assert (logged["clip_width_mean"], logged["clip_width_max"]) == pytest.approx((0.3, 0.3))
    assert logged["bin1/clip_width_low"] == pytest.approx(0.2)


def test_maxima_ignore_padding():
    # A padded slot has ratio 1, above every response token's here.
    batch = from_probabilities([[0.5, 0.5]] * 2, [[0.4, 0.3], [0.2, 0.1]], [1.0, 1.0], [1, 2])
    assert evaluate(paper("dapo"), batch).summary["ratio_max"] == pytest.approx(0.8)


def test_lopti_threshold_belongs_to_the_second_pass():
    batch = from_ratios([1.0], [1.0], old=0.5)
    assert batch.behavior_prob.item() == 0.5
    fractions = [evaluate(paper("ar_lopti"), batch, s).summary["selected_fraction"] for s in paper("ar_lopti").stages]
    assert fractions == [0, 1]


@every_method
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_dtype_of_the_loss(name, dtype):
    source = random_batch(32)
    cast = type(source)(
        source.log_prob.detach().to(dtype).requires_grad_(),
        source.old_log_prob.to(dtype),
        source.mask,
        source.advantage.float(),
        source.entropy.to(dtype),
    )
    objective = preset(name)
    loss = objective(cast, objective.stages[0])
    loss.value.backward()
    # Half precision is raised to float32 before the ratio is taken.
    assert loss.value.dtype == (torch.float32 if dtype == torch.bfloat16 else dtype)
    exact = evaluate(objective, source)
    assert loss.value.item() == pytest.approx(exact.value, abs=1e-6 if dtype != torch.bfloat16 else 0.1)
    assert cast.log_prob.grad.isfinite().all()


def test_a_nan_on_a_response_token_is_not_hidden():
    batch = from_ratios([1.0, math.nan], [1.0, 1.0])
    for name in CONFIGURED:
        objective = preset(name)
        assert math.isnan(objective(batch, objective.stages[0]).value.item())
