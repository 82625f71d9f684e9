"""The reward that verl trains on is the task's verdict."""

import pytest

from acpo.engines.verl.reward import compute_score
from acpo.errors import ConfigError
from acpo.tasks import load_task

GOLD = "2 5 9 to 19"
RIGHT = "9 - 2 = 7 , 7 * 5 = 35 no 2 * 5 = 10 , 10 + 9 = 19 yes"


@pytest.mark.parametrize(
    ("response", "reward"),
    [
        (RIGHT, 1.0),
        (RIGHT.removesuffix(" yes"), 0.0),
        ("9 - 2 = 7 , 7 * 5 = 35 yes", 0.0),
        ("", 0.0),
        ("yes " * 100_000, 0.0),
        ("\x00__import__('os') yes", 0.0),
    ],
)
def test_reward_is_the_verdict(response: str, reward: float) -> None:
    assert compute_score("countdown_mini", response, GOLD, {"id": GOLD}, num_turns=2) == {
        "score": reward,
        "acc": reward,
    }
    assert bool(reward) == load_task("countdown_mini").grade(response, GOLD).correct


def test_bounded_by_the_task_own_limits() -> None:
    assert compute_score("math", "\\boxed{9^{9^{9^{9}}}}", "\\boxed{1}")["score"] == 0.0
    assert compute_score("math", "so \\boxed{\\frac{1}{2}}", "0.5")["score"] == 1.0


def test_unknown_task_is_refused() -> None:
    with pytest.raises(ConfigError, match="the task 'gsm8k' is not part of this version"):
        compute_score("gsm8k", "1", "1")
