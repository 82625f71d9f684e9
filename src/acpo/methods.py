"""Configured methods as objectives."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
from pydantic import ValidationError

from acpo.config import Study
from acpo.errors import ConfigError
from acpo.objectives import Objective, make_objective
from acpo.store import read_table


def method_objective(study: Study, method: str, measured: Mapping[str, float]) -> Objective:
    """Make the objective of a configured method.

    Args:
        study: The study.
        method: Its key in `methods`.
        measured: Values of its measured parameters (see `measured_parameters`).

    Raises:
        ConfigError: unknown objective, or parameters that it refuses; names the key.
    """
    definition = study.methods[method]
    try:
        return make_objective(definition.objective, {**definition.parameters, **measured})
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
        raise ConfigError(f"methods.{method}.parameters: {faults}") from error
    except ValueError as error:
        raise ConfigError(f"methods.{method}.objective: {error}") from error


def check_methods(study: Study) -> None:
    """Make every configured method once, so that a wrong parameter shows before anything runs.

    Raises:
        ConfigError: as in `method_objective`.
    """
    for name, method in study.methods.items():
        method_objective(study, name, dict.fromkeys(method.measured, 0.2))


def measured_parameters(study: Study, method: str, metrics: Mapping[str, Path]) -> dict[str, float]:
    """Read a method's measured parameters from the metrics of the runs that it names.

    `clip_width_mean` is the mean over all tokens of all updates, `clip_width_max` the largest of all updates.

    Args:
        study: The study.
        method: Its key in `methods`.
        metrics: The `metrics.parquet` of each method named, of the same suite, regime and seed.

    Raises:
        ConfigError: the run of a method named is not among them.
        StoreError: a table is missing, damaged or lacks the statistic.
    """
    values = {}
    for parameter, source in study.methods[method].measured.items():
        if source.method not in metrics:
            raise ConfigError(f"methods.{method}.measured.{parameter}: needs a finished run of {source.method!r}")
        needed = pa.schema([(source.statistic, pa.float64()), ("tokens", pa.float64())])
        frame = read_table(metrics[source.method], needed)
        column = frame[source.statistic]
        if source.statistic == "clip_width_mean":
            values[parameter] = float((column * frame["tokens"]).sum() / frame["tokens"].sum())
        else:
            values[parameter] = float(column.max())
    return values
