"""How often paper mode errs, and what a comparison can find."""

import math

import numpy as np
import pytest
from scipy import stats

from acpo.stats.crossed import crossed_mean
from acpo.stats.power import (
    AIME,
    MATH500,
    Difficulty,
    Spread,
    difference_spread,
    false_positive_rate,
    minimum_detectable_difference,
    simulate_verdicts,
)
from acpo.streams import stream

# The specification's false-positive rates at a training-seed SD of 0, 0.5, 1 and 2 points, printed to two decimals.
RATES = {"MATH500": (MATH500, (0.05, 0.22, 0.34, 0.42)), "AIME": (AIME, (0.05, 0.09, 0.17, 0.29))}
SEED_SDS = (0.0, 0.005, 0.01, 0.02)


def check_rates(name: str, simulations: int) -> None:
    benchmark, expected = RATES[name]
    for seed_sd, rate in zip(SEED_SDS, expected, strict=True):
        found = false_positive_rate(benchmark, seed_sd, simulations, stream(0, "false positives", name, str(seed_sd)))
        error = 3 * math.sqrt(rate * (1 - rate) / simulations) + 0.005
        assert found == pytest.approx(rate, abs=error), f"{name} at a seed SD of {100 * seed_sd} points"


@pytest.mark.parametrize("name", RATES)
def test_paper_mode_calls_equal_methods_different(name: str) -> None:
    check_rates(name, 1500)


@pytest.mark.slow
@pytest.mark.parametrize("name", RATES)
def test_paper_mode_calls_equal_methods_different_closely(name: str) -> None:
    check_rates(name, 20_000)


@pytest.mark.parametrize("benchmark", [MATH500, AIME])
def test_simulated_benchmarks_are_as_hard_as_they_say(benchmark: Difficulty) -> None:
    chances = benchmark.chances()
    assert chances.mean() == pytest.approx(benchmark.accuracy, abs=1e-4)
    assert (chances * (1 - chances)).mean() == pytest.approx(benchmark.within, rel=1e-3)
    shifted = benchmark.shifted(np.array([-0.02, 0.0, 0.015]))
    assert shifted.mean(1) - chances.mean() == pytest.approx([-0.02, 0, 0.015], abs=1e-5)


def test_simulated_seeds_spread_as_asked() -> None:
    means = simulate_verdicts(Difficulty(200, 64, 0.5, 0.1), 0.03, 400, 1, stream(0, "t"))[0].mean((1, 2))
    assert means.std(ddof=1) == pytest.approx(math.hypot(0.03, math.sqrt(0.1 / 200 / 64)), rel=0.1)


@pytest.mark.parametrize("seed_sd", [0.0, 0.01, 0.02])
def test_inference_mode_keeps_its_level_with_three_seeds(seed_sd: float) -> None:
    """Where paper mode errs up to 42 % of the time (a one-tailed test), this errs at most 5 % (two-tailed)."""
    rng = stream(0, "inference", str(seed_sd))
    found = 0
    for _ in range(8):
        ours, theirs = (simulate_verdicts(MATH500, seed_sd, 3, 50, rng).mean(3) for _ in range(2))
        found += sum(crossed_mean([table]).decisive.p < 0.05 for table in ours - theirs)
    assert found / 400 < 0.05 + 3 * math.sqrt(0.05 * 0.95 / 400)


class TestMinimumDetectableDifference:
    def test_has_the_power_it_says(self) -> None:
        """Two checkpoints, 200 questions: at that difference a t-test over questions finds 80 %."""
        spread = Spread(seed=None, question=0.04, rest=0.05)
        difference = minimum_detectable_difference(spread, 1, 200, 0.05, 0.8)
        shift = difference / math.sqrt(0.09 / 200)
        critical = stats.t.isf(0.025, 199)
        assert stats.nct.sf(critical, 199, shift) == pytest.approx(0.8, abs=1e-3)

    def test_has_the_power_it_says_over_seeds(self) -> None:
        spread = Spread(seed=1e-4, question=0.01, rest=0.05)
        difference = minimum_detectable_difference(spread, 5, 500, 0.05, 0.8)
        shift = difference / math.sqrt(1e-4 / 5 + 0.01 / 500 + 0.05 / 2500)
        assert stats.nct.sf(stats.t.isf(0.025, 4), 4, shift) == pytest.approx(0.8, abs=1e-3)

    def test_more_seeds_find_less(self) -> None:
        spread = Spread(seed=1e-4, question=0.01, rest=0.05)
        found = [minimum_detectable_difference(spread, seeds, 500, 0.05, 0.8) for seeds in (2, 3, 5, 10, 20)]
        assert found == sorted(found, reverse=True)

    def test_unknown_spread_of_seeds_is_refused(self) -> None:
        with pytest.raises(ValueError, match="give at least two"):
            minimum_detectable_difference(Spread(None, 0.1, 0.1), 3, 100, 0.05, 0.8)

    def test_spread_by_hand(self) -> None:
        # Rows 2 and 1, columns 2 and 1: MS seeds = MS rest = 1, so seeds add nothing; questions 1/2 - 1/2.
        found = difference_spread([np.array([[3.0, 1], [1, 1]])])
        assert (found.seed, found.question, found.rest) == pytest.approx((0, 0, 1))

    def test_spread_gives_back_the_standard_error(self) -> None:
        rng = np.random.default_rng(0)
        table = rng.normal(size=(4, 1)) + rng.normal(size=(1, 30)) + rng.normal(size=(4, 30))
        spread = difference_spread([table])
        assert spread.seed is not None
        variance = spread.seed / 4 + spread.question / 30 + spread.rest / 120
        assert crossed_mean([table]).standard_error == pytest.approx(math.sqrt(variance))
