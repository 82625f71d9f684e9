"""The HTML report: one file that opens offline, with every table, figure and number of a study."""

import base64

import jinja2

from acpo.cells import grid_cells
from acpo.config import Method, Study, digest
from acpo.report import details, registry
from acpo.report.sources import Results
from acpo.report.style import Drawing, encode
from acpo.report.table import Table


def render_table(table: Table) -> str:
    """Return a table as an HTML fragment; each number carries its cell and file in data attributes."""
    return environment().get_template("table.html.j2").render(table=table) + "\n"


def render_report(results: Results) -> str:
    """Return the whole report as one HTML document without any external reference.

    Raises:
        StoreError: a result or log that exists but cannot be read.
    """
    study = results.study
    scores = details.score_rows(results)
    gaps = details.missing_cells(results)
    cells = grid_cells(study)
    context = {
        "study": study,
        "study_hash": digest(study),
        "tables": [registry.make_table(name, results) for name in registry.table_names()],
        "figures": [
            {"drawing": drawing, "source": _embedded(drawing)}
            for name in registry.figure_names()
            for drawing in registry.draw_figure(name, results)
        ],
        "scores": scores,
        "pass_columns": details.pass_columns(scores),
        "gaps": gaps,
        "cells": len(cells),
        "made": sum(results.cell(cell) is not None for cell in cells),
        "suites": _suites(study),
        "origins": details.origin_rows(results),
        "environment": details.environment(results),
    }
    return environment().get_template("report.html.j2").render(context) + "\n"


def environment() -> jinja2.Environment:
    """Return the template engine of the report: everything is escaped, an unknown name is an error."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("acpo.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["settings"] = _settings
    return environment


def _embedded(drawing: Drawing) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(encode(drawing, "svg")).decode("ascii")


def _settings(method: Method) -> str:
    """Print a method's parameters, with the source of those that are measured in another method's runs."""
    measured = {name: f"{source.statistic} of {source.method}, measured" for name, source in method.measured.items()}
    parameters = {**method.parameters, **measured}
    return ", ".join(f"{name} = {value}" for name, value in parameters.items()) or "none"


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
