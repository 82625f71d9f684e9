"""The report: one HTML file that opens offline, to read without a script and to explore with one."""

import base64
from importlib.resources import files

import jinja2
from markupsafe import Markup

from acpo.cells import grid_cells
from acpo.config import Study, digest
from acpo.report import details, inference, registry, spread
from acpo.report.durations import run_times
from acpo.report.explorer.libraries import libraries
from acpo.report.explorer.packing import compact, pack, script_source
from acpo.report.explorer.payload import page_data
from acpo.report.explorer.questions import Graded, read_graded
from acpo.report.explorer.responses import Packed, pack_responses
from acpo.report.gaps import find_gaps
from acpo.report.html import environment
from acpo.report.sources import Results
from acpo.report.style import Drawing, encode
from acpo.stats.power import SEED_COUNTS

SCRIPT = ("basics", "tables", "plots", "scores", "curves", "questions", "pairs", "start")
"""Parts of the page's script, in the order in which they are put together."""


def render_report(results: Results) -> str:
    """Return the whole report as one HTML document without any external reference.

    Text that a model wrote is in packed data blocks only, and reaches the page as text.

    Raises:
        StoreError: a result or log that exists but cannot be read.
    """
    graded = read_graded(results)
    packed = pack_responses(results, graded)
    context = {**_results(results), **_statistics(results), **_study(results.study), **_page(results, graded, packed)}
    return _environment().get_template("report.html.j2").render(context) + "\n"


def _results(results: Results) -> dict[str, object]:
    """Gather what is read off the results: tables, figures, scores, times, origins, gaps."""
    scores, cells = details.score_rows(results), grid_cells(results.study)
    return {
        "tables": registry.made_tables(results),
        "figures": [
            {"drawing": drawing, "source": _embedded(drawing)}
            for name in registry.figure_names()
            for drawing in registry.draw_figure(name, results)
        ],
        "scores": scores,
        "pass_columns": details.pass_columns(scores),
        "gaps": find_gaps(results),
        "cells": len(cells),
        "made": sum(results.cell(cell) is not None for cell in cells),
        "times": run_times(results),
        "origins": details.origin_rows(results),
        "environment": details.environment(results),
        "audits": [audit for name in ("ledger", "published") if (audit := results.audit(name))],
    }


def _statistics(results: Results) -> dict[str, object]:
    statistics = results.statistics()
    study = results.study
    return {
        "statistics": statistics,
        "intervals": inference.score_intervals(statistics),
        "comparisons": inference.comparison_rows(study, statistics) if statistics else [],
        "families": inference.family_rows(statistics) if statistics else [],
        "ranks": inference.rank_rows(study, statistics) if statistics else [],
        "detectable": spread.detectable_rows(study, statistics) if statistics else [],
        "variances": spread.variance_rows(study, statistics) if statistics else [],
        "seed_counts": SEED_COUNTS,
        "variance_sources": spread.SOURCES,
        "variance_meaning": spread.MEANING,
    }


def _study(study: Study) -> dict[str, object]:
    return {"study": study, "study_hash": digest(study), "suites": _suites(study)}


def _page(results: Results, graded: Graded, packed: Packed) -> dict[str, object]:
    """Gather the script, its libraries and its data, and the policy that lets nothing else run."""
    templates = files("acpo.report") / "templates"
    script = "\n".join((templates / f"explore_{part}.js").read_text(encoding="utf-8") for part in SCRIPT)
    sources = [script_source(script), *(library.source for library in libraries())]
    return {
        "script": Markup(script),
        "script_sources": Markup(" ".join(sources)),
        "libraries": libraries(),
        "page_data": pack(compact(page_data(results, graded))),
        "responses": Markup(compact(packed.blocks).replace("<", "\\u003c")),
        "coverage": [
            {
                "label": "/".join(place),
                "questions": len(graded.questions[place]),
                "shown": sorted(shown),
            }
            for place, shown in packed.shown.items()
        ],
    }


def _environment() -> jinja2.Environment:
    made = environment()
    made.filters["duration"] = details.duration
    return made


def _embedded(drawing: Drawing) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(encode(drawing, "svg")).decode("ascii")


def _suites(study: Study) -> list[dict[str, str]]:
    """Describe the suites of the grid, one mapping of column to text each."""
    described = []
    for name in study.grid.suites:
        suite = study.suites[name]
        training = suite.training
        length = f"{training.epochs} epochs" if training.epochs else f"{training.prompts} prompts"
        described.append(
            {
                "Suite": suite.label,
                "Model": study.models[suite.model].label,
                "Engine": suite.engine.name,
                "Training": f"{length}, {training.group_size} responses each",
                "Learning rate": f"{training.learning_rate:g}",
                "Temperature": f"{training.temperature:g}",
                "Response limit": f"{training.max_response_tokens} tokens",
                "Validation": f"{suite.validation.split} split, avg@{suite.validation.samples}",
                "Benchmarks": "; ".join(
                    f"{b.label} ({b.split} split, avg@{b.samples})" for b in suite.benchmarks.values()
                ),
                "Note": suite.note or "",
            }
        )
    return described
