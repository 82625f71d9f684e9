"""Methods by name, discovered from the modules of this package.

A module that defines a concrete `Objective` is a method, and the module's name is the method's name: a new
method is one new file.
"""

import difflib
import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel

from acpo.objectives.base import Objective

_PACKAGE = "acpo.objectives"


def objective_names() -> list[str]:
    """Names of all methods, sorted."""
    return sorted(_classes())


def parameters_model(name: str) -> type[BaseModel]:
    """The pydantic model of a method's parameters.

    Raises:
        ValueError: no such method; the message names the nearest.
    """
    return _find(name).Parameters


def make_objective(name: str, parameters: Mapping[str, Any] | BaseModel) -> Objective:
    """The method `name` with `parameters`.

    Raises:
        ValueError: no such method; the message names the nearest.
        pydantic.ValidationError: a parameter is missing, unknown or out of range.
    """
    return _find(name)(parameters)


def _find(name: str) -> type[Objective]:
    classes = _classes()
    if name not in classes:
        nearest = difflib.get_close_matches(name.lower(), classes, n=1, cutoff=0.0)
        raise ValueError(
            f"unknown objective {name!r}: did you mean {nearest[0]!r}? Known: {', '.join(sorted(classes))}"
        )
    return classes[name]


@cache
def _classes() -> dict[str, type[Objective]]:
    found: dict[str, type[Objective]] = {}
    for module in pkgutil.iter_modules(importlib.import_module(_PACKAGE).__path__):
        loaded = importlib.import_module(f"{_PACKAGE}.{module.name}")
        for value in vars(loaded).values():
            if inspect.isclass(value) and issubclass(value, Objective) and value.__module__ == loaded.__name__:
                if inspect.isabstract(value):
                    continue
                if module.name in found:
                    raise ValueError(f"{loaded.__name__}: a method's module defines one objective, found two")
                found[module.name] = value
    return found
