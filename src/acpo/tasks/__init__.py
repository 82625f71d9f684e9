"""Tasks by name: each module of this package that defines `TASK` is one."""

import importlib
import pkgutil

from acpo.errors import ConfigError
from acpo.tasks.base import Task

_NOT_TASKS = {"base"}


def task_names() -> list[str]:
    """List the tasks, by file name."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name not in _NOT_TASKS)


def load_task(name: str) -> Task:
    """Return the task in `acpo/tasks/<name>.py`.

    Raises:
        ConfigError: this version does not have it.
    """
    if name not in task_names():
        raise ConfigError(
            f"the task {name!r} is not part of this version (it has: {', '.join(task_names())}): "
            "choose a suite whose task is"
        )
    return importlib.import_module(f"{__name__}.{name}").TASK
