"""The made-up study, written once; a test that changes files gets a copy."""

import shutil
from pathlib import Path

import pytest
from made_up import made_study, study


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder with every cell; never written to."""
    return made_study(tmp_path_factory.mktemp("whole"), study(), {"acpo": 0.15})


@pytest.fixture
def results(whole: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    shutil.copytree(whole, tmp_path / "results")
    return tmp_path / "results"
