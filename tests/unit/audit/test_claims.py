"""The audit of published numbers: what the specification found, and that verdicts follow the numbers."""

import pytest

from acpo.audit.claims import audit_published
from acpo.audit.published import Published, published
from acpo.audit.significance import sampling_sd, through_paper_mode
from acpo.audit.verdict import Row, Verdict


def rows(values: Published) -> dict[str, Row]:
    audit = audit_published(values)
    found = {row.id: row for row in audit.rows}
    assert len(found) == len(audit.rows), "ids are unique"
    return found


ROWS = rows(published())


@pytest.mark.parametrize(
    ("name", "verdict", "shown"),
    [
        ("average_table2", "reproduced", "13 of 13"),
        ("rank_acpo", "reproduced", "1.222"),
        ("rank_acpo", "reproduced", "1.278"),
        ("firsts_acpo", "reproduced", "2 shared with AR-Lopti"),
        ("firsts_acpo", "reproduced", "13 alone"),
        ("seconds_acpo", "reproduced", "2"),
        ("drop_acpo", "reproduced", "-0.75 points over four rows; -1.00 points over nine tasks"),
        ("drop_cispo", "reproduced", "-6.05"),
        ("drop_order", "not reproduced", "-1.68 and -1.91"),
        ("denominator_amc_40", "contradicted", "1 of 13"),
        ("denominator_amc_83", "reproduced", "13 of 13"),
        ("denominator_aime", "reproduced", "26 of 26"),
        ("denominator_minerva", "not reproduced", "11 of 13"),
        ("denominator_hitab_300", "reproduced", "26 of 26"),
        ("denominator_countdown_4", "contradicted", "of 13"),
        ("default_table5", "contradicted", "40.36 and 39.86"),
        ("default_table7", "reproduced", "the same"),
        ("additivity_table5", "not testable here", "56 of 72"),
        ("clip_average", "contradicted", "at least 0.2"),
        ("dashes", "reproduced", "4 of the 4"),
        ("paper_mode", "reproduced", "22 of 22 are at most"),
        ("paper_mode", "reproduced", "0.40 to 0.71"),
        ("significant", "reproduced", "52 of 60"),
        ("holm", "not testable here", "38 of 60 if every <0.001 is 0, and 0 if it is 0.001"),
        ("relatives", "reproduced", "16 of 16"),
        ("overhead_high_entropy", "not reproduced", "+41.5 % N-OnP."),
    ],
)
def test_published_numbers_are_judged(name: str, verdict: str, shown: str) -> None:
    assert ROWS[name].verdict == verdict
    assert shown in ROWS[name].recomputed


def changed(path: tuple[str, ...], cell: int, printed: str) -> dict[str, Row]:
    """Audit the paper with one number replaced."""
    values = published().model_dump()
    place = values["tables"]
    for key in path:
        place = place[key]
    place[cell] = printed
    return rows(Published.model_validate(values))


@pytest.mark.parametrize(
    ("path", "cell", "printed", "name", "verdict"),
    [
        (("table2", "panels", "", "DAPO"), 12, "39.70", "average_table2", "not reproduced"),
        (("table2", "panels", "", "DAPO"), 0, "32.00", "firsts_acpo", "not reproduced"),
        (("table2", "panels", "", "DAPO"), 0, "32.00", "rank_dapo", "not reproduced"),
        (("table2", "panels", "", "DAPO"), 0, "32.00", "dashes", "not reproduced"),
        (("table2", "panels", "", "DAPO"), 0, "31.50", "paper_mode", "not reproduced"),
        (("table10", "panels", "N-OnP.", "DAPO"), 0, "0.223", "paper_mode", "not reproduced"),
        (("table1a", "panels", "", "ACPO"), 1, "74.00", "drop_acpo", "not reproduced"),
        (("table2", "panels", "", "ACPO"), 8, "14.40", "denominator_aime", "not reproduced"),
        (("table7", "panels", "N-OnP.", "5"), 3, "16.78", "default_table7", "contradicted"),
        (("table4", "panels", "ACPO", "epsilon_base"), 0, "0.1", "clip_average", "not reproduced"),
        (("table6", "panels", "", "ACPO"), 0, "75.75", "same_table6", "not reproduced"),
        (("table8", "panels", "", "4"), 0, "75.80", "bins_table8", "not reproduced"),
        (("table9", "panels", "", "ACPO"), 1, "-9.2%", "relatives", "not reproduced"),
        (("table9", "panels", "", "AR-Lopti"), 2, "0.204 ± 0.006", "overhead_ar_lopti", "not reproduced"),
        (("table9", "panels", "", "High-Entropy"), 2, "0.154 ± 0.005", "overhead_high_entropy", "reproduced"),
        (("table9", "panels", "", "ACPO"), 0, "300.0 ± 45.5", "overhead_acpo", "not reproduced"),
    ],
)
def test_verdicts_follow_the_numbers(path: tuple[str, ...], cell: int, printed: str, name: str, verdict: str) -> None:
    assert ROWS[name].verdict != verdict
    assert changed(path, cell, printed)[name].verdict == verdict


def test_scores_of_table_2_go_through_paper_mode() -> None:
    """Minerva, near on-policy: 31.02 against DAPO's 29.92 over 272 questions spreads by 2.805 and 2.776 at most.

    So t is 1.10 / sqrt((2.805^2 + 2.776^2) / 8) = 0.788 with 14.0 degrees of freedom; the printed 0.143 is t = 1.109.
    """
    tests = through_paper_mode(published()).set_index(["baseline", "benchmark", "regime"])
    assert len(tests) == 60
    found = tests.loc["DAPO", "Minerva", "N-OnP."]
    assert sampling_sd(31.02, 272) == pytest.approx(2.805, abs=5e-4)
    assert found["difference"] == pytest.approx(1.10)
    assert found["largest_p"] == pytest.approx(0.2218, abs=5e-5)
    assert found["spread"] == pytest.approx(0.788 / 1.109, abs=1e-3)
    dashed = tests[tests["value"].isna()]
    assert len(dashed) == 4
    assert dashed["largest_p"].between(0.5, 1).all()
    assert dashed["spread"].isna().all()


def test_every_row_is_whole() -> None:
    for row in ROWS.values():
        assert row.claim, row.id
        assert row.published, row.id
        assert row.recomputed, row.id
        assert row.why.endswith("."), row.id
        assert row.place.startswith(("Table", "Sec.", "App.")), row.id


def test_all_four_verdicts_occur() -> None:
    counts = audit_published(published()).counts()
    assert list(counts) == list(Verdict)
    assert sum(counts.values()) == len(ROWS)
    assert all(counts.values())
