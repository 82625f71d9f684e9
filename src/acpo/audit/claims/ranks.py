"""Ranks, wins and cross-regime drops of Sec. 5.2."""

import pandas as pd

from acpo.audit.claims.row import claim, rounds_to
from acpo.audit.published import Published
from acpo.audit.scores import average_ranks, places, settings, task_drops, tied_firsts
from acpo.audit.verdict import Row

PLACE = "Sec. 5.2"
METHODS = (("acpo", "ACPO"), ("dapo", "DAPO"), ("cispo", "CISPO"))
PLACES = (("firsts", 1, "first"), ("seconds", 2, "second"))


def rows(published: Published) -> list[Row]:
    """Recompute ranks under both tie rules, and drops under both averagings."""
    found = settings(published)
    ranks = [_rank(published, found, key, method) for key, method in METHODS]
    firsts = [_place(published, found, key, method, 0) for key, method in METHODS]
    return [*ranks, *firsts, _place(published, found, "acpo", "ACPO", 1), *_drops(published)]


def _rank(published: Published, found: pd.DataFrame, key: str, method: str) -> Row:
    said = published.said(f"rank_{key}")
    low, middle = (float(average_ranks(found, ties)[method]) for ties in ("min", "mid"))
    return claim(
        f"rank_{key}",
        PLACE,
        f"Average rank of {method} over 18 task-regime settings",
        published=said.printed,
        recomputed=f"{low:.3f} where tied methods share the better rank, {middle:.3f} where they share the mean rank",
        verdict=rounds_to(low, said),
        why="The tie rule is not stated; the verdict is about the first of the two.",
    )


def _place(published: Published, found: pd.DataFrame, key: str, method: str, which: int) -> Row:
    word, place, ordinal = PLACES[which]
    said, count = published.said(f"{word}_{key}"), int(places(found, place)[method])
    return claim(
        f"{word}_{key}",
        PLACE,
        f"In how many of 18 settings {method} comes {ordinal}",
        published=said.printed,
        recomputed=f"{count}{_shared(found, method, count) if place == 1 else ''}",
        verdict=count == said.value,
        why="Order of the printed scores, which have two decimals.",
    )


def _shared(found: pd.DataFrame, method: str, count: int) -> str:
    ties = tied_firsts(found, method)
    if ties.empty:
        return ""
    where = ", ".join(f"{task} {regime}" for task, regime in ties.index)
    top = ties.eq(ties.max(axis=1), axis=0).any()
    others = ", ".join(name for name in ties.columns[top] if name != method)
    return f", of which {len(ties)} shared with {others} ({where}) and {count - len(ties)} alone"


def _drops(published: Published) -> list[Row]:
    averagings = {
        "over four rows": task_drops(published, "four"),
        "over nine tasks": task_drops(published, "nine"),
        "over the rows without Countdown": task_drops(published, "four", leave_out=("Countdown",)),
    }
    methods = (("acpo", "ACPO"), ("cispo", "CISPO"), ("ar_lopti", "AR-Lopti"), ("dapo", "DAPO"))
    return [*(_drop(published, averagings, key, method) for key, method in methods), _order(averagings)]


def _drop(published: Published, averagings: dict[str, pd.Series], key: str, method: str) -> Row:
    said = published.said(f"drop_{key}")
    return claim(
        f"drop_{key}",
        f"{PLACE}, Fig. 3",
        f"{method}: change from near on-policy to off-policy",
        published=f"{said.printed} %",
        recomputed="; ".join(f"{drop[method]:+.2f} points {name}" for name, drop in averagings.items()),
        verdict=rounds_to(averagings["over four rows"][method], said),
        why="The rows are Countdown, HiTab 3B, HiTab 7B and the ORZ average. The verdict is about these four, in "
        "percentage points; neither the rows nor the unit is stated.",
    )


def _order(averagings: dict[str, pd.Series]) -> Row:
    larger = {name: bool(drop["CISPO"] < drop["DAPO"]) for name, drop in averagings.items()}
    holds = [name for name, holds in larger.items() if holds]
    return claim(
        "drop_order",
        PLACE,
        "CISPO loses more than DAPO from near on-policy to off-policy",
        published="-6.0 % and -1.2 %",
        recomputed="; ".join(
            f"{drop['CISPO']:+.2f} and {drop['DAPO']:+.2f} points {name}" for name, drop in averagings.items()
        ),
        verdict=len(holds) == len(larger),
        why=f"The order holds {', '.join(holds) or 'nowhere'}; reproduced would be the same order in all three.",
    )
