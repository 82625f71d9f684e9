"""Impossible importance ratios are refused."""

import math

import pytest

from acpo.engines import EngineError
from acpo.engines.verl.ratios import RatioCheck, RatioError


def facts(spread: float = 0.0, norm: float = 1.0) -> dict[str, float]:
    """Metrics of an update whose first probability bin has this spread and whose others are empty."""
    bins = {f"bin{number}/count": 0.0 for number in range(2, 6)} | {f"bin{n}/ratio_std": math.nan for n in range(2, 6)}
    return bins | {"bin1/count": 5.0, "bin1/ratio_std": spread, "gradient_norm": norm}


@pytest.mark.parametrize(("precision", "error", "spread"), [("fp32", 9e-4, 5e-4), ("bf16", 0.3, 0.04)])
def test_rounding_is_allowed(precision, error, spread) -> None:
    RatioCheck(1, precision).add(facts(spread), error)


@pytest.mark.parametrize(
    ("precision", "error", "spread"),
    [("fp32", 2e-3, 0.0), ("fp32", 0.0, 2e-3), ("bf16", 0.3, 0.11), ("fp32", math.inf, 0.0), ("fp32", 0.0, math.nan)],
)
def test_wrong_old_log_probabilities_are_refused(precision, error, spread) -> None:
    with pytest.raises(RatioError, match="rollout 7: before any update"):
        RatioCheck(7, precision).add(facts(spread), error)


def test_later_updates_may_be_anywhere() -> None:
    check = RatioCheck(1, "fp32")
    check.add(facts(), 0.0)
    check.add(facts(2.0), 5.0)
    check.finish()


def test_ratios_that_never_leave_one_are_refused() -> None:
    check = RatioCheck(3, "fp32")
    for _ in range(4):
        check.add(facts(), 0.0)
    with pytest.raises(RatioError, match="rollout 3: every importance ratio is exactly 1 in all of its 4 updates"):
        check.finish()


@pytest.mark.parametrize("norm", [0.0, math.inf, math.nan])
def test_a_policy_that_did_not_move_keeps_its_ratios(norm) -> None:
    check = RatioCheck(1, "fp32")
    for _ in range(4):
        check.add(facts(norm=norm), 0.0)
    check.finish()


def test_a_gradient_of_the_last_update_cannot_show() -> None:
    check = RatioCheck(1, "fp32")
    check.add(facts(norm=0.0), 0.0)
    check.add(facts(norm=1.0), 0.0)
    check.finish()


def test_an_unknown_precision_is_refused() -> None:
    with pytest.raises(EngineError, match="'fp16' is not one of fp32, bf16"):
        RatioCheck(1, "fp16").add(facts(), 0.0)
