"""The shipped configuration, and a study small enough to train in seconds."""

import copy
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from small_study import SmallStudy, make_small_study

from acpo.config import Study, parse_study

ROOT = Path(__file__).parents[2]
SHIPPED = yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8"))

Edit = Callable[[dict[str, Any]], None]


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def values() -> dict[str, Any]:
    """The content of config.yaml, to change at will (no two sections share an object)."""
    return copy.deepcopy(yaml.load(yaml.dump(SHIPPED, Dumper=_NoAliases), yaml.SafeLoader))


class _NoAliases(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        return True


@pytest.fixture(scope="session")
def shipped() -> Study:
    return parse_study(SHIPPED, "config.yaml")


@pytest.fixture(scope="session")
def small_base(tmp_path_factory: pytest.TempPathFactory) -> SmallStudy:
    """A small study with its data sets and a trained base model; never written to by a test."""
    return make_small_study(tmp_path_factory.mktemp("small"))


@pytest.fixture
def small(small_base: SmallStudy, tmp_path: Path) -> SmallStudy:
    """A copy of the small study that a test may change."""
    shutil.copytree(small_base.root, tmp_path / "small")
    return SmallStudy(tmp_path / "small")
