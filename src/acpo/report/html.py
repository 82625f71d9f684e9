"""HTML fragments from templates: tables, and the template engine that all pages share."""

import jinja2

from acpo.report.table import Table
from acpo.sections import Method


def render_table(table: Table) -> str:
    """Return a table as an HTML fragment; each number carries its cell and file in data attributes."""
    return environment().get_template("table.html.j2").render(table=table) + "\n"


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


def _settings(method: Method) -> str:
    """Print a method's parameters, with the source of those that are measured in another method's runs."""
    measured = {name: f"{source.statistic} of {source.method}, measured" for name, source in method.measured.items()}
    parameters = {**method.parameters, **measured}
    return ", ".join(f"{name} = {value}" for name, value in parameters.items()) or "none"
