"""Tables 5 to 8: sensitivity to alpha and epsilon_base, fixed clip widths, number of bins."""

from acpo.audit.claims.row import claim
from acpo.audit.denominators import fit
from acpo.audit.published import Published
from acpo.audit.scores import AVERAGE, NEAR, OFF, tidy
from acpo.audit.sensitivity import additivity, disagreements, grid
from acpo.audit.verdict import Row, Verdict

DEFAULT, DEFAULT_BINS = "3 0.2", "5"
SAMPLED = {"AMC": 83 * 8, "AIME24": 30 * 32, "AIME25": 30 * 32}
"""Denominators that fit every score of these benchmarks in Table 2."""


def rows(published: Published) -> list[Row]:
    """Compare the ablation tables with each other, with Table 2 and with the text."""
    return [
        _default_row(published, "table5", DEFAULT),
        _default_row(published, "table7", DEFAULT_BINS),
        _additive(published),
        _sampled(published),
        _best_alpha(published),
        _clip_average(published),
        _same_cells(published),
        _best_bins(published, "table7"),
        _best_bins(published, "table8"),
    ]


def _default_row(published: Published, table: str, row: str) -> Row:
    found = disagreements(published, table, row)
    place = published.tables[table].place
    shown = [f"{line.benchmark} {line.regime} {line.here} and {line.main}" for line in found.itertuples()]
    return claim(
        f"default_{table}",
        f"{place}, Table 2",
        f"The row of {place} with the default settings is ACPO's row of Table 2",
        published="the same method, data and benchmarks",
        recomputed=f"{place} and Table 2 differ: {', '.join(shown)}" if shown else "all 14 scores are the same",
        verdict=Verdict.CONTRADICTED if shown else Verdict.REPRODUCED,
        why="Printed scores, compared one by one.",
    )


def _additive(published: Published) -> Row:
    found = additivity(published)
    exact = found[found["zero"] == found["contrasts"]]
    return claim(
        "additivity_table5",
        "Table 5",
        "The 24 rows are scores of 24 separate trainings",
        published="a score for each alpha, epsilon_base, benchmark and regime",
        recomputed=f"{found['zero'].sum()} of {found['contrasts'].sum()} interactions of neighbouring settings are "
        f"zero within rounding; in {len(exact)} of {len(found)} benchmark-regime columns all are; the largest residual "
        f"of additive effects of alpha and epsilon_base is {found['residual'].max():.3f} points",
        verdict=Verdict.NOT_TESTABLE,
        why="A pattern of the printed numbers; the scores behind them are not published. This table is no target and "
        "no input of any simulation here.",
    )


def _sampled(published: Published) -> Row:
    frame = grid(published)
    digits = published.tables["table5"].frame()["printed"]
    fits = [fit(digits[frame["benchmark"] == name], denominator) for name, denominator in SAMPLED.items()]
    fitting, total = sum(each.fitting for each in fits), sum(each.total for each in fits)
    shown = ", ".join(
        f"{name} {each.fitting} of {each.total} as k/{each.denominator}"
        for name, each in zip(SAMPLED, fits, strict=True)
    )
    return claim(
        "denominator_table5",
        "Table 5",
        "AMC and AIME scores are means over the questions and samples that fit Table 2",
        published="avg@8 (caption); AIME avg@32 (Sec. 5.1)",
        recomputed=f"{fitting} of {total}: {shown}",
        verdict=Verdict.REPRODUCED if fitting == total else Verdict.CONTRADICTED,
        why="A mean of right answers over a fixed number of answers has only certain values. In Table 2 all 39 AMC and "
        "AIME scores are such values.",
    )


def _best_alpha(published: Published) -> Row:
    frame = grid(published)
    averages = frame[frame["benchmark"] == AVERAGE]
    best = {
        str(regime): group[group["value"] == group["value"].max()]["row"].tolist()
        for regime, group in averages.groupby("regime", sort=False)
    }
    inside = all(row in ("3 0.2", "4 0.2") for rows in best.values() for row in rows)
    lowest, highest = averages["value"].min(), averages["value"].max()
    return claim(
        "best_alpha",
        "App. J.1, Table 5",
        "alpha of 3 or 4 with epsilon_base near 0.2 gives the highest averages",
        published="alpha in {3, 4}, epsilon_base about 0.2",
        recomputed="; ".join(f"{regime} highest at {' and '.join(rows)}" for regime, rows in best.items())
        + f"; averages from {lowest:.2f} to {highest:.2f}",
        verdict=inside,
        why="Printed averages of Table 5, with the reservations above.",
    )


def _clip_average(published: Published) -> Row:
    base = published.tables["table4"].number("ACPO", "epsilon_base", ("", "value")).value
    alpha = published.tables["table4"].number("ACPO", "alpha", ("", "value")).value
    grpo = published.said("grpo_clip").value
    return claim(
        "clip_average",
        "App. J.2, Table 6",
        "ACPO's average clip width, used for GRPO, is more restrictive than standard GRPO",
        published='"more restrictive than standard GRPO"',
        recomputed=f"epsilon_b = {base} + {alpha} sigma_b is at least {base} in every bin, as sigma_b >= 0; "
        f"GRPO's width is {grpo}",
        verdict=Verdict.CONTRADICTED if alpha >= 0 and base >= grpo else Verdict.NOT_REPRODUCED,
        why="Eq. 12 with the settings of Table 4; an average of numbers that are at least GRPO's width is not below "
        "it. It can be below DAPO's upper width of 0.3.",
    )


def _same_cells(published: Published) -> Row:
    ablation, main = tidy(published.tables["table6"]), tidy(published.tables["table1a"])
    pairs = {"DAPO (Baseline)": "DAPO", "ACPO": "ACPO"}
    same = [
        ablation[(ablation["row"] == here) & (ablation["regime"] == regime)]["value"].item()
        == main[(main["row"] == there) & (main["regime"] == regime)]["value"].item()
        for here, there in pairs.items()
        for regime in (NEAR, OFF)
    ]
    return claim(
        "same_table6",
        "Table 6, Table 1 (a)",
        "DAPO and ACPO of Table 6 are those of Table 1 (a)",
        published="the same task and model",
        recomputed=f"{sum(same)} of {len(same)} scores are the same",
        verdict=all(same),
        why="Printed scores, compared one by one.",
    )


def _best_bins(published: Published, table: str) -> Row:
    frame = tidy(published.tables[table])
    if table == "table7":
        frame = frame[frame["benchmark"] == AVERAGE]
    wide = frame.pivot(index="row", columns="regime", values="value")
    best = wide.idxmax()
    return claim(
        f"bins_{table}",
        f"App. J.3, {published.tables[table].place}",
        "Five bins give the highest average, four and six are close",
        published="B = 5",
        recomputed="; ".join(
            f"{regime} highest with B = {best[regime]}, the others lower by "
            f"{' and '.join(f'{gap:.2f}' for gap in sorted(wide[regime].max() - wide[regime]) if gap)} points"
            for regime in (NEAR, OFF)
        ),
        verdict=bool((best == DEFAULT_BINS).all()),
        why="Printed scores of one training run each; the spread over training seeds is not published.",
    )
