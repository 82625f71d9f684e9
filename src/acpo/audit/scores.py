"""Averages, ranks and cross-regime drops of Tables 1, 2, 5 and 7, recomputed from their printed scores."""

from collections.abc import Iterable
from typing import Literal, cast

import pandas as pd

from acpo.audit.published import Published, PublishedTable

NEAR, OFF = "N-OnP.", "OffP."
AVERAGE = "Avg."
BASE = "Base Model"
TIES: dict[str, Literal["min", "average"]] = {"min": "min", "mid": "average"}
# A mean of six two-decimal scores lies exactly half-way between two printable ones now and then.
SLACK = 1e-9


def tidy(table: PublishedTable) -> pd.DataFrame:
    """Return a table of scores by row label, benchmark and regime, wherever it prints the regime.

    Columns: row, benchmark, regime, value, rounding.
    """
    frame = table.frame()
    by_panel = frame["panel"].isin([NEAR, OFF])
    frame["regime"] = frame["panel"].where(by_panel, frame["column"])
    frame["benchmark"] = frame["column"].where(by_panel, frame["group"])
    return frame[["row", "benchmark", "regime", "value", "rounding"]]


def average_gaps(table: PublishedTable) -> pd.DataFrame:
    """Compare each printed average with the mean of the benchmarks beside it.

    Returns:
        One row an average: row, regime, printed, recomputed, gap (recomputed minus printed) and `within`: whether
        rounding alone explains the gap.
    """
    frame = tidy(table)
    single = frame["benchmark"] != AVERAGE
    means = frame[single].groupby(["regime", "row"], sort=False)["value"].mean().rename("recomputed")
    printed = frame[~single].set_index(["regime", "row"])
    gaps = printed.join(means).rename(columns={"value": "printed"}).reset_index()
    gaps["gap"] = gaps["recomputed"] - gaps["printed"]
    gaps["within"] = gaps["gap"].abs() <= gaps["rounding"] + SLACK
    return gaps[["row", "regime", "printed", "recomputed", "gap", "within"]]


def settings(published: Published) -> pd.DataFrame:
    """Return the 18 task-regime settings: index (task, regime), one column a trained method, in percent.

    Countdown, HiTab with 3B and 7B, and the six benchmarks of the ORZ models, near on-policy and off-policy.
    """
    countdown, hitab, math = (tidy(published.tables[name]) for name in ("table1a", "table1b", "table2"))
    parts = [
        countdown.assign(task="Countdown"),
        hitab.assign(task="HiTab " + hitab["benchmark"]),
        math.assign(task=math["benchmark"])[math["benchmark"] != AVERAGE],
    ]
    scores = pd.concat(parts)
    return _wide(scores)


def _wide(scores: pd.DataFrame) -> pd.DataFrame:
    trained = scores[scores["row"] != BASE]
    return trained.pivot(index=["task", "regime"], columns="row", values="value")


def average_ranks(scores: pd.DataFrame, ties: str) -> pd.Series:
    """Average each method's rank over settings, 1 the highest.

    Args:
        scores: See `settings`.
        ties: `min` gives tied methods the best of their ranks, `mid` the mean of them.
    """
    return scores.rank(axis=1, ascending=False, method=TIES[ties]).mean()


def places(scores: pd.DataFrame, place: int) -> pd.Series:
    """Count how often each method has a place (1 is first) with min-ranks: tied methods share the better place."""
    return (scores.rank(axis=1, ascending=False, method="min") == place).sum()


def tied_firsts(scores: pd.DataFrame, method: str) -> pd.DataFrame:
    """Return the settings in which a method shares the first place."""
    top = scores.eq(scores.max(axis=1), axis=0)
    return scores[top[method] & (top.sum(axis=1) > 1)]


def drops(scores: pd.DataFrame, tasks: Iterable[str]) -> pd.Series:
    """Average off-policy minus near on-policy over tasks, in percentage points, by method.

    Args:
        scores: See `settings` and `with_math_average`.
        tasks: Which of its tasks count, equally.
    """
    change = scores.xs(OFF, level="regime") - scores.xs(NEAR, level="regime")
    return cast(pd.Series, change.loc[list(tasks)].mean())


def with_math_average(published: Published) -> pd.DataFrame:
    """Return Countdown, HiTab 3B, HiTab 7B and the printed average of Table 2: the paper's four rows."""
    math = tidy(published.tables["table2"])
    average = _wide(math[math["benchmark"] == AVERAGE].assign(task="ORZ average"))
    single = settings(published)
    return pd.concat([single.loc[[task for task in _tasks(single) if task not in set(math["benchmark"])]], average])


def _tasks(scores: pd.DataFrame) -> list[str]:
    return list(dict.fromkeys(scores.index.get_level_values("task")))


def task_drops(published: Published, averaging: str, leave_out: tuple[str, ...] = ()) -> pd.Series:
    """Return each method's cross-regime drop under one of the two averagings.

    Args:
        published: The paper's numbers.
        averaging: `four` rows (Countdown, HiTab 3B, HiTab 7B, the ORZ average) or `nine` tasks.
        leave_out: Tasks that do not count.
    """
    scores = {"four": with_math_average, "nine": settings}[averaging](published)
    return drops(scores, [task for task in _tasks(scores) if task not in leave_out])
