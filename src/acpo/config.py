"""The study as typed models: what `config.yaml` may say, checked before anything runs."""

import difflib
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    StringConstraints,
    ValidationError,
    model_validator,
)

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9]*(_[a-z0-9]+)*$")]
Decay = Annotated[float, Field(ge=0, lt=1)]
Share = Annotated[float, Field(gt=0, lt=1)]
Zero = Annotated[float, Field(ge=0, le=0)]
One = Annotated[float, Field(ge=1, le=1)]

LISTED = 30
"""How many known names a message lists."""


class ConfigError(Exception):
    """The configuration is wrong; the message names the key, what was expected and what to do."""


def nearest(word: str, known: Iterable[str]) -> str:
    """Phrase the nearest known word, or list some of them: the tail of every 'unknown ...' message."""
    known = sorted(known)
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    if close:
        return f"did you mean {close[0]!r}?"
    more = f" and {len(known) - LISTED} more" if len(known) > LISTED else ""
    return f"known: {', '.join(known[:LISTED]) or 'none'}{more}"


class Strict(BaseModel):
    """A config section: unknown keys are refused with the nearest known one named."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, values: Any) -> Any:
        if isinstance(values, Mapping):
            for key in values:
                if key not in cls.model_fields:
                    raise ValueError(f"unknown key {key!r}; {nearest(str(key), cls.model_fields)}")
        return values


class Regime(Strict):
    """How far updates drift from the behavior policy. Sizes count prompts."""

    label: str
    train_batch_size: PositiveInt
    mini_batch_size: PositiveInt

    @model_validator(mode="after")
    def _mini_batch_divides_batch(self) -> "Regime":
        if self.train_batch_size % self.mini_batch_size:
            raise ValueError(
                f"mini_batch_size {self.mini_batch_size} does not divide train_batch_size "
                f"{self.train_batch_size}: choose a divisor"
            )
        return self

    @property
    def updates_per_rollout(self) -> int:
        """The off-policy degree: updates made from one rollout batch."""
        return self.train_batch_size // self.mini_batch_size


class MeasuredParameter(Strict):
    """A method parameter read from the log of another method's run (same suite, regime and seed)."""

    method: Name
    statistic: Literal["clip_width_mean", "clip_width_max"]


class Method(Strict):
    """An objective with its parameters."""

    label: str
    objective: Name
    parameters: dict[str, Any]
    measured: dict[str, MeasuredParameter] = {}


class SupervisedStart(Strict):
    """Supervised training on generated demonstrations that makes the embedded base model."""

    steps: PositiveInt
    batch_size: PositiveInt
    learning_rate: PositiveFloat
    warmup_steps: NonNegativeInt
    adam_betas: tuple[Decay, Decay]
    weight_decay: NonNegativeFloat


class BuiltModel(Strict):
    """A small Llama-shaped model that the study makes itself."""

    source: Literal["built"]
    label: str
    hidden_size: PositiveInt
    layers: PositiveInt
    attention_heads: PositiveInt
    key_value_heads: PositiveInt
    feed_forward_size: PositiveInt
    supervised: SupervisedStart

    @model_validator(mode="after")
    def _heads_divide(self) -> "BuiltModel":
        if self.hidden_size % self.attention_heads or self.attention_heads % self.key_value_heads:
            raise ValueError("attention_heads must divide hidden_size, and key_value_heads attention_heads")
        return self


class HubModel(Strict):
    """A published checkpoint: its repository, the commit, and the sha256 of files by name, where they are known.

    Without a commit the newest at the first fetch is taken, which every manifest and record then says. `parameters`
    are counted for the estimate of disk.
    """

    source: Literal["hub"]
    label: str
    parameters: PositiveInt
    repository: Annotated[str, StringConstraints(pattern=r"^[\w.-]+/[\w.-]+$")]
    revision: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")] | None
    files: dict[str, Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]] = {}


class EngineSection(Strict):
    """What an engine needs to know."""

    operational: ClassVar[frozenset[str]] = frozenset()
    """Settings that change no result: where it runs, what is logged and kept."""

    def virtual_environment(self) -> str | None:
        """Name the directory of the clone that its jobs' environment lies in; None is the one that is active."""
        return None

    def decisive(self) -> dict[str, Any]:
        """Return the settings that a result depends on."""
        return self.model_dump(mode="json", exclude=set(self.operational))


class TinyEngine(EngineSection):
    """The embedded trainer and sampler: one process, one thread, CPU."""

    name: Literal["tiny"]
    micro_batch_size: PositiveInt | None
    generation_batch_size: PositiveInt
    length_buckets: PositiveInt


class VerlEngine(EngineSection):
    """verl trains and vLLM samples: on GPUs, or on a CPU at the size of the embedded study.

    `environment` names a folder of `envs/`: jobs run in what `make venv-<environment>` makes of it.
    """

    operational = frozenset({"environment", "gpu_memory_utilization", "offload", "kept_checkpoints", "loggers"})

    name: Literal["verl"]
    environment: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]*$")]
    device: Literal["cuda", "cpu"]
    rollout: Literal["vllm", "transformers"]
    micro_batch_size: PositiveInt
    precision: Literal["bf16", "fp32"]
    tensor_parallel: PositiveInt
    gpu_memory_utilization: Annotated[float, Field(gt=0, lt=1)]
    offload: bool
    kept_checkpoints: PositiveInt
    loggers: list[Literal["tensorboard", "wandb"]]

    def virtual_environment(self) -> str:
        """See `EngineSection.virtual_environment`."""
        return f".venv-{self.environment}"


class Resources(Strict):
    """What one training job asks of a cluster; `gpus`, `cpus` and `memory_mb` are those of each node."""

    nodes: PositiveInt = 1
    gpus: NonNegativeInt
    cpus: PositiveInt
    memory_mb: PositiveInt
    runtime_minutes: PositiveInt


class Training(Strict):
    """Reinforcement learning, the same for every method of a suite."""

    learning_rate: PositiveFloat
    adam_betas: tuple[Decay, Decay]
    weight_decay: NonNegativeFloat
    gradient_clip: PositiveFloat
    group_size: Annotated[int, Field(ge=2)]
    temperature: PositiveFloat
    top_p: One
    max_prompt_tokens: PositiveInt
    max_response_tokens: PositiveInt
    epochs: PositiveInt | None = None
    prompts: PositiveInt | None = None
    validation_every: PositiveInt
    checkpoint_every: PositiveInt
    kl_coefficient: Zero
    entropy_coefficient: Zero

    @model_validator(mode="after")
    def _one_budget(self) -> "Training":
        if (self.epochs is None) == (self.prompts is None):
            raise ValueError("give the length of training once: either epochs or prompts")
        return self


class Benchmark(Strict):
    """A held-out set and how often each of its questions is sampled."""

    label: str
    task: Name
    split: Name
    samples: PositiveInt


class Validation(Strict):
    """The held-out set watched during training; the best checkpoint is chosen on it."""

    split: Name
    samples: PositiveInt


class TokenStore(Strict):
    """At which rollouts the tokens of every update are kept for the probes (1 is the first)."""

    rollouts: list[PositiveInt]


class Suite(Strict):
    """A row-group of the paper: task, model, engine, benchmarks."""

    label: str
    family: Literal["countdown", "hitab", "math"]
    note: str | None = None
    task: Name
    train_split: Name
    model: Name
    engine: Annotated[TinyEngine | VerlEngine, Field(discriminator="name")]
    training: Training
    regimes: dict[Name, Regime] = {}
    validation: Validation
    benchmarks: dict[Name, Benchmark]
    token_store: TokenStore
    resources: Resources

    @property
    def sampling_gpus(self) -> int:
        """GPUs that a job which samples benchmarks uses: those that the model is spread over."""
        engine = self.engine
        return engine.tensor_parallel if isinstance(engine, VerlEngine) and engine.device == "cuda" else 0


class Probes(Strict):
    """How gradients are probed: whose, of which tokens, after how many updates."""

    methods: list[Name]
    seeds: PositiveInt
    reference: Name
    compared: list[Name]
    updates: Annotated[list[PositiveInt], Field(min_length=2)]
    prompts: PositiveInt
    low_probability: Share
    high_probability: Share
    entropy_share: Share
    rank: PositiveInt
    micro_batch_size: PositiveInt

    @model_validator(mode="after")
    def _mini_batches_divide(self) -> "Probes":
        if sorted(set(self.updates)) != self.updates or any(self.prompts % count for count in self.updates):
            raise ValueError(f"updates: give rising numbers that divide prompts ({self.prompts})")
        return self


class Grid(Strict):
    """Cells to make: every combination of these."""

    suites: list[Name]
    methods: list[Name]
    regimes: list[Name]


class Family(Strict):
    """Hypotheses that are corrected together: a treatment against each baseline, wherever the grid compares them.

    `suites` and `regimes` narrow it; None is all of the grid's.
    """

    label: str
    treatment: Name
    baselines: Annotated[list[Name], Field(min_length=1)]
    suites: list[Name] | None = None
    regimes: list[Name] | None = None


class Statistics(Strict):
    """How methods are compared. `alpha` is the level of tests; intervals cover 1 - alpha."""

    alpha: Annotated[float, Field(gt=0, lt=0.5)]
    power: Annotated[float, Field(ge=0.5, lt=1)]
    resamples: Annotated[int, Field(ge=1000)]
    stream: NonNegativeInt
    ties: Literal["min", "average"]
    families: dict[Name, Family]


class Study(Strict):
    """Everything a study is: definitions as maps, what to run as lists.

    `grid` is what `all` makes. `ablations` are grids beside it, by the name of the table that each is for.
    """

    root_seed: NonNegativeInt
    seeds: list[NonNegativeInt]
    grid: Grid
    ablations: dict[Name, Grid] = {}
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
        for name in (self.probes.reference, *self.probes.compared, *self.probes.methods):
            _require(name, self.methods, "probes")
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
