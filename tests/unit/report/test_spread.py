"""What a study can find and where its noise comes from, in the report and in the paper."""

from pathlib import Path

import pytest
from report_fixtures import fill_statistics

from acpo.config import Study
from acpo.report import spread
from acpo.report.inference import comparison_rows
from acpo.report.page import render_report
from acpo.report.paper import render_paper
from acpo.report.sources import Results
from acpo.report.text_table import render_latex
from acpo.stats.power import SEED_COUNTS
from acpo.stats.records import StatisticsResult


@pytest.fixture
def results(study: Study, tmp_path: Path) -> Results:
    fill_statistics(tmp_path, study)
    return Results(study, tmp_path)


@pytest.fixture
def statistics(results: Results) -> StatisticsResult:
    found = results.statistics()
    assert found is not None
    return found


def test_a_row_a_comparison_a_column_a_number_of_seeds(study: Study, statistics: StatisticsResult) -> None:
    rows = spread.detectable_rows(study, statistics)
    assert len(rows) == len(statistics.comparisons) == len(statistics.detectable) / len(SEED_COUNTS)
    assert (rows[0].treatment, rows[0].baseline, rows[0].suite) == ("ACPO", "Base Model", "Mini-Countdown")
    assert [shown.text for shown in rows[0].differences] == ["6.00", "3.00", "2.00", "1.20", "0.60", "0.30"]
    only_one = statistics.model_copy(update={"detectable": statistics.detectable[:1]})
    assert [shown.text for shown in spread.detectable_rows(study, only_one)[0].differences] == ["6.00", *["–"] * 5]


def test_variance_of_a_verdict_by_source(study: Study, statistics: StatisticsResult) -> None:
    rows = spread.variance_rows(study, statistics)
    assert len(rows) == 4  # ACPO in two regimes, at two kinds of checkpoint
    assert [shown.text for shown in rows[0].components] == ["–", "0.05000", "−0.00012", "0.14000"]
    assert r"$-$0.00012" in render_latex(spread.variance_table(study, statistics))


def test_report_and_paper_show_both_and_say_what_they_mean(results: Results) -> None:
    report, paper = render_report(results), render_paper(results)
    for title in ("Minimum detectable differences", "Variance of a verdict"):
        assert f"<h3>{title}</h3>" in report
    assert "with power 0.8 (two-tailed, level 0.05), by training seeds a method" in report
    assert spread.MEANING in report
    assert r"\section{Variance of a verdict}" in paper
    assert "minimum detectable differences" in paper


def test_without_statistics_neither_is_there(study: Study, tmp_path: Path) -> None:
    assert "Variance of a verdict" not in render_paper(Results(study, tmp_path))


def test_the_reports_paper_mode_has_the_exact_p_and_says_where_its_spreads_are(
    study: Study, results: Results, statistics: StatisticsResult
) -> None:
    tiny = [test.model_copy(update={"p": p}) for test in statistics.comparisons[0].paper for p in (6.9e-10, 0.0286)]
    item = statistics.comparisons[0].model_copy(update={"paper": tiny[:2]})
    (row,) = comparison_rows(study, statistics.model_copy(update={"comparisons": [item]}))
    assert row.paper == ("seed 0: t(9.9) = 2.50, p = 6.9e-10", "seed 0: t(9.9) = 2.50, p = 0.0286")
    assert "its standard deviations and n are in" in render_report(results)
