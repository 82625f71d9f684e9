"""Tests of the verl environment share the small study of the unit tests."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show the step metrics of the real runs."""
    from verl_study import REPORT

    for text in REPORT:
        terminalreporter.write_line(text)
