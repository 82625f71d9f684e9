"""The statistics as flat tables, for CSV files and terminals; differences in points."""

import pandas as pd

from acpo.stats.comparison import in_points
from acpo.stats.records import Interval, StatisticsResult


def flat_tables(result: StatisticsResult) -> dict[str, pd.DataFrame]:
    """Flatten a study's statistics: one table a kind of result, by the name of its file."""
    return {
        "cells": pd.DataFrame([_flat(item.model_dump()) for item in result.cells]),
        "comparisons": pd.DataFrame(in_points(result.comparisons)),
        "families": pd.DataFrame(
            [{"family": name} | item.model_dump() for name, items in result.families.items() for item in items]
        ).map(_joined),
        "ranks": pd.DataFrame(
            [
                {"checkpoint": ranking.checkpoint, "ties": ranking.ties, "configurations": len(ranking.configurations)}
                | _flat(method.model_dump())
                | {"critical_difference": ranking.critical_difference, "friedman_p": ranking.friedman_p}
                for ranking in result.rankings
                for method in ranking.methods
            ]
        ),
        "profiles": pd.DataFrame(
            [
                {"checkpoint": item.checkpoint, "method": item.method, "threshold": threshold, "above": above}
                | _ends(item.above_intervals[index] if item.above_intervals else None)
                for item in result.profiles
                for index, (threshold, above) in enumerate(zip(item.thresholds, item.above, strict=True))
            ]
        ),
        "iqm": pd.DataFrame(
            [
                {"checkpoint": item.checkpoint, "method": item.method, "iqm": item.iqm} | _ends(item.iqm_interval)
                for item in result.profiles
            ]
        ),
        "detectable": detectable_table(result),
    }


def detectable_table(result: StatisticsResult) -> pd.DataFrame:
    """Return the minimum detectable differences in points: one row a comparison, one column a number of seeds."""
    frame = pd.DataFrame([item.model_dump() for item in result.detectable])
    if frame.empty:
        return frame
    keys = ["suite", "regime", "benchmark", "checkpoint", "treatment", "baseline", "questions", "k"]
    frame["points"] = 100 * frame["difference"]
    frame["seeds"] = frame["seeds"].map(lambda seeds: f"seeds_{seeds}")
    names = list(dict.fromkeys(frame["seeds"]))
    return frame.pivot(index=keys, columns="seeds", values="points")[names].reset_index().rename_axis(columns=None)


def _flat(values: dict) -> dict[str, object]:
    """Spread nested mappings over columns named after their keys; join lists."""
    row: dict[str, object] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            row |= {f"{key}_{name}": inner for name, inner in value.items()}
        else:
            row[key] = _joined(value)
    return row


def _joined(value: object) -> object:
    return "; ".join(map(str, value)) if isinstance(value, list) else value


def _ends(interval: Interval | None) -> dict[str, float | None]:
    return {"low": interval.low if interval else None, "high": interval.high if interval else None}
