"""The sections of a study, as typed models: what each part of `config.yaml` may say."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)

from acpo.errors import nearest

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9]*(_[a-z0-9]+)*$")]
Decay = Annotated[float, Field(ge=0, lt=1)]
Share = Annotated[float, Field(gt=0, lt=1)]


def _only(value: float) -> Callable[[float], float]:
    """Check a setting that can have the paper's value and no other."""

    def check(given: float) -> float:
        if given != value:
            raise ValueError(f"can only be {value:g}, as in the paper")
        return given

    return check


Zero = Annotated[float, AfterValidator(_only(0)), WithJsonSchema({"const": 0, "type": "number"})]
One = Annotated[float, AfterValidator(_only(1)), WithJsonSchema({"const": 1, "type": "number"})]


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
        if self.low_probability > self.high_probability:
            raise ValueError("low_probability: give no more than high_probability")
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
