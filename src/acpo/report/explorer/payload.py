"""The data of the page: what its script draws, lists and compares."""

from dataclasses import asdict
from typing import Any

from acpo.cells import grid_cells
from acpo.config import Study
from acpo.report.details import describe
from acpo.report.durations import run_times
from acpo.report.explorer.curves import BINS, BY_BIN, ROLLOUTS, UPDATES, training_curves
from acpo.report.explorer.packing import short
from acpo.report.explorer.pairs import compare_pairs
from acpo.report.explorer.questions import Graded, question_lists, right_counts
from acpo.report.sources import Results
from acpo.report.style import method_styles
from acpo.stats.records import StatisticsResult

DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
"""Plotly's names for the dashes of `acpo.report.style`, in their order."""


def page_data(results: Results, graded: Graded) -> dict[str, Any]:
    """Gather everything that the page's script needs but the responses, as JSON values."""
    study, statistics = results.study, results.statistics()
    curves, dynamics = training_curves(results)
    return {
        "methods": _methods(study),
        "regimes": {name: study.regimes[name].label for name in study.grid.regimes},
        "suites": {name: _suite(study, name) for name in study.grid.suites},
        "cells": [
            {"name": str(cell), "suite": cell.suite, "method": cell.method, "regime": cell.regime or "",
             "label": describe(study, cell)}
            for cell in grid_cells(study)
        ],
        "quantities": {name: what.label for name, what in {**ROLLOUTS, **UPDATES}.items()},
        "bin_quantities": {name: what.label for name, what in BY_BIN.items()},
        "bins": [f"π in [{number / BINS:.2g}, {(number + 1) / BINS:.2g}{']' if number + 1 == BINS else ')'}" for
                 number in range(BINS)],
        "curves": curves,
        "dynamics": dynamics,
        "scores": _scores(statistics),
        "declared": [item.model_dump(mode="json") for item in statistics.comparisons] if statistics else [],
        "coverage": 1 - study.statistics.alpha,
        "questions": question_lists(graded),
        "right": right_counts(graded),
        "pairs": compare_pairs(graded.evidence, study.statistics.alpha),
        "times": [asdict(row) for row in run_times(results)],
    }  # fmt: skip


def _methods(study: Study) -> dict[str, dict[str, str]]:
    styles = method_styles(study.grid.methods)
    lines = {
        name: {"label": study.methods[name].label, "colour": style["color"], "dash": DASHES[place % len(DASHES)]}
        for place, (name, style) in enumerate(styles.items())
    }
    return {"base": {"label": "Base Model", "colour": "#808080", "dash": "solid"}, **lines}


def _suite(study: Study, name: str) -> dict[str, Any]:
    suite = study.suites[name]
    return {"label": suite.label, "benchmarks": {key: item.label for key, item in suite.benchmarks.items()}}


def _scores(statistics: StatisticsResult | None) -> list[dict[str, Any]]:
    return [
        {
            "cell": item.cell,
            "place": f"{item.suite}/{item.benchmark}",
            "checkpoint": item.checkpoint,
            "mean": short(100 * item.mean),
            "low": short(100 * item.interval.low) if item.interval else None,
            "high": short(100 * item.interval.high) if item.interval else None,
        }
        for item in (statistics.cells if statistics else [])
    ]
