"""What an edit of the code or the rules makes again: a study whose outputs are all recorded, and then the edit."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.workflow.conftest import ROOT, command, environment

GRID = ["--config", "grid={methods: [dapo, acpo, cispo], regimes: [offp]}", "seeds=[0, 1]"]
TRIGGERS = ["--rerun-triggers", "mtime", "params", "input"]  # as in the profile
TARGETS = [f"results/mini_{method}_offp.json" for method in ("dapo", "acpo", "cispo")]


def snakemake(clone: Path, *arguments: str) -> str:
    line = command(clone, "--cores", "2", *arguments, *TRIGGERS, *GRID, "--", *TARGETS)
    line[line.index("--snakefile") + 1] = str(clone / "Snakefile")
    variables = {**environment(), "PYTHONPATH": str(clone / "src")}
    done = subprocess.run(line, capture_output=True, text=True, env=variables, cwd=clone, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone whose outputs are there, as Snakemake has recorded them; empty files do, for nothing reads them."""
    clone = tmp_path_factory.mktemp("clone")
    for name in ("Snakefile", "config.yaml", "workflow", "scripts", "src"):
        subprocess.run(["cp", "-a", str(ROOT / name), str(clone)], check=True)
    for line in re.findall(r"^    output: (.*)$", snakemake(clone, "--dry-run"), re.MULTILINE):
        for name in line.split(", "):
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            (clone / name).touch()
    snakemake(clone, "--touch", "--forceall")
    return clone


@pytest.fixture
def clone(recorded: Path, tmp_path: Path) -> Path:
    made = tmp_path / "clone"
    subprocess.run(["cp", "-a", str(recorded), str(made)], check=True)
    return made


def append(path: Path, line: str) -> None:
    path.write_text(f"{path.read_text()}\n\n{line}\n")


def planned(clone: Path) -> list[str]:
    """List the files that would be made again."""
    told = snakemake(clone, "--dry-run")
    return sorted(name for line in re.findall(r"^    output: (.*)$", told, re.MULTILINE) for name in line.split(", "))


def test_nothing_without_an_edit(clone: Path) -> None:
    assert planned(clone) == []


def test_only_the_cells_of_an_edited_method(clone: Path) -> None:
    append(clone / "src/acpo/objectives/cispo.py", "UNUSED = 1")
    made = planned(clone)
    assert [name for name in made if name.endswith("run.json")] == [
        "results/runs/mini_cispo_offp/seed0/run.json", "results/runs/mini_cispo_offp/seed1/run.json",
    ]  # fmt: skip
    assert all("cispo" in name for name in made)


def test_all_trained_cells_of_an_edited_engine(clone: Path) -> None:
    append(clone / "src/acpo/engines/tiny/update.py", "UNUSED = 1")
    made = planned(clone)
    assert sum(name.endswith("run.json") for name in made) == 1 + 3 * 2
    assert not any(name.startswith("results/data/") for name in made)


def test_verdicts_but_no_samples_of_an_edited_grader(clone: Path) -> None:
    append(clone / "src/acpo/evaluation.py", "UNUSED = 1")
    made = planned(clone)
    assert sum(name.endswith("verdicts.parquet") for name in made) == 3 * 2
    assert not any(name.endswith(("run.json", "samples.parquet")) for name in made)


@pytest.mark.parametrize(
    "file",
    [
        "src/acpo/objectives/cispo.py", "src/acpo/engines/tiny/update.py", "src/acpo/evaluation.py",
        "scripts/train_policy.py", "workflow/rules/train.smk", "Snakefile", "config.yaml",
    ],
)  # fmt: skip
def test_nothing_for_a_remark(clone: Path, file: str) -> None:
    append(clone / file, "# a remark")
    assert planned(clone) == []


def test_nothing_for_the_layout_of_a_command(clone: Path) -> None:
    path = clone / "workflow/rules/train.smk"
    text = path.read_text()
    path.write_text(text.replace('"{PYTHON} {SCRIPTS}/train_policy.py', '"{PYTHON}  {SCRIPTS}/train_policy.py'))
    assert path.read_text() != text
    assert planned(clone) == []
