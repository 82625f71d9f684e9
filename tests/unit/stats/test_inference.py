"""Clustered and crossed standard errors, sign flips, effects: by hand, and against scipy and statsmodels."""

import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from made_up import made_tally
from scipy import stats
from statsmodels.stats.anova import anova_lm

from acpo.stats.comparison import Resampling, compare, difference_groups, infer, sign_flip_p
from acpo.stats.crossed import crossed_mean, mean_squares
from acpo.stats.effects import cliffs_delta, probability_of_improvement
from acpo.stats.records import CHECKPOINTS_ONLY
from acpo.stats.variance import variance_components
from acpo.store import StoreError


def verdicts(shape: tuple[int, ...], chance: float, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random(shape) < chance


def how(seed: int = 0) -> Resampling:
    return Resampling(0.05, 1999, np.random.default_rng(seed))


class TestCrossedMean:
    def test_one_seed_by_hand(self) -> None:
        # Differences 1, 0, 0, 1: mean 1/2, variance 1/3, standard error sqrt(1/12), 3 degrees of freedom.
        found = crossed_mean([np.array([[1.0, 0, 0, 1]])])
        assert (found.value, found.df, found.algorithm) == (0.5, 3, False)
        assert found.standard_error == pytest.approx(math.sqrt(1 / 12))
        assert found.p == pytest.approx(2 * stats.t.sf(0.5 / math.sqrt(1 / 12), 3))

    def test_one_seed_equals_the_cluster_robust_error_of_statsmodels(self) -> None:
        ours, theirs = verdicts((1, 40, 6), 0.6, 1), verdicts((1, 40, 6), 0.5, 2)
        found = crossed_mean(difference_groups(made_tally(ours), made_tally(theirs, "dapo")))
        frame = pd.DataFrame({"d": (ours.astype(float) - theirs).ravel(), "question": np.repeat(np.arange(40), 6)})
        fit = smf.ols("d ~ 1", frame).fit(cov_type="cluster", cov_kwds={"groups": frame["question"]})
        assert found.value == pytest.approx(fit.params["Intercept"], abs=1e-12)
        assert found.standard_error == pytest.approx(fit.bse["Intercept"], abs=1e-12)

    def test_two_seeds_by_hand(self) -> None:
        # [[3, 1], [1, 1]]: rows 2, 1; columns 2, 1; mean 3/2. MS rows = 2 (1/4 + 1/4) = 1 = MS columns;
        # residuals +-1/2: MS rest = 1. Seeds 1/4, rest of questions 1/4 - 1/4 = 0: SE 1/2, 1 degree of freedom.
        table = np.array([[3.0, 1], [1, 1]])
        assert mean_squares(table).seeds == pytest.approx(1)
        assert mean_squares(table).rest == pytest.approx(1)
        found = crossed_mean([table])
        assert (found.value, found.standard_error, found.df) == pytest.approx((1.5, 0.5, 1))
        assert found.algorithm

    @pytest.mark.parametrize("shape", [(2, 5), (3, 40), (7, 12)])
    def test_mean_squares_equal_statsmodels(self, shape: tuple[int, int]) -> None:
        table = np.random.default_rng(3).normal(size=shape)
        frame = pd.DataFrame(
            {"y": table.ravel(), "s": np.repeat(np.arange(shape[0]), shape[1]), "q": list(range(shape[1])) * shape[0]}
        )
        anova = anova_lm(smf.ols("y ~ C(s) + C(q)", frame).fit())
        found = mean_squares(table)
        assert found.seeds == pytest.approx(anova["mean_sq"]["C(s)"], rel=1e-9)
        assert found.rest == pytest.approx(anova["mean_sq"]["Residual"], rel=1e-9)

    def test_independent_seeds_add_their_variances(self) -> None:
        rng = np.random.default_rng(4)
        ours, theirs = rng.normal(size=(3, 30)), rng.normal(size=(2, 30))
        found = crossed_mean([ours, -theirs])
        assert found.value == pytest.approx(ours.mean() - theirs.mean())
        squares = [(mean_squares(table), table.size) for table in (ours, theirs)]
        parts = [found.seeds / size for found, size in squares]
        rest = sum(found.rest / size for found, size in squares)
        question = max(np.var(ours.mean(0) - theirs.mean(0), ddof=1) / 30 - rest, 0)
        assert found.standard_error**2 == pytest.approx(sum(parts) + question)
        assert found.df == pytest.approx(
            (sum(parts) + question) ** 2 / (parts[0] ** 2 / 2 + parts[1] ** 2 + question**2 / 29)
        )

    def test_seeds_that_happen_to_agree_do_not_narrow_it(self) -> None:
        """Rows with equal means: the seeds' mean square is 0, the spread over questions remains."""
        table = np.array([[1.0, 0, 0, 1, 0, 0], [0, 1, 1, 0, 0, 0]])
        found = crossed_mean([table])
        clustered = crossed_mean([table.mean(0, keepdims=True)])
        assert found.algorithm
        assert (found.standard_error, found.df) == (clustered.standard_error, clustered.df)
        assert found.half_width(0.05) == clustered.half_width(0.05)

    def test_with_two_seeds_the_more_careful_p_decides(self) -> None:
        """The estimate over questions is wider at 95 %, but its many degrees of freedom are not those of two seeds."""
        rng = np.random.default_rng(11)
        table = 0.5 + rng.normal(0, 0.1, (1, 400)) + np.array([[0.001], [-0.001]]) + rng.normal(0, 0.1, (2, 400))
        found = crossed_mean([table])
        assert found.df == 399
        assert found.decisive is found.other
        assert found.decisive.p > 1e10 * found.p

    def test_seeds_that_differ_widen_it(self) -> None:
        table = np.random.default_rng(5).normal(size=(4, 50))
        apart = table + np.array([[-3.0], [-1], [1], [3]])
        assert crossed_mean([apart]).standard_error > 5 * crossed_mean([table]).standard_error
        assert crossed_mean([apart]).df == pytest.approx(3, abs=0.1)

    def test_without_spread(self) -> None:
        same = crossed_mean([np.zeros((1, 4))])
        assert (same.t, same.p, same.standard_error) == (None, 1.0, 0.0)
        assert crossed_mean([np.ones((3, 4))]).p == 0.0

    def test_one_question_is_refused(self) -> None:
        with pytest.raises(ValueError, match="at least two questions"):
            crossed_mean([np.ones((3, 1))])


class TestSignFlips:
    def test_every_flip_by_hand(self) -> None:
        # Of the 8 sign patterns of 1, 2, 3 the sum reaches 6 once and -6 once.
        assert sign_flip_p(np.array([1.0, 2, 3]), 1000, np.random.default_rng(0)) == pytest.approx(2 / 8)

    def test_random_flips_near_the_exact_p(self) -> None:
        values = np.random.default_rng(1).normal(0.3, 1, 16)
        exact = sign_flip_p(values, 2**16, np.random.default_rng(0))
        drawn = sign_flip_p(values, 9999, np.random.default_rng(0))
        assert drawn == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 9999))

    def test_near_the_t_test_where_that_holds(self) -> None:
        values = np.random.default_rng(2).normal(0.15, 1, 300)
        assert sign_flip_p(values, 9999, np.random.default_rng(0)) == pytest.approx(
            stats.ttest_1samp(values, 0).pvalue, abs=0.01
        )

    def test_no_difference_anywhere(self) -> None:
        assert sign_flip_p(np.zeros(5), 100, np.random.default_rng(0)) == 1.0


class TestEffects:
    def test_cliffs_delta_by_hand(self) -> None:
        assert cliffs_delta(np.array([0.5, 0.1, 0, -0.2])) == pytest.approx(0.25)

    def test_probability_of_improvement_by_hand(self) -> None:
        # Pairs: 3>1, 3>2, 2>1, 2=2.
        assert probability_of_improvement(np.array([3.0, 2]), np.array([1.0, 2])) == pytest.approx(3.5 / 4)
        assert probability_of_improvement(np.array([1.0]), np.array([1.0])) == 0.5


class TestVarianceComponents:
    def test_equal_statsmodels_mean_squares(self) -> None:
        correct = verdicts((3, 10, 4), 0.5, 6)
        index = np.indices(correct.shape).reshape(3, -1)
        frame = pd.DataFrame({"y": correct.ravel().astype(float), "s": index[0], "q": index[1]})
        square = anova_lm(smf.ols("y ~ C(s) * C(q)", frame).fit())["mean_sq"]
        found = variance_components(correct)
        assert found.sample == pytest.approx(square["Residual"])
        assert found.seed_by_question == pytest.approx((square["C(s):C(q)"] - square["Residual"]) / 4)
        assert found.seed == pytest.approx((square["C(s)"] - square["C(s):C(q)"]) / (10 * 4))
        assert found.question == pytest.approx((square["C(q)"] - square["C(s):C(q)"]) / (3 * 4))

    def test_finds_what_was_put_in(self) -> None:
        rng = np.random.default_rng(7)
        chances = 0.5 + rng.normal(0, 0.06, (60, 1)) + rng.normal(0, 0.1, (1, 400))
        found = variance_components(rng.random((60, 400, 8)) < np.clip(chances, 0, 1)[:, :, None])
        assert found.seed == pytest.approx(0.0036, rel=0.45)
        assert found.question == pytest.approx(0.01, rel=0.25)
        assert found.seed_by_question == pytest.approx(0, abs=0.001)
        assert found.sample == pytest.approx(0.25 - 0.0136, rel=0.03)

    def test_one_seed_has_no_spread_over_seeds(self) -> None:
        found = variance_components(verdicts((1, 10, 4), 0.5, 8))
        assert (found.seed, found.seed_by_question) == (None, None)
        assert found.question is not None

    def test_one_sample(self) -> None:
        assert variance_components(verdicts((2, 10, 1), 0.5, 9)).sample is None


class TestInfer:
    def test_one_training_seed_says_what_it_is_about(self) -> None:
        ours, theirs = made_tally(verdicts((1, 30, 4), 0.7, 1)), made_tally(verdicts((1, 30, 4), 0.4, 2), "dapo")
        found = infer(ours, theirs, np.random.default_rng(0).normal(0.3, 0.05, 1000), how())
        assert (found.scope, found.note) == ("checkpoints", CHECKPOINTS_ONLY)
        assert found.difference == pytest.approx(ours.mean - theirs.mean)

    def test_several_training_seeds(self) -> None:
        ours, theirs = made_tally(verdicts((3, 30, 4), 0.7, 1)), made_tally(verdicts((3, 30, 4), 0.4, 2), "dapo")
        found = infer(ours, theirs, np.random.default_rng(0).normal(0.3, 0.05, 1000), how())
        assert (found.scope, found.note, found.paired_seeds) == ("algorithm", None, True)
        assert found.interval is not None
        assert found.interval.low < found.difference < found.interval.high

    def test_other_seeds_are_not_paired(self) -> None:
        ours = made_tally(verdicts((3, 30, 4), 0.7, 1))
        theirs = made_tally(verdicts((3, 30, 4), 0.4, 2), "dapo", seeds=(0, 1, 5))
        assert not infer(ours, theirs, np.zeros(1000), how()).paired_seeds

    def test_one_seed_on_one_side_is_about_checkpoints(self) -> None:
        ours, theirs = made_tally(verdicts((3, 30, 4), 0.7, 1)), made_tally(verdicts((1, 30, 4), 0.4, 2), "dapo")
        assert infer(ours, theirs, np.zeros(1000), how()).scope == "checkpoints"

    def test_the_base_model_has_no_training_seed_to_vary(self) -> None:
        ours, base = made_tally(verdicts((3, 30, 4), 0.7, 1)), made_tally(verdicts((1, 30, 4), 0.4, 2), "base")
        assert infer(ours, base, np.zeros(1000), how()).scope == "algorithm"

    def test_other_questions_are_refused(self) -> None:
        ours, theirs = made_tally(verdicts((1, 30, 4), 0.7, 1)), made_tally(verdicts((1, 29, 4), 0.4, 2), "dapo")
        with pytest.raises(
            StoreError, match="mini_acpo_nonp and mini_dapo_nonp: countdown_mini was evaluated on other"
        ):
            infer(ours, theirs, np.zeros(1000), how())

    def test_same_verdicts_are_no_difference(self) -> None:
        same = verdicts((2, 30, 4), 0.7, 1)
        found = infer(made_tally(same), made_tally(same, "dapo"), np.zeros(1000), how())
        assert (found.difference, found.p, found.permutation_p, found.interval) == (0.0, 1.0, 1.0, None)
        assert (found.cliffs_delta, found.probability_of_improvement) == (0.0, 0.5)

    def test_both_modes_in_one_record(self) -> None:
        ours, theirs = made_tally(verdicts((2, 30, 4), 0.7, 1)), made_tally(verdicts((2, 30, 4), 0.4, 2), "dapo")
        found = compare(ours, theirs, np.random.default_rng(0).normal(0.3, 0.05, 1000), how(), "last")
        assert [test.treatment_seed for test in found.paper] == [0, 1]
        assert (found.treatment_cell, found.baseline_cell) == ("mini_acpo_nonp", "mini_dapo_nonp")
        assert found.inference.difference == pytest.approx(found.treatment_mean - found.baseline_mean)
