"""The study: what `config.yaml` may say as a whole, checked before anything runs."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, Field, NonNegativeInt, ValidationError, model_validator

from acpo.errors import ConfigError, nearest
from acpo.sections import (
    BuiltModel,
    Grid,
    HubModel,
    Method,
    Name,
    Probes,
    Regime,
    Statistics,
    Strict,
    Suite,
)


class Study(Strict):
    """Everything a study is: definitions as maps, what to run as lists.

    `grid` is what `all` makes. `ablations` are grids beside it, by the name of the table that each is for.
    """

    root_seed: NonNegativeInt
    seeds: list[NonNegativeInt]
    grid: Grid
    ablations: dict[Name, Grid] = Field(default_factory=dict)
    regimes: dict[Name, Regime]
    models: dict[Name, Annotated[BuiltModel | HubModel, Field(discriminator="source")]]
    methods: dict[Name, Method]
    suites: dict[Name, Suite]
    probes: Probes
    statistics: Statistics

    @model_validator(mode="after")
    def _families_exist(self) -> "Study":
        known = {"base": None, **self.methods}
        for key, family in self.statistics.families.items():
            where = f"statistics.families.{key}"
            _require(family.treatment, self.methods, f"{where}.treatment")
            for baseline in family.baselines:
                _require(baseline, known, f"{where}.baselines")
            if family.treatment in family.baselines or len(set(family.baselines)) != len(family.baselines):
                raise ValueError(f"{where}.baselines: give each once, and not the treatment itself")
            for kind in ("suites", "regimes"):
                for name in getattr(family, kind) or ():
                    _require(name, getattr(self, kind), f"{where}.{kind}")
        return self

    @model_validator(mode="after")
    def _references_exist(self) -> "Study":
        for key, suite in self.suites.items():
            _require(suite.model, self.models, f"suites.{key}.model")
            for regime in suite.regimes:
                _require(regime, self.regimes, f"suites.{key}.regimes")
            for regime in self.regimes:
                prompts, size = suite.training.prompts, self.regime(key, regime).train_batch_size
                if prompts is not None and prompts < size:
                    raise ValueError(
                        f"suites.{key}.training.prompts: {prompts} are less than one rollout of regime {regime!r} "
                        f"({size}): give more"
                    )
        for key, method in self.methods.items():
            for parameter, source in method.measured.items():
                _require(source.method, self.methods, f"methods.{key}.measured.{parameter}.method")
                if self.methods[source.method].measured:
                    raise ValueError(f"methods.{key}.measured.{parameter}: {source.method} is measured itself")
        _require(self.probes.reference, self.methods, "probes.reference")
        for key, names in (("compared", self.probes.compared), ("methods", self.probes.methods)):
            for name in names:
                _require(name, self.methods, f"probes.{key}")
        if "base" in self.methods:
            raise ValueError("methods: 'base' is the untrained cell's name and cannot be a method")
        return self

    @model_validator(mode="after")
    def _lists_name_what_exists(self) -> "Study":
        grids = {"grid": self.grid, **{f"ablations.{name}": grid for name, grid in self.ablations.items()}}
        lists = {f"{place}.{kind}": (kind, chosen) for place, grid in grids.items() for kind, chosen in grid}
        for place, (kind, chosen) in lists.items():
            for name in chosen:
                _require(name, getattr(self, kind), place)
            _require_each_once(chosen, place)
        _require_each_once(self.seeds, "seeds")
        return self

    def regime(self, suite: str, regime: str) -> Regime:
        """Return a suite's batch sizes in a regime: its own where it has them, else the common ones."""
        return self.suites[suite].regimes.get(regime, self.regimes[regime])

    def ablated(self, name: str) -> "Study":
        """Return this study with the grid of one of its ablations in the place of its own.

        Raises:
            ConfigError: no such ablation; names the nearest.
        """
        if name not in self.ablations:
            raise ConfigError(f"ablations: no grid {name!r}; {nearest(name, self.ablations)}")
        return self.model_copy(update={"grid": self.ablations[name]})


def _require(name: str, known: Mapping[str, Any], where: str) -> None:
    if name not in known:
        raise ValueError(f"{where}: unknown name {name!r}; {nearest(name, known)}")


def _require_each_once(chosen: Sequence[Any], where: str) -> None:
    if not chosen or len(set(chosen)) != len(chosen):
        raise ValueError(f"{where}: give at least one, each once")


def parse_study(values: Mapping[str, Any], origin: str = "the configuration") -> Study:
    """Check a configuration.

    Args:
        values: The nested mapping read from YAML, command-line overrides included.
        origin: Where it came from, for the message.

    Raises:
        ConfigError: one line per fault, naming the key, the value and what was expected.
    """
    try:
        return Study.model_validate(values)
    except ValidationError as error:
        lines = []
        for fault in error.errors():
            key = _key_path(fault["loc"], values, missing=fault["type"] == "missing")
            given = fault["input"]
            shown = f" (given: {given!r})" if isinstance(given, str | int | float | bool) else ""
            message = fault["msg"].removeprefix("Value error, ")
            lines.append(f"{origin}: {key + ': ' if key else ''}{message}{shown}")
        raise ConfigError("\n".join(lines)) from error


def _key_path(parts: Sequence[str | int], values: Any, missing: bool) -> str:
    """Join a fault's place as it stands in the file: without the tags that pydantic adds for a chosen section."""
    path = []
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        index = isinstance(values, list | tuple) and isinstance(part, int) and part < len(values)
        if index or (isinstance(values, Mapping) and part in values):
            values = values[part]
        elif not (last and missing) and part != "[key]":
            continue
        path.append(str(part))
    return ".".join(path)


def load_study(path: Path) -> Study:
    """Read and check a study from a YAML or JSON file.

    Raises:
        ConfigError: missing or unreadable file, broken YAML, or a fault in its content.
    """
    try:
        text = path.read_text(encoding="utf-8")
        # YAML 1.1 reads the JSON number 1e-08 as text.
        values = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: no such file") from error
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path}: not valid JSON: {error}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error})") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(values, Mapping):
        raise ConfigError(f"{path}: expected a mapping of sections, found {type(values).__name__}")
    return parse_study(values, str(path))


def digest(value: BaseModel | Mapping[str, Any]) -> str:
    """Hash a resolved configuration: 16 hex digits, independent of key order."""
    content = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of `config.yaml` (kept in `docs/config.schema.json`, tested for drift)."""
    return Study.model_json_schema()
