"""How often paper mode errs, and what a comparison can find."""

import math
import re

import numpy as np
import pytest
from made_up import ROOT
from scipy import stats
from small_study import script

from acpo.stats.crossed import Estimate, crossed_mean
from acpo.stats.power import (
    AIME,
    MATH500,
    Difficulty,
    SeedSpread,
    Spread,
    critical_differences,
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


def simulated(spread: Spread, seeds: int, rng: np.random.Generator, difference: float = 0.0) -> Estimate:
    """Draw two algorithms and estimate their difference; the first group also has the questions' effects."""
    groups = [
        rng.normal(0, math.sqrt(group.seed), (seeds, 1)) + rng.normal(0, math.sqrt(group.rest), (seeds, QUESTIONS))
        for group in spread.groups
    ]
    groups[0] += difference + rng.normal(0, math.sqrt(spread.question), QUESTIONS)
    return crossed_mean(groups)


QUESTIONS = 200
SPREADS = {
    # Variance of the mean at three seeds, in points squared: seeds 1.3, questions 0.5, rest 0.8.
    "seeds": Spread(0.01, (SeedSpread(4e-4, 0.05),)),
    # 0.03, 5, 0.8
    "questions": Spread(0.1, (SeedSpread(1e-5, 0.05),)),
    # 0.3, 1, 0.8
    "both": Spread(0.02, (SeedSpread(1e-4, 0.05),)),
    "two independent groups": Spread(0.02, (SeedSpread(1e-4, 0.03), SeedSpread(2e-4, 0.03))),
}


class TestMinimumDetectableDifference:
    @pytest.mark.parametrize("seeds", [2, 3, 5])
    @pytest.mark.parametrize("name", SPREADS)
    def test_inference_mode_finds_it_with_the_power_it_says(self, name: str, seeds: int) -> None:
        difference = minimum_detectable_difference(SPREADS[name], seeds, QUESTIONS, 0.05, 0.8)
        rng = stream(0, "power", name, seeds)
        found = np.mean([simulated(SPREADS[name], seeds, rng, difference).decisive.p < 0.05 for _ in range(4000)])
        assert found == pytest.approx(0.8, abs=3 * math.sqrt(0.8 * 0.2 / 4000))

    @pytest.mark.parametrize(
        ("spread", "seeds", "df", "variance"),
        [
            (Spread(0.09), 1, 199, 0.09 / 200),  # two checkpoints
            (Spread(0.04, (SeedSpread(0.3, 0.05),)), 1, 199, 0.09 / 200),  # the same, with their seeds' spread known
            (Spread(0.04, (SeedSpread(0.0, 0.0),)), 3, 199, 0.04 / 200),  # seeds agree
            (Spread(0.0, (SeedSpread(3e-4, 0.0),)), 2, 1, 3e-4 / 2),  # questions agree
            (Spread(0.0, (SeedSpread(3e-4, 0.0),)), 5, 4, 3e-4 / 5),
        ],
    )
    def test_one_source_of_spread_is_a_t_test(self, spread: Spread, seeds: int, df: int, variance: float) -> None:
        difference = minimum_detectable_difference(spread, seeds, 200, 0.05, 0.8)
        shift, critical = difference / math.sqrt(variance), stats.t.isf(0.025, df)
        assert stats.nct.sf(critical, df, shift) == pytest.approx(0.8, abs=1e-3)

    def test_critical_differences_are_those_of_the_test(self) -> None:
        """Their quantiles are those of simulated studies: the difference at which p is just 0.05."""
        spread, rng = SPREADS["two independent groups"], stream(0, "critical")
        widths = [simulated(spread, 3, rng).half_width(0.05) for _ in range(2000)]
        levels = [0.1, 0.25, 0.5, 0.75, 0.9]
        found = np.quantile(critical_differences(spread, 3, QUESTIONS, 0.05), levels)
        assert np.quantile(widths, levels) == pytest.approx(found, rel=0.06)

    def test_more_seeds_find_less(self) -> None:
        spread = Spread(0.01, (SeedSpread(1e-4, 0.05),))
        found = [minimum_detectable_difference(spread, seeds, 500, 0.05, 0.8) for seeds in (2, 3, 5, 10, 20)]
        assert found == sorted(found, reverse=True)

    def test_without_spread_any_difference_is_found(self) -> None:
        assert minimum_detectable_difference(Spread(0.0, (SeedSpread(0.0, 0.0),)), 3, 100, 0.05, 0.8) == 0

    def test_unknown_spread_of_seeds_is_refused(self) -> None:
        with pytest.raises(ValueError, match="give at least two"):
            minimum_detectable_difference(Spread(0.1), 3, 100, 0.05, 0.8)

    def test_spread_by_hand(self) -> None:
        # Rows 2 and 1, columns 2 and 1: MS seeds = MS rest = 1, so seeds add nothing; questions 1/2 - 1/2.
        found = difference_spread([np.array([[3.0, 1], [1, 1]])])
        assert found == Spread(pytest.approx(0), (SeedSpread(pytest.approx(0), pytest.approx(1)),))
        # A second group of rows -1 and -3, columns equal: MS seeds 4, rest 0; question means 2 - 2 and 1 - 2.
        both = difference_spread([np.array([[3.0, 1], [1, 1]]), np.array([[-1.0, -1], [-3, -3]])])
        assert both == Spread(pytest.approx(0), (found.groups[0], SeedSpread(pytest.approx(2), pytest.approx(0))))

    def test_a_fixed_checkpoint_brings_its_noise_to_the_questions(self) -> None:
        # Question means 2 and 1, and 0 and 1 of the checkpoint: sums 2 and 2, without spread.
        found = difference_spread([np.array([[3.0, 1], [1, 1]]), np.array([[0.0, 1]])])
        assert found.question == 0
        assert len(found.groups) == 1
        # Of checkpoints alone: sums 3 and 2, variance 1/2.
        assert difference_spread([np.array([[3.0, 1]]), np.array([[0.0, 1]])]) == Spread(pytest.approx(0.5))

    def test_spread_gives_back_the_standard_error(self) -> None:
        rng = np.random.default_rng(0)
        table = rng.normal(size=(4, 1)) + rng.normal(size=(1, 30)) + rng.normal(size=(4, 30))
        spread = difference_spread([table])
        (group,) = spread.groups
        variance = group.seed / 4 + spread.question / 30 + group.rest / 120
        assert crossed_mean([table]).standard_error == pytest.approx(math.sqrt(variance))


def test_the_documented_differences_are_those_of_the_script() -> None:
    done = script("simulate_tests", "--simulations", "2")
    assert done.returncode == 0, done.stderr
    table = done.stdout.split("Minimum detectable")[1]
    rows = re.findall(r" ((?:\d+\.\d\d\s+){6})", table)
    documented = (ROOT / "docs/statistics.md").read_text(encoding="utf-8")
    assert len(rows) == 2 * 4
    for row in rows:
        assert f"| {' | '.join(row.split())} |" in documented
