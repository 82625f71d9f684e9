"""Where a result comes from: code, packages, machine, time and memory."""

import ast
import hashlib
import importlib.metadata
import importlib.util
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from acpo.cells import Cell
from acpo.config import Study, digest
from acpo.results import Provenance
from acpo.store import StoreError

PACKAGES = (
    *("torch", "transformers", "numpy", "pandas", "pyarrow", "scipy", "statsmodels", "snakemake", "safetensors"),
    *("math-verify", "latex2sympy2_extended", "antlr4-python3-runtime", "sympy"),
)
SOURCE = Path(__file__).parent


def _strip_docstrings(tree: ast.AST) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                node.body = node.body[1:]


def _module_file(module: str) -> Path | None:
    base = SOURCE.joinpath(*module.split(".")[1:])
    for candidate in (base.with_suffix(".py"), base / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None


@cache
def _meaning(module: str) -> tuple[str, frozenset[str]]:
    """Hash a module's syntax tree and list the modules of this package that it imports."""
    file = _module_file(module)
    if file is None:
        raise ValueError(f"{module} is not a module of this package")
    tree = ast.parse(file.read_text(encoding="utf-8"))
    _strip_docstrings(tree)
    imports: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            imports.add(node.module)
            imports.update(f"{node.module}.{alias.name}" for alias in node.names)
    ours = frozenset(name for name in imports if name.split(".")[0] == "acpo" and _module_file(name))
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest(), ours


def code_hash(modules: Iterable[str]) -> str:
    """Hash what some modules of this package, and all that they import from it, mean.

    Comments, docstrings and formatting change nothing; an edit of any code that is reached does. No module is
    imported, so that a workflow can ask cheaply.

    Args:
        modules: Dotted names, e.g. ``acpo.objectives.acpo``.

    Returns:
        16 hex digits.
    """
    reached: set[str] = set()
    waiting = list(modules)
    while waiting:
        module = waiting.pop()
        if module not in reached:
            reached.add(module)
            waiting.extend(_meaning(module)[1])
    text = "\n".join(f"{module} {_meaning(module)[0]}" for module in sorted(reached))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def training_modules(study: Study, cell: Cell) -> list[str]:
    """List the modules whose code decides what a run of this cell gives: engine, task and objective.

    verl finds ours by name, not by import. A model with `source: built` is made by the embedded engine. A module that
    this version does not have is left out: the job that needs it says so.
    """
    suite = study.suites[cell.suite]
    task, engine = f"acpo.tasks.{suite.task}", suite.engine
    if cell.is_base:
        built = study.models[suite.model].source == "built"
        wanted = ["acpo.engines.tiny.engine", task] if built else ["acpo.engines.published"]
    else:
        objective = f"acpo.objectives.{study.methods[cell.method].objective}"
        wanted = [f"acpo.engines.{engine.name}.engine", task, objective]
        if engine.name == "verl":
            found = ["plugin", "reward", *(["cpu"] if engine.device == "cpu" else [])]
            wanted += [f"acpo.engines.verl.{name}" for name in found]
    return [name for name in wanted if _module_file(name)]


def sampling_modules(study: Study, cell: Cell) -> list[str]:
    """List the modules whose code decides a cell's samples (see `training_modules`).

    verl's engine finds its samplers by name, not by import: a change of one samples again, but trains nothing again.
    """
    engine = study.suites[cell.suite].engine
    if engine.name == "tiny":
        return training_modules(study, cell)
    return ["acpo.engines.vllm" if engine.rollout == "vllm" else "acpo.engines.generation"]


def dataset_modules(task: str) -> list[str]:
    """List the modules whose code decides a formatted data set (see `training_modules`)."""
    return ["acpo.data.format", *(name for name in [f"acpo.tasks.{task}"] if _module_file(name))]


def grading_modules(study: Study, cell: Cell) -> list[str]:
    """List the modules whose code decides the verdicts of a cell (see `training_modules`)."""
    tasks = {f"acpo.tasks.{benchmark.task}" for benchmark in study.suites[cell.suite].benchmarks.values()}
    return ["acpo.evaluation", *sorted(name for name in tasks if _module_file(name))]


def file_hash(path: Path) -> str:
    """Return the sha256 of a file's content."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def weights_hash(checkpoint: Path) -> str:
    """Return the sha256 of a checkpoint's weights: of its one safetensors file, or of the names and hashes of several.

    Raises:
        StoreError: there is none.
    """
    files = sorted(checkpoint.glob("*.safetensors"))
    if not files:
        raise StoreError(f"{checkpoint}: no safetensors file: train or fetch the model again")
    hashes = [file_hash(file) for file in files]
    if len(files) == 1:
        return hashes[0]
    lines = "".join(f"{value}  {file.name}\n" for value, file in zip(hashes, files, strict=True))
    return hashlib.sha256(lines.encode()).hexdigest()


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(SOURCE), *arguments], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "absent"


class Clock:
    """Measures the wall time of a step and writes its provenance."""

    def __init__(self) -> None:
        """Start."""
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Wall time since the start."""
        return time.perf_counter() - self._start

    def provenance(
        self,
        configuration: dict[str, Any],
        modules: Iterable[str],
        data_hashes: dict[str, str],
        device: str = "cpu",
    ) -> Provenance:
        """Describe a finished step.

        Args:
            configuration: The resolved configuration that it depended on.
            modules: The modules that made it (see `code_hash`).
            data_hashes: sha256 of each input file, by a name of the reader's choice.
            device: Where it ran.
        """
        peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return Provenance(
            configuration=configuration,
            configuration_hash=digest(configuration),
            code_hash=code_hash(modules),
            data_hashes=data_hashes,
            git_commit=_git("rev-parse", "HEAD") or "not a git checkout",
            git_dirty=bool(_git("status", "--porcelain", "--untracked-files=no")),
            packages={package: _version(package) for package in PACKAGES},
            python=sys.version.split()[0],
            platform=platform.platform(),
            device=device,
            wall_seconds=round(self.seconds, 3),
            peak_memory_mb=round(peak_kb / 1024, 1),
        )
