"""What every script shares: how it reads its study and how it fails."""

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

from acpo import interrupts  # first: it keeps Ctrl-C quiet while the others load
from acpo.cells import Cell, CellNames
from acpo.config import Study, load_study
from acpo.data.problems import read_problems
from acpo.engines import EngineError
from acpo.errors import ConfigError
from acpo.sections import EngineSection
from acpo.segments import EXIT_STATUS, NoProgressError, SegmentEndedError
from acpo.store import StoreError
from acpo.tasks.base import Problem


def parser(description: str | None) -> argparse.ArgumentParser:
    """Start a script's parser with `--config`."""
    made = argparse.ArgumentParser(description=description, allow_abbrev=False)
    made.add_argument("--config", type=Path, default=Path("config.yaml"), help="the study (YAML or JSON)")
    return made


def environment_python(engine: EngineSection) -> Path | None:
    """Return the interpreter of an engine's virtual environment, made or not; None is the active one."""
    name = engine.virtual_environment()
    return None if name is None else Path(sys.argv[0]).resolve().parent.parent / name / "bin" / "python"


def enter_environment(engine: EngineSection) -> None:
    """Go on in the virtual environment of an engine: the script starts again there, unless it runs there already.

    Raises:
        ConfigError: it has not been made.
    """
    python = environment_python(engine)
    if python is None or Path(sys.prefix).resolve() == python.parents[1].resolve():
        return
    if not python.is_file():
        name, clone = python.parents[1].name, python.parents[2]
        raise ConfigError(f"no environment at {clone / name}: make {name.removeprefix('.')} in {clone} sets it up")
    os.execv(python, [str(python), *sys.argv])


def keyed_path(text: str) -> tuple[str, Path]:
    """Read an option of the form KEY=PATH.

    Raises:
        argparse.ArgumentTypeError: it has no `=`.
    """
    key, equals, path = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"expected KEY=PATH, got {text!r}")
    return key, Path(path)


def study_and_cell(arguments: argparse.Namespace) -> tuple[Study, Cell]:
    """Load `--config` and find `--cell` in it."""
    study = load_study(arguments.config)
    return study, CellNames(study).parse(arguments.cell)


def benchmark_problems(study: Study, cell: Cell, data: Path) -> dict[str, list[Problem]]:
    """Read the questions of each of a suite's benchmarks from the directory of formatted data sets."""
    benchmarks = study.suites[cell.suite].benchmarks
    return {name: read_problems(data / item.task / f"{item.split}.parquet") for name, item in benchmarks.items()}


def run(main: Callable[[], None]) -> None:
    """Run a script; every end but a fault of this program is one line on standard error and an exit status.

    1 for what the user can put right, 75 for training that a signal ended at a safe point, 130 for Ctrl-C elsewhere.
    """
    try:
        main()
    except (ConfigError, StoreError, EngineError, NoProgressError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    except SegmentEndedError as end:
        print(end, file=sys.stderr)
        sys.exit(EXIT_STATUS)
    except KeyboardInterrupt:
        print(interrupts.MESSAGE, file=sys.stderr)
        sys.exit(interrupts.EXIT_STATUS)
