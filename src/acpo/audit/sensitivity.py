"""Table 5: how nearly its scores are additive in alpha and epsilon_base, and whether it agrees with Table 2."""

from itertools import pairwise

import pandas as pd

from acpo.audit.published import Published
from acpo.audit.scores import AVERAGE, SLACK, tidy


def grid(published: Published) -> pd.DataFrame:
    """Return Table 5 in tidy form: alpha, epsilon, benchmark, regime, value, rounding."""
    frame = tidy(published.tables["table5"])
    keys = frame["row"].str.split(" ", expand=True).astype(float)
    return frame.assign(alpha=keys[0], epsilon=keys[1])


def additive_residual(cells: pd.DataFrame) -> float:
    """Return the largest absolute residual, in points, of main effects of alpha and epsilon fitted to one column."""
    wide = cells.pivot(index="alpha", columns="epsilon", values="value")
    # In a complete grid least squares gives row means plus column means.
    fitted = wide.mean(axis=1).to_numpy()[:, None] + wide.mean(axis=0).to_numpy() - wide.to_numpy().mean()
    return float(abs(wide - fitted).to_numpy().max())


def contrasts(cells: pd.DataFrame) -> list[float]:
    """Return the interactions of neighbouring settings of one column: (a', e') - (a', e) - (a, e') + (a, e), in points.

    Scores that are a sum of a part for alpha and a part for epsilon have contrasts of 0.
    """
    wide = cells.pivot(index="alpha", columns="epsilon", values="value")
    return [
        float(wide.loc[a2, e2] - wide.loc[a2, e1] - wide.loc[a1, e2] + wide.loc[a1, e1])
        for a1, a2 in pairwise(wide.index)
        for e1, e2 in pairwise(wide.columns)
    ]


def additivity(published: Published) -> pd.DataFrame:
    """Summarise each benchmark and regime of Table 5.

    Returns:
        benchmark, regime, residual (see `additive_residual`), contrasts, and `zero`: how many of them four rounded
        numbers explain (at most 4 times half a unit of the last digit).
    """
    frame = grid(published)
    rows = []
    for (regime, benchmark), cells in frame[frame["benchmark"] != AVERAGE].groupby(["regime", "benchmark"], sort=False):
        found = contrasts(cells)
        zero = sum(abs(value) <= 4 * cells["rounding"].iloc[0] + SLACK for value in found)
        rows.append((benchmark, regime, additive_residual(cells), len(found), zero))
    return pd.DataFrame(rows, columns=["benchmark", "regime", "residual", "contrasts", "zero"])


def disagreements(published: Published, table: str, row: str) -> pd.DataFrame:
    """List where a row of Table 5 or 7 that has ACPO's default settings differs from ACPO's row of Table 2.

    Returns:
        benchmark, regime, here (in `table`), main (in Table 2); empty when the two agree.
    """
    here, main = tidy(published.tables[table]), tidy(published.tables["table2"])
    keys = ["regime", "benchmark"]
    left = here[here["row"] == row].set_index(keys)["value"].rename("here")
    right = main[main["row"] == "ACPO"].set_index(keys)["value"].rename("main")
    both = pd.concat([left, right], axis=1).reset_index()
    return both[both["here"] != both["main"]]
