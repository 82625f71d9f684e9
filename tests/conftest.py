"""What all tests share."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def mirror() -> Path:
    """The mirror of real files, from the environment."""
    place = os.environ.get("ACPO_MIRROR")
    if not place:
        pytest.skip("ACPO_MIRROR is not set: this test needs the mirror of real data files")
    return Path(place)


@pytest.fixture(scope="session")
def paper() -> str:
    """The paper's text, from the environment."""
    place = os.environ.get("ACPO_PAPER")
    if not place:
        pytest.skip("ACPO_PAPER is not set: this test needs the text of the paper")
    return Path(place).read_text(encoding="utf-8")
