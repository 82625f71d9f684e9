"""Cell names, the cells of a study, and what a cell's training depends on."""

from collections.abc import Callable
from typing import Any

import pytest

from acpo.cells import Cell, CellNames, ablation_cells, all_cells, cell_seeds, grid_cells, resolve, resolve_evaluation
from acpo.config import Study, digest, parse_study
from acpo.errors import ConfigError

Values = dict[str, Any]
ACPO, BASE = Cell("mini", "acpo", "offp"), Cell("mini", "base", None)


class TestNames:
    def test_every_cell_survives_a_round_trip(self, shipped: Study) -> None:
        names = CellNames(shipped)
        cells = all_cells(shipped)
        expected = len(shipped.suites) * (1 + len(shipped.methods) * len(shipped.regimes))
        assert len(cells) == len(set(names)) == expected
        assert [names.parse(str(cell)) for cell in cells] == cells

    @pytest.mark.parametrize(
        ("name", "parts"),
        [
            ("hitab_3b_ar_lopti_offp", ("hitab_3b", "ar_lopti", "offp")),
            ("orz_acpo_offp", ("orz", "acpo", "offp")),
            ("mini_ar_lopti_released_nonp", ("mini", "ar_lopti_released", "nonp")),
            ("hitab_7b_base", ("hitab_7b", "base", None)),
        ],
    )
    def test_names_with_many_underscores(self, shipped: Study, name: str, parts: tuple[str, str, str | None]) -> None:
        cell = CellNames(shipped).parse(name)
        assert (cell.suite, cell.method, cell.regime) == parts
        assert cell.is_base == (parts[1] == "base")

    @pytest.mark.parametrize(
        ("name", "nearest"),
        [
            ("orz_acpo_ofp", "orz_acpo_offp"),
            ("orz_accpo_offp", "orz_acpo_offp"),
            ("mini_bas", "mini_base"),
        ],
    )
    def test_an_unknown_cell_names_the_nearest(self, shipped: Study, name: str, nearest: str) -> None:
        with pytest.raises(ConfigError) as caught:
            CellNames(shipped).parse(name)
        assert str(caught.value) == f"unknown cell {name!r}; did you mean {nearest!r}?"

    @pytest.mark.parametrize("name", ["mini_base_nonp", "mini_acpo", "mini", "", "mini_acpo_offp_"])
    def test_half_a_name_is_no_cell(self, shipped: Study, name: str) -> None:
        with pytest.raises(ConfigError, match="unknown cell"):
            CellNames(shipped).parse(name)

    def test_two_cells_of_one_name_are_refused(self, values: Values) -> None:
        values["suites"]["mini_acpo"] = values["suites"]["mini"]
        values["methods"]["acpo_dapo"] = values["methods"]["dapo"]
        with pytest.raises(ConfigError, match=r"cell name mini_acpo_dapo_nonp is both .*rename a suite or a method"):
            CellNames(parse_study(values))


class TestGrid:
    def test_default_grid(self, shipped: Study) -> None:
        cells = [str(cell) for cell in grid_cells(shipped)]
        assert len(cells) == len(set(cells)) == 13
        assert cells[0] == "mini_base"
        assert {"mini_acpo_offp", "mini_low_entropy_nonp"} < set(cells)

    def test_the_grid_limits_no_name(self, values: Values) -> None:
        values["grid"] = {"suites": ["mini"], "methods": ["dapo"], "regimes": ["nonp"]}
        study = parse_study(values)
        assert [str(cell) for cell in grid_cells(study)] == ["mini_base", "mini_dapo_nonp"]
        assert CellNames(study).parse("orz_acpo_offp").suite == "orz"

    def test_cells_of_an_ablation(self, values: Values) -> None:
        values["ablations"]["table6"] = {"suites": ["mini", "orz"], "methods": ["dapo", "acpo"], "regimes": ["offp"]}
        study = parse_study(values)
        found = [str(cell) for cell in ablation_cells(study, "table6")]
        assert found == ["mini_dapo_offp", "mini_acpo_offp", "orz_dapo_offp", "orz_acpo_offp"]
        assert set(found) < set(CellNames(study))
        assert "orz_acpo_offp" not in {str(cell) for cell in grid_cells(study)}

    def test_the_base_model_is_made_once(self, shipped: Study) -> None:
        assert cell_seeds(shipped, BASE) == [0]
        assert cell_seeds(shipped, ACPO) == [0, 1, 2]


def set_in(*path: str, value: Any) -> Callable[[Values], None]:
    def edit(values: Values) -> None:
        for part in path[:-1]:
            values = values[part]
        values[path[-1]] = value

    return edit


MINI = ("suites", "mini")
NOTHING = [
    set_in(*MINI, "label", value="Other"),
    set_in(*MINI, "note", value="A note"),
    set_in(*MINI, "benchmarks", "countdown_mini", "samples", value=16),
    set_in(*MINI, "resources", "memory_mb", value=9999),
    set_in(*MINI, "regimes", "offp", "label", value="Other"),
    set_in("models", "mini_decoder", "label", value="Other"),
    set_in("methods", "acpo", "label", value="Other"),
    set_in("methods", "dapo", "parameters", "clip_low", value=0.1),
    set_in("grid", "methods", value=["dapo"]),
    set_in("ablations", value={}),
    set_in("seeds", value=[7]),
    set_in("suites", "orz", "training", "learning_rate", value=0.5),
    set_in(*MINI, "regimes", "nonp", "mini_batch_size", value=16),
]
ONLY_TRAINED = [
    set_in(*MINI, "training", "learning_rate", value=0.5),
    set_in(*MINI, "training", "group_size", value=16),
    set_in(*MINI, "training", "temperature", value=0.5),
    set_in(*MINI, "training", "validation_every", value=2),
    set_in(*MINI, "validation", "samples", value=2),
    set_in(*MINI, "token_store", "rollouts", value=[2]),
    set_in(*MINI, "regimes", "offp", "mini_batch_size", value=16),
    set_in("methods", "acpo", "parameters", "alpha", value=1.0),
    set_in("methods", "acpo", "objective", value="grpo"),
]
BOTH = [
    set_in("root_seed", value=1),
    set_in("models", "mini_decoder", "hidden_size", value=32),
    set_in("models", "mini_decoder", "supervised", "steps", value=5),
    set_in(*MINI, "training", "max_response_tokens", value=24),
    set_in(*MINI, "train_split", value="dev"),
    set_in(*MINI, "engine", "length_buckets", value=2),
]


class TestResolve:
    """A digest of `resolve` decides what is trained again, so it must see all that matters and nothing else."""

    def changed(self, values: Values, edit: Callable[[Values], None]) -> tuple[bool, bool]:
        before = parse_study(values)
        edit(values)
        after = parse_study(values)
        return (
            digest(resolve(before, ACPO)) != digest(resolve(after, ACPO)),
            digest(resolve(before, BASE)) != digest(resolve(after, BASE)),
        )

    @pytest.mark.parametrize("edit", NOTHING)
    def test_changes_nothing(self, values: Values, edit: Callable[[Values], None]) -> None:
        assert self.changed(values, edit) == (False, False)

    @pytest.mark.parametrize("edit", ONLY_TRAINED)
    def test_changes_the_trained_cell_only(self, values: Values, edit: Callable[[Values], None]) -> None:
        assert self.changed(values, edit) == (True, False)

    @pytest.mark.parametrize("edit", BOTH)
    def test_changes_the_base_model_too(self, values: Values, edit: Callable[[Values], None]) -> None:
        assert self.changed(values, edit) == (True, True)

    def test_a_measured_parameter_follows_its_source(self, values: Values) -> None:
        cell = Cell("mini", "grpo_clip_avg", "offp")
        before = digest(resolve(parse_study(values), cell))
        values["methods"]["acpo"]["label"] = "Other"
        assert digest(resolve(parse_study(values), cell)) == before
        values["methods"]["acpo"]["parameters"]["alpha"] = 1.0
        assert digest(resolve(parse_study(values), cell)) != before

    def test_cells_of_one_suite_differ(self, shipped: Study) -> None:
        trained = [cell for cell in all_cells(shipped) if cell.suite == "mini"]
        assert len({digest(resolve(shipped, cell)) for cell in trained}) == len(trained)


class TestResolveEvaluation:
    @pytest.mark.parametrize(
        "edit",
        [
            set_in(*MINI, "benchmarks", "countdown_mini", "samples", value=16),
            set_in(*MINI, "benchmarks", "countdown_mini", "split", value="dev"),
            set_in(*MINI, "training", "temperature", value=0.5),
            set_in("root_seed", value=1),
        ],
    )
    def test_sees_what_sampling_needs(self, values: Values, edit: Callable[[Values], None]) -> None:
        before = digest(resolve_evaluation(parse_study(values), ACPO))
        edit(values)
        assert digest(resolve_evaluation(parse_study(values), ACPO)) != before

    @pytest.mark.parametrize(
        "edit",
        [
            set_in(*MINI, "benchmarks", "countdown_mini", "label", value="Other"),
            set_in(*MINI, "training", "learning_rate", value=0.5),
        ],
    )
    def test_ignores_the_rest(self, values: Values, edit: Callable[[Values], None]) -> None:
        before = digest(resolve_evaluation(parse_study(values), ACPO))
        edit(values)
        assert digest(resolve_evaluation(parse_study(values), ACPO)) == before
