"""Majority votes, and which printed numbers are possible."""

import pandas as pd
import pytest

from acpo.stats.denominator import check_fraction, possible_percent
from acpo.stats.majority import majority_at_k, majority_scores
from acpo.store import StoreError


class TestMajority:
    def test_by_hand(self) -> None:
        answers, correct = ["a", "b", "a", "c"], [True, False, True, False]
        assert majority_at_k(answers, correct, 4) == 1.0
        # Blocks ab: tied, one of two right. ac: the same.
        assert majority_at_k(answers, correct, 2) == 0.5
        assert majority_at_k(answers, correct, 1) == 0.5

    def test_samples_without_an_answer_do_not_vote(self) -> None:
        assert majority_at_k([None, None, "a"], [False, False, True], 3) == 1.0
        assert majority_at_k([None, None], [False, False], 2) == 0.0

    def test_samples_beyond_the_last_block_take_no_part(self) -> None:
        assert majority_at_k(["a", "a", "b"], [False, False, True], 2) == 0.0

    @pytest.mark.parametrize("k", [0, 3])
    def test_k_must_fit(self, k: int) -> None:
        with pytest.raises(ValueError, match="1 <= k <= n"):
            majority_at_k(["a", "b"], [True, False], k)

    def test_over_questions_and_seeds(self) -> None:
        rows = pd.DataFrame(
            {
                "seed": [0] * 4 + [1] * 4,
                "question": ["q", "q", "r", "r"] * 2,
                "sample": [1, 0, 0, 1] * 2,
                "extracted": ["a", "a", None, "b", "a", "b", None, None],
                "correct": [True, True, False, True, True, False, False, False],
            }
        )
        # k = 2: 1, 1, 1/2 (tied), 0.
        assert majority_scores(rows, 2) == {1: pytest.approx((1 + 0.5 + 0.5 + 0) / 4), 2: pytest.approx(2.5 / 4)}


class TestDenominator:
    def test_a_mean_is_a_count_over_its_number(self) -> None:
        check_fraction(1 / 3, 4, 12, "x")
        with pytest.raises(StoreError, match=r"^x: 0\.34 is not 4 of 12 verdicts: .* Score the cell again"):
            check_fraction(0.34, 4, 12, "x")

    @pytest.mark.parametrize(
        ("printed", "denominator", "possible"),
        [
            ("50.00", 4, True),
            ("33.33", 3, True),
            ("33.34", 3, False),
            ("12.5", 8, True),
            ("12.49", 8, False),
            ("54.38", 320, True),  # 174 / 320 = 54.375: halves may go either way
            ("54.37", 320, True),
            ("100.00", 7, True),
            ("0.00", 7, True),
        ],
    )
    def test_printed_percentages(self, printed: str, denominator: int, possible: bool) -> None:
        assert possible_percent(printed, denominator) is possible

    AMC = ("26.20", "44.88", "34.94", "50.75", "46.39", "48.95", "40.81", "51.20", "46.84", "49.25", "46.08", "54.37")

    def test_published_amc_has_83_questions_not_40(self) -> None:
        """Table 2 fits 83 questions of 8 samples, and not the 40 of AMC 2023."""
        assert all(possible_percent(printed, 83 * 8) for printed in self.AMC)
        assert sum(possible_percent(printed, 40 * 8) for printed in self.AMC) < len(self.AMC) / 2
