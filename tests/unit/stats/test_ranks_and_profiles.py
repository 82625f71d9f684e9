"""Ranks, Friedman, Nemenyi, interquartile mean and profiles: published examples and hand-worked ones."""

import math

import numpy as np
import pytest
from scipy import stats

from acpo.stats.aggregate import interquartile_mean, performance_profile, stratified_resamples
from acpo.stats.ranks import critical_difference, friedman, ranks

# Tables 1 and 2: AR-Lopti, High-Entropy, Low-Entropy, DAPO, CISPO, ACPO on 18 configurations.
PUBLISHED = np.array(
    [
        [
            65.82, 57.41, 45.5, 43.33, 68.92, 66.58, 29.14, 25.14, 73.75,
            63.92, 44.88, 34.94, 15.21, 8.75, 3.96, 2.08, 33.6, 24.0,
        ],
        [
            70.58, 73.76, 45.0, 43.5, 64.33, 61.83, 29.08, 29.27, 76.88,
            75.22, 50.75, 46.39, 14.37, 14.06, 7.81, 10.62, 33.54, 34.54,
        ],
        [
            61.81, 74.04, 43.17, 43.0, 67.0, 65.08, 28.72, 25.05, 75.85,
            72.47, 48.95, 40.81, 16.04, 11.15, 9.48, 4.58, 34.69, 26.61,
        ],
        [
            73.27, 74.38, 44.33, 44.0, 68.42, 65.75, 29.92, 30.47, 78.05,
            76.72, 51.2, 46.84, 19.69, 18.02, 11.88, 6.56, 41.44, 37.2,
        ],
        [
            74.25, 55.12, 43.92, 44.83, 69.17, 65.67, 30.51, 29.55, 78.57,
            76.3, 49.25, 46.08, 18.65, 13.44, 10.0, 8.33, 40.61, 39.1,
        ],
        [
            75.74, 76.27, 45.5, 46.42, 69.83, 66.58, 31.02, 31.66, 79.78,
            80.48, 54.37, 51.2, 16.77, 16.35, 14.37, 10.1, 42.83, 42.17,
        ],
    ]
).T  # fmt: skip


def test_the_papers_average_ranks_need_min() -> None:
    """Sec. 5.2: ACPO 1.22 with 15 first and 2 second places, DAPO 2.56, CISPO 3.11."""
    placed = ranks(PUBLISHED, "min")
    assert placed.mean(0)[3:].round(2).tolist() == [2.56, 3.11, 1.22]
    assert ((placed[:, 5] == 1).sum(), (placed[:, 5] == 2).sum()) == (15, 2)
    assert ranks(PUBLISHED, "average").mean(0)[5].round(2) == 1.28


def test_ties_by_hand() -> None:
    scores = np.array([[0.5, 0.7, 0.7, 0.1]])
    assert ranks(scores, "min").tolist() == [[3, 1, 1, 4]]
    assert ranks(scores, "average").tolist() == [[3, 1.5, 1.5, 4]]
    assert ranks(np.array([[0.1 + 0.2, 0.3]]), "min").tolist() == [[1, 1]]


def test_friedman_equals_scipy_and_needs_three_methods() -> None:
    found = friedman(PUBLISHED)
    assert found is not None
    expected = stats.friedmanchisquare(*PUBLISHED.T)
    assert (found.statistic, found.p, found.df) == (
        pytest.approx(expected.statistic),
        pytest.approx(expected.pvalue),
        5,
    )
    assert friedman(PUBLISHED[:, :2]) is None
    assert friedman(PUBLISHED[:1]) is None
    assert friedman(np.ones((4, 3))) is None


def test_friedman_by_hand() -> None:
    # Three methods in the same order on four configurations: ranks 1 2 3.
    found = friedman(np.tile([3.0, 2, 1], (4, 1)))
    assert found is not None
    assert found.statistic == pytest.approx(12 * 4 / (3 * 4) * ((1 - 2) ** 2 + (3 - 2) ** 2))


@pytest.mark.parametrize(("methods", "quantile"), [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (10, 3.164)])
def test_critical_difference_of_demsar_2006(methods: int, quantile: float) -> None:
    """Table 5(a) there: q at 0.05; its example has four methods on 14 data sets and a difference of 1.25."""
    expected = quantile * math.sqrt(methods * (methods + 1) / (6 * 14))
    assert critical_difference(methods, 14, 0.05) == pytest.approx(expected, rel=5e-4)


def test_interquartile_mean_by_hand() -> None:
    assert interquartile_mean(np.array([8.0, 1, 3, 4, 2, 5, 7, 100])) == pytest.approx((3 + 4 + 5 + 7) / 4)
    assert interquartile_mean(np.array([[1.0, 2, 3], [4, 5, 9]])) == pytest.approx([2, 6])


def test_profile_by_hand() -> None:
    found = performance_profile(np.array([0.1, 0.4, 0.4, 0.9]), np.array([0, 0.1, 0.4, 0.5, 1]))
    assert found.tolist() == [1, 0.75, 0.25, 0.25, 0]


def test_runs_are_resampled_within_their_configuration() -> None:
    scores = np.array([[0.0, 10], [1, 11], [2, 12]])
    drawn = stratified_resamples(scores, 2000, np.random.default_rng(0)).reshape(2000, 3, 2)
    assert set(np.unique(drawn[:, :, 0])) == {0, 1, 2}
    assert set(np.unique(drawn[:, :, 1])) == {10, 11, 12}
    assert drawn[:, :, 0].mean(1).var() == pytest.approx(2 / 3 / 3, rel=0.1)
