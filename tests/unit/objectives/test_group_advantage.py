"""Group advantage: L11, L17 to L20, L32."""

import math
import statistics

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from acpo.objectives import group_advantage


def advantage(rewards: list[float], groups: list[int] | None = None) -> list[float]:
    group = torch.tensor(groups if groups is not None else [0] * len(rewards))
    return group_advantage(torch.tensor(rewards, dtype=torch.float64), group).tolist()


def looped(rewards: list[float], groups: list[int]) -> list[float]:
    result = []
    for reward, group in zip(rewards, groups, strict=True):
        members = [r for r, g in zip(rewards, groups, strict=True) if g == group and math.isfinite(r)]
        if len(set(members)) < 2 or not math.isfinite(reward):
            result.append(0.0)
        else:
            result.append((reward - statistics.mean(members)) / (statistics.stdev(members) + 1e-6))
    return result


def test_worked_values():
    assert advantage([1, 0, 0, 1]) == pytest.approx([0.866024, -0.866024, -0.866024, 0.866024], abs=1e-6)
    three_of_ten = advantage([1] * 3 + [0] * 7)
    assert (three_of_ten[0], three_of_ten[9]) == pytest.approx((1.449135, -0.621058), abs=1e-6)
    one_of_ten = advantage([0] * 9 + [1])
    assert (one_of_ten[9], one_of_ten[0]) == pytest.approx((2.846041, -0.316227), abs=1e-6)


def test_l17_a_group_of_one_gets_zero():
    assert advantage([1, 0, 1], [7, 8, 8])[0] == 0


def test_l17_a_reward_that_is_not_finite_is_left_out():
    for bad in (math.nan, math.inf):
        got = advantage([1, bad, 0, 0, 1], [0, 0, 0, 0, 0])
        assert got[1] == 0
        assert got[:1] + got[2:] == advantage([1, 0, 0, 1])
    assert advantage([math.nan, math.nan]) == [0, 0]
    assert advantage([math.nan, 1.0]) == [0, 0]


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from([0.0, 1.0, 0.1, 0.3, 1e-6, 1 + 1e-6, 1 - 2e-6, math.nan])),
        min_size=1,
        max_size=24,
    )
)
def test_l18_vectorised_equals_looped(rows):
    groups, rewards = [g for g, _ in rows], [r for _, r in rows]
    assert advantage(rewards, groups) == pytest.approx(looped(rewards, groups), rel=1e-6, abs=1e-9)


def test_l18_epsilon_stands_outside_the_root():
    # Rewards +-1e-6 around 0: std sqrt(2) e-6, so A = 1 / (sqrt(2) + 1); inside the root it would be 0.001.
    assert advantage([1e-6, -1e-6])[0] == pytest.approx(1 / (2**0.5 + 1))


def test_l19_advantages_follow_the_group_not_the_position():
    rewards, groups = [1, 0, 0, 1, 1, 0, 5, 3], [0, 0, 0, 0, 1, 1, 2, 2]
    order = [5, 2, 7, 0, 6, 1, 4, 3]
    straight = advantage(rewards, groups)
    shuffled = advantage([rewards[i] for i in order], [groups[i] for i in order])
    assert shuffled == pytest.approx([straight[i] for i in order], abs=1e-15)
    assert advantage(rewards, [10 - g for g in groups]) == straight


@pytest.mark.parametrize("reward", [0.0, 1.0, 0.1, 0.7, 1 / 3])
def test_l20_equal_rewards_give_exactly_zero(reward):
    for dtype in (torch.float32, torch.float64):
        got = group_advantage(torch.full((7,), reward, dtype=dtype), torch.zeros(7, dtype=torch.int64))
        assert got.tolist() == [0] * 7
        assert got.dtype == dtype


def test_l32_shapes_are_checked():
    with pytest.raises(ValueError, match=r"got \(2, 1\) and \(2,\)"):
        group_advantage(torch.zeros(2, 1), torch.zeros(2, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"got \(3,\) and \(2,\)"):
        group_advantage(torch.zeros(3), torch.zeros(2, dtype=torch.int64))
