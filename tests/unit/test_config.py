"""The configuration: what is refused, and in which words."""

import json
from pathlib import Path
from typing import Any

import pytest

from acpo.config import Study, digest, json_schema, load_study, parse_study
from acpo.errors import ConfigError, nearest
from acpo.methods import measured_parameters, method_objective
from acpo.store import StoreError, write_table

ROOT = Path(__file__).parents[2]
Values = dict[str, Any]


def refusal(values: Values) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_study(values, "config.yaml")
    return str(caught.value)


def at(values: Values, path: str) -> Any:
    for part in path.split("."):
        values = values[part]
    return values


def put(values: Values, path: str, value: Any) -> None:
    section, _, key = path.rpartition(".")
    (at(values, section) if section else values)[key] = value


class TestUnknownKeys:
    @pytest.mark.parametrize(
        ("section", "wrong", "right"),
        [
            ("", "seed", "seeds"),
            ("grid", "suite", "suites"),
            ("ablations.table6", "method", "methods"),
            ("regimes.nonp", "mini_batch", "mini_batch_size"),
            ("methods.acpo", "parameter", "parameters"),
            ("methods.grpo_clip_avg.measured.clip", "statistics", "statistic"),
            ("models.mini_decoder", "hidden", "hidden_size"),
            ("models.mini_decoder.supervised", "step", "steps"),
            ("models.qwen2_5_7b", "repo", "repository"),
            ("suites.mini", "benchmark", "benchmarks"),
            ("suites.mini.engine", "length_bucket", "length_buckets"),
            ("suites.orz.engine", "precison", "precision"),
            ("suites.mini.training", "learning_rte", "learning_rate"),
            ("suites.mini.regimes.offp", "train_batchsize", "train_batch_size"),
            ("suites.mini.validation", "sample", "samples"),
            ("suites.orz.benchmarks.amc", "splits", "split"),
            ("suites.mini.token_store", "rollout", "rollouts"),
            ("suites.mini.resources", "memory", "memory_mb"),
        ],
    )
    def test_names_the_place_and_the_nearest_key(self, values: Values, section: str, wrong: str, right: str) -> None:
        put(values, f"{section}.{wrong}" if section else wrong, 1)
        place = f"{section}: " if section else ""
        assert refusal(values) == f"config.yaml: {place}unknown key {wrong!r}; did you mean {right!r}?"

    def test_lists_all_keys_where_none_is_near(self, values: Values) -> None:
        values["grid"]["zzz"] = 1
        assert refusal(values) == "config.yaml: grid: unknown key 'zzz'; known: methods, regimes, suites"


def test_a_long_list_of_names_is_cut() -> None:
    assert nearest("zzzz", [f"a{number:02}" for number in range(33)]).endswith(", a28, a29 and 3 more")
    assert nearest("zzzz", ["a", "b"]) == "known: a, b"
    assert nearest("zzzz", []) == "known: none"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (
            "regimes.nonp.train_batch_size",
            -128,
            "regimes.nonp.train_batch_size: Input should be greater than 0 (given: -128)",
        ),
        (
            "regimes.nonp.mini_batch_size",
            48,
            "regimes.nonp: mini_batch_size 48 does not divide train_batch_size 128: choose a divisor",
        ),
        (
            "suites.mini.regimes.offp.mini_batch_size",
            7,
            "suites.mini.regimes.offp: mini_batch_size 7 does not divide train_batch_size 128: choose a divisor",
        ),
        ("grid.suites", ["minni"], "grid.suites: unknown name 'minni'; did you mean 'mini'?"),
        ("grid.methods", ["acpo", "dappo"], "grid.methods: unknown name 'dappo'; did you mean 'dapo'?"),
        ("grid.regimes", ["off"], "grid.regimes: unknown name 'off'; did you mean 'offp'?"),
        (
            "suites.mini.training.epochs",
            3,
            "suites.mini.training: give the length of training once: either epochs or prompts",
        ),
        (
            "suites.mini.training.prompts",
            None,
            "suites.mini.training: give the length of training once: either epochs or prompts",
        ),
        (
            "suites.mini.training.prompts",
            100,
            "suites.mini.training.prompts: 100 are less than one rollout of regime 'offp' (128): give more",
        ),
        (
            "ablations.table6.methods",
            ["dapo", "dapo_clipmax"],
            "ablations.table6.methods: unknown name 'dapo_clipmax'; did you mean 'dapo_clip_max'?",
        ),
        ("ablations.table7.suites", ["mine"], "ablations.table7.suites: unknown name 'mine'; did you mean 'mini'?"),
        ("ablations.table8.regimes", ["off"], "ablations.table8.regimes: unknown name 'off'; did you mean 'offp'?"),
        ("ablations.table5.methods", [], "ablations.table5.methods: give at least one, each once"),
        ("ablations.table5.methods", ["acpo", "acpo"], "ablations.table5.methods: give at least one, each once"),
        ("ablations.table6.suites", [], "ablations.table6.suites: give at least one, each once"),
        ("seeds", [0, 1, 0], "seeds: give at least one, each once"),
        ("grid.methods", ["dapo", "acpo", "dapo"], "grid.methods: give at least one, each once"),
        ("grid.suites", [], "grid.suites: give at least one, each once"),
        ("seeds", [], "seeds: give at least one, each once"),
        ("seeds", [-1], "seeds.0: Input should be greater than or equal to 0 (given: -1)"),
        (
            "suites.mini.training.group_size",
            1,
            "suites.mini.training.group_size: Input should be greater than or equal to 2 (given: 1)",
        ),
        (
            "suites.mini.training.learning_rate",
            float("inf"),
            "suites.mini.training.learning_rate: Input should be a finite number (given: inf)",
        ),
        (
            "suites.mini.training.weight_decay",
            float("nan"),
            "suites.mini.training.weight_decay: Input should be a finite number (given: nan)",
        ),
        (
            "suites.mini.training.adam_betas",
            [0.9, 1.0],
            "suites.mini.training.adam_betas.1: Input should be less than 1 (given: 1.0)",
        ),
        (
            "suites.mini.training.temperature",
            0.0,
            "suites.mini.training.temperature: Input should be greater than 0 (given: 0.0)",
        ),
        (
            "suites.mini.training.kl_coefficient",
            0.1,
            "suites.mini.training.kl_coefficient: can only be 0, as in the paper (given: 0.1)",
        ),
        (
            "suites.mini.training.top_p",
            0.9,
            "suites.mini.training.top_p: can only be 1, as in the paper (given: 0.9)",
        ),
        ("probes.reference", "grop", "probes.reference: unknown name 'grop'; did you mean 'grpo'?"),
        ("probes.compared", ["dapoo"], "probes.compared: unknown name 'dapoo'; did you mean 'dapo'?"),
        ("probes.methods", ["dapoo"], "probes.methods: unknown name 'dapoo'; did you mean 'dapo'?"),
        ("probes.low_probability", 0.9, "probes: low_probability: give no more than high_probability"),
        (
            "suites.mini.model",
            "mini_decode",
            "suites.mini.model: unknown name 'mini_decode'; did you mean 'mini_decoder'?",
        ),
        (
            "models.mini_decoder.attention_heads",
            3,
            "models.mini_decoder: attention_heads must divide hidden_size, and key_value_heads attention_heads",
        ),
        (
            "models.mini_decoder.supervised.steps",
            None,
            "models.mini_decoder.supervised.steps: Input should be a valid integer",
        ),
        (
            "methods.grpo_clip_avg.measured.clip.method",
            "dapo_clip_max",
            "methods.grpo_clip_avg.measured.clip: dapo_clip_max is measured itself",
        ),
        (
            "methods.grpo_clip_avg.measured.clip.method",
            "acpoo",
            "methods.grpo_clip_avg.measured.clip.method: unknown name 'acpoo'; did you mean 'acpo'?",
        ),
        (
            "methods.base",
            {"label": "x", "objective": "dapo", "parameters": {}},
            "methods: 'base' is the untrained cell's name and cannot be a method",
        ),
    ],
)
def test_bad_values_name_key_and_remedy(values: Values, path: str, value: Any, message: str) -> None:
    put(values, path, value)
    assert refusal(values) == f"config.yaml: {message}"


def test_a_missing_key_is_named(values: Values) -> None:
    del values["suites"]["mini"]["engine"]["length_buckets"]
    assert refusal(values) == "config.yaml: suites.mini.engine.length_buckets: Field required"


def test_every_fault_has_its_line(values: Values) -> None:
    values["regimes"]["nonp"]["train_batch_size"] = 0
    values["suites"]["mini"]["validation"]["samples"] = "many"
    assert [line.split(": ")[1] for line in refusal(values).splitlines()] == [
        "regimes.nonp.train_batch_size",
        "suites.mini.validation.samples",
    ]


class TestFile:
    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"- 1\n", "expected a mapping of sections, found list"),
            (b"", "expected a mapping of sections, found NoneType"),
            (b"a: [1", "not valid YAML: while parsing"),
            (b"\xff\xfe\x00", "cannot be read ("),
        ],
    )
    def test_not_a_study(self, tmp_path: Path, content: bytes, message: str) -> None:
        path = tmp_path / "study.yaml"
        path.write_bytes(content)
        with pytest.raises(ConfigError) as caught:
            load_study(path)
        assert str(caught.value).startswith(f"{path}: {message}")
        assert "\n" not in str(caught.value)

    def test_a_missing_file_or_a_directory(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=r"absent\.yaml: no such file"):
            load_study(tmp_path / "absent.yaml")
        with pytest.raises(ConfigError, match="cannot be read"):
            load_study(tmp_path)

    def test_json_reads_as_the_yaml_it_came_from(self, shipped: Study, tmp_path: Path) -> None:
        path = tmp_path / "study.json"
        path.write_text(json.dumps(shipped.model_dump(mode="json")))
        assert load_study(path) == shipped


def test_exported_schema_has_not_drifted() -> None:
    exported = json.loads((ROOT / "docs/config.schema.json").read_text(encoding="utf-8"))
    assert exported == json_schema(), "run: python scripts/export_schema.py"


def test_digest_ignores_key_order_and_sees_values() -> None:
    assert digest({"a": 1, "b": [2, 3]}) == digest({"b": [2, 3], "a": 1})
    assert digest({"a": 1}) != digest({"a": 2})
    assert digest({"a": [1, 2]}) != digest({"a": [2, 1]})


class TestMeasuredParameters:
    """Two updates: 10 tokens with mean width 0.3, 30 tokens with mean width 0.5."""

    def table(self, tmp_path: Path, **columns: list[float]) -> dict[str, Path]:
        import pandas as pd

        content = {"tokens": [10.0, 30.0], "clip_width_mean": [0.3, 0.5], "clip_width_max": [0.9, 0.7]} | columns
        write_table(tmp_path / "metrics.parquet", pd.DataFrame({k: v for k, v in content.items() if v}))
        return {"acpo": tmp_path / "metrics.parquet"}

    def test_mean_is_over_tokens(self, shipped: Study, tmp_path: Path) -> None:
        found = measured_parameters(shipped, "grpo_clip_avg", self.table(tmp_path))
        assert found == {"clip": pytest.approx((10 * 0.3 + 30 * 0.5) / 40)}

    def test_max_is_over_updates(self, shipped: Study, tmp_path: Path) -> None:
        found = measured_parameters(shipped, "dapo_clip_max", self.table(tmp_path))
        assert found == {"clip_high": 0.9}
        objective = method_objective(shipped, "dapo_clip_max", found)
        assert objective.parameters.model_dump()["clip_high"] == 0.9

    def test_a_method_that_measures_nothing_reads_nothing(self, shipped: Study) -> None:
        assert measured_parameters(shipped, "acpo", {}) == {}

    def test_a_run_that_was_not_given_is_named(self, shipped: Study) -> None:
        with pytest.raises(ConfigError, match=r"grpo_clip_avg.*acpo"):
            measured_parameters(shipped, "grpo_clip_avg", {})

    def test_a_table_without_the_column_is_refused(self, shipped: Study, tmp_path: Path) -> None:
        with pytest.raises(StoreError, match=r"metrics\.parquet: column clip_width_mean: .* no such column"):
            measured_parameters(shipped, "grpo_clip_avg", self.table(tmp_path, clip_width_mean=[]))
