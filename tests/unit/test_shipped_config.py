"""What `config.yaml` says: the study as shipped, and the published values of the paper's suites."""

from typing import Any

import pytest

from acpo.config import Study, parse_study
from acpo.errors import ConfigError
from acpo.methods import check_methods

PAPER_SUITES = ("countdown", "hitab_3b", "hitab_7b", "orz")
Values = dict[str, Any]


class TestShipped:
    def test_the_grid_is_the_default_study(self, shipped: Study) -> None:
        assert shipped.grid.suites == ["mini"]
        assert sorted(shipped.grid.methods) == ["acpo", "ar_lopti", "cispo", "dapo", "high_entropy", "low_entropy"]
        assert shipped.grid.regimes == ["nonp", "offp"]
        assert shipped.seeds == [0, 1, 2]

    def test_every_methods_parameters_suit_its_objective(self, shipped: Study) -> None:
        check_methods(shipped)

    def test_a_wrong_parameter_is_named(self, values: Values) -> None:
        values["methods"]["acpo"]["parameters"]["alfa"] = 1.0
        with pytest.raises(ConfigError, match=r"^methods\.acpo\.parameters: alfa: Extra inputs"):
            check_methods(parse_study(values))

    def test_a_missing_parameter_is_named(self, values: Values) -> None:
        del values["methods"]["dapo"]["parameters"]["clip_high"]
        with pytest.raises(ConfigError, match=r"^methods\.dapo\.parameters: clip_high: Field required"):
            check_methods(parse_study(values))

    def test_an_unknown_objective_names_the_nearest(self, values: Values) -> None:
        values["methods"]["dapo"]["objective"] = "dapoo"
        with pytest.raises(
            ConfigError, match=r"^methods\.dapo\.objective: unknown objective 'dapoo': did you mean 'dapo'"
        ):
            check_methods(parse_study(values))

    def test_updates_per_rollout(self, shipped: Study) -> None:
        degrees = {
            (suite, regime): shipped.regime(suite, regime).updates_per_rollout
            for suite in shipped.suites
            for regime in shipped.regimes
        }
        assert degrees == {(s, r): {"nonp": 2, "offp": 16}[r] for s in shipped.suites for r in shipped.regimes}

    def test_every_suites_regimes_sample_as_many_prompts(self, shipped: Study) -> None:
        training = shipped.suites["mini"].training
        assert training.prompts is not None
        for regime in shipped.regimes:
            assert training.prompts % shipped.regime("mini", regime).train_batch_size == 0


class TestPaperValues:
    """Tables 3 and 4 of the paper."""

    def test_table_3(self, shipped: Study) -> None:
        orz = shipped.suites["orz"]
        training = orz.training
        assert shipped.models[orz.model].label == "Qwen2.5-7B"
        found = (
            training.max_prompt_tokens, training.max_response_tokens, training.learning_rate, training.epochs,
            training.group_size, training.temperature, orz.validation.samples, training.entropy_coefficient,
            training.kl_coefficient,
        )  # fmt: skip
        assert found == (1024, 3072, 1e-6, 15, 10, 1.0, 8, 0.0, 0.0)

    @pytest.mark.parametrize("suite", PAPER_SUITES)
    @pytest.mark.parametrize(("regime", "sizes"), [("nonp", (128, 64)), ("offp", (256, 16))])
    def test_table_3_batches(self, shipped: Study, suite: str, regime: str, sizes: tuple[int, int]) -> None:
        found = shipped.regime(suite, regime)
        assert (found.train_batch_size, found.mini_batch_size) == sizes

    @pytest.mark.parametrize("method", ["dapo", "high_entropy", "low_entropy", "ar_lopti"])
    def test_table_3_clipping(self, shipped: Study, method: str) -> None:
        parameters = shipped.methods[method].parameters
        assert (parameters["clip_low"], parameters["clip_high"]) == (0.2, 0.3)

    def test_table_3_aggregation_of_every_method(self, shipped: Study) -> None:
        assert {m.parameters["aggregation"] for m in shipped.methods.values()} == {"seq-mean-token-mean"}

    @pytest.mark.parametrize(
        ("method", "expected"),
        [
            ("ar_lopti", {"ar_alpha": 0.3, "ar_tau": 0.7, "w_neg": 1.0, "threshold": 0.5}),
            ("high_entropy", {"ratio": 0.2}),
            ("low_entropy", {"ratio": 0.8}),
            ("acpo", {"alpha": 3.0, "clip_base": 0.2, "clip_min": 0.0, "clip_max": 3.0, "bins": 5}),
            ("cispo", {"clip_high": 0.45, "clip_low": 1.0, "gate": None}),
            ("grpo", {"clip": 0.2}),
        ],
    )
    def test_table_4(self, shipped: Study, method: str, expected: Values) -> None:
        parameters = shipped.methods[method].parameters
        assert {key: parameters[key] for key in expected} == expected

    def test_no_paper_method_has_a_dual_clip(self, shipped: Study) -> None:
        paper = [name for name in shipped.methods if not name.endswith("_released")]
        assert not any(shipped.methods[name].parameters.get("dual_clip") for name in paper)

    def test_evaluation_of_section_5(self, shipped: Study) -> None:
        samples = {name: item.samples for name, item in shipped.suites["orz"].benchmarks.items()}
        assert samples == {"minerva": 8, "math500": 8, "amc": 8, "aime24": 32, "aime25": 32, "olympiad": 8}
        for suite in ("countdown", "hitab_3b", "hitab_7b"):
            assert [item.samples for item in shipped.suites[suite].benchmarks.values()] == [4]

    def test_models_of_table_1(self, shipped: Study) -> None:
        repositories = {s: shipped.models[shipped.suites[s].model].model_dump().get("repository") for s in PAPER_SUITES}
        assert repositories == {
            "countdown": "Qwen/Qwen2.5-3B-Instruct",
            "hitab_3b": "Qwen/Qwen2.5-3B",
            "hitab_7b": "Qwen/Qwen2.5-7B",
            "orz": "Qwen/Qwen2.5-7B",
        }

    def test_table_5_settings(self, shipped: Study) -> None:
        """Every pair of the paper in its order; the default settings are ACPO itself."""
        methods = shipped.ablations["table5"].methods
        acpo = shipped.methods["acpo"].parameters
        pairs = [(shipped.methods[m].parameters["alpha"], shipped.methods[m].parameters["clip_base"]) for m in methods]
        assert pairs == [(alpha, base) for alpha in (2.0, 3.0, 4.0) for base in (0.0, 0.1, 0.2, 0.3)]
        assert methods[pairs.index((3.0, 0.2))] == "acpo"
        for method in methods:
            assert shipped.methods[method].objective == "acpo"
            changed = {key for key, value in shipped.methods[method].parameters.items() if value != acpo[key]}
            assert changed <= {"alpha", "clip_base"}

    @pytest.mark.parametrize("table", ["table7", "table8"])
    def test_tables_7_and_8_bins(self, shipped: Study, table: str) -> None:
        methods = shipped.ablations[table].methods
        assert [shipped.methods[method].parameters["bins"] for method in methods] == [4, 5, 6]

    def test_table_6_methods(self, shipped: Study) -> None:
        assert shipped.ablations["table6"].methods == ["dapo", "dapo_clip_max", "grpo_clip_avg", "acpo"]

    def test_every_ablation_is_in_both_regimes(self, shipped: Study) -> None:
        assert {tuple(grid.regimes) for grid in shipped.ablations.values()} == {("nonp", "offp")}

    def test_table_6_widths_come_from_acpo_runs(self, shipped: Study) -> None:
        average, largest = shipped.methods["grpo_clip_avg"].measured, shipped.methods["dapo_clip_max"].measured
        assert average["clip"].model_dump() == {"method": "acpo", "statistic": "clip_width_mean"}
        assert largest["clip_high"].model_dump() == {"method": "acpo", "statistic": "clip_width_max"}


def test_a_study_with_the_grid_of_an_ablation(shipped: Study) -> None:
    ablated = shipped.ablated("table6")
    assert ablated.grid == shipped.ablations["table6"]
    assert ablated.model_copy(update={"grid": shipped.grid}) == shipped
    with pytest.raises(ConfigError, match=r"ablations: no grid 'tabel6'; did you mean 'table6'\?"):
        shipped.ablated("tabel6")
