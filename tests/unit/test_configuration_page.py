"""`docs/configuration.md` explains every key, as `config.yaml` says."""

import inspect
import re
from pathlib import Path

import pytest

from acpo import sections
from acpo.config import Study

PAGE = (Path(__file__).parents[2] / "docs/configuration.md").read_text(encoding="utf-8")
# Under which heading of the page a section's keys are: `prompts` of one section does not explain that of another.
HEADINGS: dict[type[sections.Strict], str] = {
    Study: "Configuration",
    sections.Grid: "Configuration",
    sections.Regime: "Configuration",
    sections.Method: "Configuration",
    sections.MeasuredParameter: "Measured parameters",
    sections.BuiltModel: "`models.<name>`",
    sections.SupervisedStart: "`models.<name>`",
    sections.HubModel: "`models.<name>`",
    sections.Suite: "`suites.<name>`",
    sections.Validation: "`suites.<name>`",
    sections.Benchmark: "`suites.<name>`",
    sections.TokenStore: "`suites.<name>`",
    sections.Resources: "`suites.<name>`",
    sections.Training: "`suites.<name>.training`",
    sections.Probes: "`probes`",
    sections.Statistics: "`statistics`",
    sections.Family: "`statistics`",
    sections.TinyEngine: "The embedded engine",
    sections.VerlEngine: "verl",
}
# What goes for the key wherever it stands is said once, at the top.
ANYWHERE = {"label"}


def named(heading: str) -> set[str]:
    """The words in code, in line or fenced, under a heading."""
    parts = re.split(r"^##? (.+)\n", PAGE, flags=re.MULTILINE)
    text = dict(zip(parts[1::2], parts[2::2], strict=True))[heading]
    code = re.findall(r"^```.*?^```|`[^`\n]+`", text, flags=re.MULTILINE | re.DOTALL)
    return set(re.findall(r"\w+", " ".join(code)))


def test_every_section_has_its_heading() -> None:
    models = {
        value
        for _, value in inspect.getmembers(sections, inspect.isclass)
        if issubclass(value, sections.Strict) and value.model_fields
    }
    assert set(HEADINGS) == models | {Study}


@pytest.mark.parametrize("section", HEADINGS, ids=lambda section: section.__name__)
def test_every_key_is_explained(section: type[sections.Strict]) -> None:
    known = named(HEADINGS[section]) | (ANYWHERE & named("Configuration"))
    assert set(section.model_fields) <= known, set(section.model_fields) - known
