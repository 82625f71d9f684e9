"""Table 10: p-values."""

from acpo.audit.claims.row import claim
from acpo.audit.published import Published
from acpo.audit.significance import BASELINES, acpo_below, dashes, holm_rejections, p_values, through_paper_mode
from acpo.audit.verdict import Row, Verdict


def rows(published: Published) -> list[Row]:
    """Compare Table 10 with Table 2 and with the text, and correct it for the number of tests."""
    return [_dashes(published), _paper_mode(published), _most(published), _holm(published)]


def _dashes(published: Published) -> Row:
    empty, below = dashes(published), acpo_below(published)
    where = ", ".join(f"{baseline} {benchmark} {regime}" for baseline, benchmark, regime in sorted(below))
    return claim(
        "dashes",
        "Table 10",
        "What a dash stands for",
        published=f"{len(empty)} dashes, not explained",
        recomputed=f"ACPO's mean is below the baseline's in {len(below)} cells of Table 2: {where}; "
        f"{len(empty & below)} of the {len(empty)} dashes stand there",
        verdict=empty == below,
        why="Reproduced: the dashes are exactly these cells. A one-tailed p-value above 0.5 exists there as well.",
    )


def _paper_mode(published: Published) -> Row:
    tests = through_paper_mode(published)
    numbers = tests[tests["spread"].notna()]
    fitting = int((numbers["spread"] <= 1).sum())
    return claim(
        "paper_mode",
        "Tables 2, 10",
        "The p-values are those of Welch's test on Table 2's scores, whose repeats differ by sampling",
        published=f"{len(numbers)} p-values as numbers, without the spread of the repeats",
        recomputed=f"{fitting} of {len(numbers)} are at most the p that the largest spread of sampling gives; "
        f"they imply {numbers['spread'].min():.2f} to {numbers['spread'].max():.2f} of that spread",
        verdict=fitting == len(numbers),
        why="A repeat's mean spreads most, by sqrt(p (1 - p) / questions), when all questions are equally hard.",
    )


def _most(published: Published) -> Row:
    frame, level = p_values(published), published.said("significance").value
    tests = frame[frame["baseline"] != BASELINES["Base"]]
    below = int((tests["value"] < level).sum())
    return claim(
        "significant",
        "Sec. 5.2, App. M",
        f"ACPO's gains are significant (p < {level}) on most benchmarks",
        published=f"p < {level}, each test by itself",
        recomputed=f"{below} of {len(tests)} tests against trained baselines; "
        f"{int(tests['bound'].sum())} of them are printed as <0.001",
        verdict=below > len(tests) / 2,
        why="The repeats are samples of one checkpoint per method: the tests compare checkpoints, not algorithms.",
    )


def _holm(published: Published) -> Row:
    level = published.said("significance").value
    most, least = (holm_rejections(published, bound, level) for bound in (0.0, 0.001))
    total = int((p_values(published)["baseline"] != BASELINES["Base"]).sum())
    return claim(
        "holm",
        "Table 10",
        f"The gains are significant when {total} tests are corrected for their number",
        published="no correction",
        recomputed=f"Holm at {level} rejects {most} of {total} if every <0.001 is 0, and {least} if it is 0.001",
        verdict=Verdict.REPRODUCED if least > total / 2 else Verdict.NOT_TESTABLE,
        why="The answer depends on digits that are not printed.",
    )
