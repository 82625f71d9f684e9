"""Python files that the documentation shows pass the checks that the project's own files pass."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documented import ROOT, documented_files

PAGES = sorted(path.name for path in (ROOT / "docs").glob("*.md"))


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources and of the tools' settings, with every documented Python file in its place."""
    root = tmp_path_factory.mktemp("clone")
    shutil.copy(ROOT / "pyproject.toml", root)
    shutil.copytree(ROOT / "src", root / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in python_files():
        assert not (root / name).exists()
        (root / name).write_text(python_files()[name], encoding="utf-8")
    return root


def python_files() -> dict[str, str]:
    shown = {name: text for page in PAGES for name, text in documented_files(page).items()}
    return {name: text for name, text in shown.items() if name.endswith(".py")}


def check(clone: Path, *tool: str) -> None:
    # The environment's own copy of the package is not the one to check against.
    variables = {**os.environ, "MYPYPATH": "src", "PYTHONPATH": "src"}
    line = [sys.executable, "-m", *tool, *python_files()]
    done = subprocess.run(line, cwd=clone, env=variables, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_pages_show_a_method_and_a_task() -> None:
    assert {Path(name).parent.name for name in python_files()} == {"objectives", "tasks"}


@pytest.mark.parametrize("tool", [("ruff", "check"), ("ruff", "format", "--check")], ids=" ".join)
def test_documented_files_pass_ruff(clone: Path, tool: tuple[str, ...]) -> None:
    check(clone, *tool)


@pytest.mark.slow
def test_documented_files_pass_mypy(clone: Path) -> None:
    check(clone, "mypy")
