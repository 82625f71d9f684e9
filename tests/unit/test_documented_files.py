"""Files that the documentation shows pass the checks and the tests that the project's own files pass."""

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
    """A copy of the sources, tests and settings, with every documented Python file and the method's entry in place."""
    root = tmp_path_factory.mktemp("clone")
    shutil.copy(ROOT / "pyproject.toml", root)
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in python_files():
        assert not (root / name).exists()
        (root / name).write_text(python_files()[name], encoding="utf-8")
    config = (ROOT / "config.yaml").read_text(encoding="utf-8")
    entry = documented_files("add_a_method.md")["method.yaml"]
    (root / "config.yaml").write_text(config.replace("\nmethods:\n", f"\n{entry}"), encoding="utf-8")
    return root


def python_files() -> dict[str, str]:
    shown = {name: text for page in PAGES for name, text in documented_files(page).items()}
    return {name: text for name, text in shown.items() if name.endswith(".py")}


def check(clone: Path, *tool: str) -> str:
    # The environment's own copy of the package is not the one to check against.
    variables = {**os.environ, "MYPYPATH": str(clone / "src"), "PYTHONPATH": str(clone / "src")}
    line = [sys.executable, "-m", *tool]
    done = subprocess.run(line, cwd=clone, env=variables, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_pages_show_a_method_and_a_task() -> None:
    assert {Path(name).parent.name for name in python_files()} == {"objectives", "tasks"}


@pytest.mark.parametrize("tool", [("ruff", "check"), ("ruff", "format", "--check")], ids=" ".join)
def test_documented_files_pass_ruff(clone: Path, tool: tuple[str, ...]) -> None:
    check(clone, *tool, *python_files())


@pytest.mark.slow
def test_documented_files_pass_mypy(clone: Path) -> None:
    check(clone, "mypy", *python_files())


@pytest.mark.slow
def test_the_documented_method_is_tested_with_the_others(clone: Path) -> None:
    told = check(clone, "pytest", "-vv", "tests/unit/objectives", "tests/unit/test_shipped_config.py")
    for module in ("test_loss_properties.py", "test_loss_cases_masks.py", "test_objective_interface.py"):
        assert any(module in line and "cautious" in line for line in told.splitlines())
