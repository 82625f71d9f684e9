"""Welch's one-tailed t-test on repeats, against scipy and by hand; the paper's own tables pushed through it."""

import math

import numpy as np
import pytest
from made_up import made_tally
from scipy import stats

from acpo.stats.welch import implied_sd, paper_mode, welch_from_moments


def test_by_hand() -> None:
    # Means 3 and 1, variances 4 and 1, n 4 and 2: t = 2 / sqrt(1 + 1/2), df = (3/2)^2 / (1/3 + 1/4).
    found = welch_from_moments((3, 2, 4), (1, 1, 2))
    assert found is not None
    assert found.t == pytest.approx(2 / math.sqrt(1.5), abs=1e-12)
    assert found.df == pytest.approx(2.25 / (1 / 3 + 1 / 4), abs=1e-12)
    assert found.p == pytest.approx(stats.t.sf(found.t, found.df), abs=1e-12)


@pytest.mark.parametrize("k", [3, 8, 32])
def test_equals_scipy_on_the_repeats(k: int) -> None:
    rng = np.random.default_rng(k)
    ours, theirs = made_tally(rng.random((1, 50, k)) < 0.6), made_tally(rng.random((1, 50, k)) < 0.5, "dapo")
    (found,) = paper_mode(ours, theirs)
    expected = stats.ttest_ind(ours.repeat_means[0], theirs.repeat_means[0], equal_var=False, alternative="greater")
    assert found.t == pytest.approx(expected.statistic, abs=1e-10)
    assert found.df == pytest.approx(expected.df, abs=1e-9)
    assert found.p == pytest.approx(expected.pvalue, abs=1e-12)
    assert (found.treatment_n, found.baseline_n) == (k, k)
    assert found.treatment_sd == pytest.approx(ours.repeat_means[0].std(ddof=1), abs=1e-12)


def test_each_seed_against_the_same_seed_and_the_base_against_all() -> None:
    rng = np.random.default_rng(0)
    ours = made_tally(rng.random((3, 20, 4)) < 0.5, seeds=(0, 1, 2))
    theirs = made_tally(rng.random((2, 20, 4)) < 0.5, "dapo", seeds=(1, 2))
    base = made_tally(rng.random((1, 20, 4)) < 0.5, "base", seeds=(0,))
    assert [(test.treatment_seed, test.baseline_seed) for test in paper_mode(ours, theirs)] == [(1, 1), (2, 2)]
    assert [(test.treatment_seed, test.baseline_seed) for test in paper_mode(ours, base)] == [(0, 0), (1, 0), (2, 0)]


def test_without_any_spread_the_test_is_undefined_not_a_crash() -> None:
    ours, theirs = made_tally(np.ones((1, 5, 3))), made_tally(np.zeros((1, 5, 3)), "dapo")
    (found,) = paper_mode(ours, theirs)
    assert (found.t, found.df, found.p) == (None, None, None)
    assert (found.treatment_mean, found.treatment_sd) == (1.0, 0.0)


def test_spread_on_one_side_only() -> None:
    found = welch_from_moments((0.5, 0.1, 8), (0.0, 0.0, 8))
    assert found is not None
    assert found.df == pytest.approx(7)


@pytest.mark.parametrize("bad", [((1, 1, 1), (1, 1, 8)), ((1, -1, 8), (1, 1, 8))])
def test_bad_moments_are_refused(bad) -> None:
    with pytest.raises(ValueError, match=r"n >= 2 and sd >= 0"):
        welch_from_moments(*bad)


class TestPublished:
    """Table 10's dashes are where ACPO is lower in Table 2: a one-tailed p is then over a half, and is printed."""

    @pytest.mark.parametrize(
        ("acpo", "other", "n"),
        [(16.77, 19.69, 32), (16.77, 18.65, 32), (16.35, 18.02, 32), (10.10, 10.62, 32)],
        ids=["AIME24 N-OnP. DAPO", "AIME24 N-OnP. CISPO", "AIME24 OffP. DAPO", "AIME25 OffP. High-Entropy"],
    )
    def test_dashes_have_a_p(self, acpo: float, other: float, n: int) -> None:
        found = welch_from_moments((acpo, 4.0, n), (other, 4.0, n))
        assert found is not None
        assert 0.5 < found.p < 1

    @pytest.mark.parametrize(
        ("acpo", "other", "p", "n"), [(79.78, 78.05, 0.002, 8), (31.02, 29.92, 0.143, 8), (14.37, 11.88, 0.005, 32)]
    )
    def test_table_10_back_from_table_2_with_the_implied_spread(
        self, acpo: float, other: float, p: float, n: int
    ) -> None:
        sd = implied_sd(acpo - other, p, n)
        found = welch_from_moments((acpo, sd, n), (other, sd, n))
        assert found is not None
        assert found.p == pytest.approx(p, rel=1e-9)
        assert 0.5 < sd < 6

    def test_no_spread_makes_a_loss_significant(self) -> None:
        with pytest.raises(ValueError, match="no spread makes"):
            implied_sd(-1.0, 0.01, 8)
