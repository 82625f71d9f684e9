"""Differences over seeds: intervals by hand, and what they allow to be said."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acpo.audit.comparison import Difference, all_positive, paired
from acpo.audit.evidence import MissingEvidenceError


def test_interval_of_three_seeds_by_hand() -> None:
    # Mean 2, standard deviation 1, t(0.975, 2) = 4.30265.
    low, high = Difference([1.0, 2.0, 3.0]).interval()
    assert low == pytest.approx(2 - 4.30265 / math.sqrt(3), abs=1e-4)
    assert high == pytest.approx(2 + 4.30265 / math.sqrt(3), abs=1e-4)


def test_more_comparisons_widen_the_interval() -> None:
    difference = Difference([1.0, 2.0, 3.0])
    # t(1 - 0.05 / 20, 2) = 14.0890 for ten intervals that hold together.
    assert difference.interval(10)[1] == pytest.approx(2 + 14.0890 / math.sqrt(3), abs=1e-3)


def test_seeds_are_paired_and_a_base_model_stands_for_every_seed() -> None:
    assert paired({0: 1.0, 1: 3.0, 2: 9.0}, {1: 1.0, 0: 0.5}, "x").values == [0.5, 2.0]
    assert paired({0: 1.0, 1: 3.0}, {0: 0.5}, "x").values == [0.5, 2.5]


@pytest.mark.parametrize(("first", "second"), [({0: 1.0}, {0: 0.5}), ({0: 1.0, 1: 2.0}, {2: 1.0, 3: 1.0}), ({}, {})])
def test_one_seed_allows_no_inference(first: dict[int, float], second: dict[int, float]) -> None:
    with pytest.raises(MissingEvidenceError, match="two training seeds or more of x and y"):
        paired(first, second, "x and y")


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [
        ([[1.0, 1.1, 0.9], [2.0, 2.1, 2.0]], "reproduced"),
        ([[1.0, 1.1, 0.9], [0.1, -0.1, 0.05]], "not reproduced"),
        ([[1.0, 1.1, 0.9], [-2.0, -2.1, -2.0]], "contradicted"),
        ([[-0.5, -2.0, -0.1]], "not reproduced"),
    ],
)
def test_verdicts_of_several_differences(differences: list[list[float]], verdict: str) -> None:
    assert all_positive([Difference(values) for values in differences]) == verdict


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=6), st.floats(0.01, 100))
def test_the_unit_does_not_change_the_verdict(values: list[float], scale: float) -> None:
    low, high = Difference(values).interval()
    if min(abs(low), abs(high)) > 1e-9:
        scaled = Difference([scale * value for value in values])
        assert all_positive([Difference(values)]) == all_positive([scaled])
