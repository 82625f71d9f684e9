"""The made-up study of `report_fixtures`, written once; tests that change files make their own."""

import json
from pathlib import Path

import pytest
from explorer_fixtures import explored_study, fill_stores
from report_fixtures import fill, study_values

from acpo.config import Study, parse_study
from acpo.report.page import render_report
from acpo.report.sources import Results


@pytest.fixture
def study() -> Study:
    return parse_study(study_values())


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Every cell and every log."""
    return fill(tmp_path_factory.mktemp("results"), parse_study(study_values()))


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report of a study where one cell is missing."""
    root = tmp_path_factory.mktemp("gap")
    return render_report(fill(root, parse_study(study_values()), leave_out=("mini_cispo_offp",)))


@pytest.fixture(scope="session")
def explored(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A study with stores, statistics and an audit; some of its responses are hostile."""
    return fill_stores(tmp_path_factory.mktemp("explored"), explored_study())


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(study_values()))
    return path
