"""The benchmarks measure something, and judge it the right way round."""

import importlib.util
import math
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import torch
import yaml
from small_study import SmallStudy

from acpo import bench
from acpo.bench import Measurement, Setting, interleave
from acpo.cells import grid_cells
from acpo.config import parse_study
from acpo.errors import ConfigError
from acpo.store import StoreError

ROOT = Path(__file__).parents[2]


def load_script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def setting(small_base: SmallStudy) -> Setting:
    return Setting.of(small_base.study(), "mini", small_base.base)


@pytest.mark.parametrize(
    ("ours", "theirs", "met"), [(300.0, 100.0, True), (299.0, 100.0, False), (100.0, 300.0, False)]
)
def test_speed_is_ours_over_theirs_and_must_be_at_least(ours: float, theirs: float, met: bool) -> None:
    item = Measurement("sampler", ours, "tokens/s", theirs, at_least=3)
    assert item.ratio == ours / theirs
    assert item.met is met


@pytest.mark.parametrize(("ours", "reference", "met"), [(1.02, 1.0, True), (1.03, 1.0, False), (0.5, 1.0, True)])
def test_cost_is_ours_over_the_reference_and_must_be_at_most(ours: float, reference: float, met: bool) -> None:
    item = Measurement("update", ours, "CPU ms", reference, at_most=1.02)
    assert item.ratio == ours / reference
    assert item.met is met


def test_without_a_yardstick_the_value_itself_is_judged() -> None:
    assert Measurement("memory", 1499, "MB", at_most=1500).met
    assert not Measurement("memory", 1501, "MB", at_most=1500).met
    assert Measurement("training", 10, "tokens/s").met is None
    assert Measurement("training", 10, "tokens/s").ratio is None


def test_sampler_comparison_divides_our_median_by_the_library_median(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = iter([0.0, 10.0, 20.0, 90.0]), iter([0.0, 4.0, 5.0, 6.0])  # the first of each is the warm-up
    monkeypatch.setattr(bench, "_embedded_sampling", lambda *_: next(ours))
    monkeypatch.setattr(bench, "_library_sampling", lambda *_: next(theirs))
    [item] = bench.compare_sampling(setting, 2, 3)
    assert (item.value, item.yardstick, item.ratio, item.met) == (20.0, 5.0, 4.0, True)


def test_update_comparison_divides_each_method_by_dapo(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = {"dapo": [1.0, 2.0, 3.0], "acpo": [2.0, 2.1, 2.2], "ar_lopti": [4.0, 4.0, 4.0]}
    monkeypatch.setattr(bench, "update_seconds", lambda *_: seconds)
    dapo, acpo, ar_lopti = bench.compare_updates(setting, "nonp", ["dapo", "acpo", "ar_lopti"], 1)
    assert (dapo.ratio, acpo.ratio, ar_lopti.ratio) == pytest.approx((1.0, 1.05, 2.0))
    assert (dapo.met, acpo.met, ar_lopti.met) == (None, False, None)


def test_training_comparison_divides_ours_by_trl(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    script = load_script("bench_engine")
    monkeypatch.setattr(script, "training_speed", lambda *_: [60.0, 70.0])
    monkeypatch.setattr(script, "trl_speed", lambda *_: [10.0])
    item = script.compare_training(setting, "nonp", 1, trl=True)
    assert (item.ratio, item.met) == (6.5, True)
    assert script.compare_training(setting, "nonp", 1, trl=False).ratio is None


def test_interleave_gives_every_contestant_every_place() -> None:
    order: list[str] = []

    def turn(name: str) -> list[float]:
        order.append(name)
        return [1.0, 2.0]

    found = interleave({name: lambda name=name: turn(name) for name in "abc"}, 3)
    assert "".join(order) == "abcbcacab"
    assert found == dict.fromkeys("abc", [1.0, 2.0] * 3)


def test_sampler_numbers_are_positive(setting: Setting) -> None:
    [item] = bench.compare_sampling(setting, 4, 1)
    assert item.value > 0
    assert item.ratio
    assert item.ratio > 0


def test_library_tokens_are_counted_up_to_each_end(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    class Library:
        generation_config = SimpleNamespace(pad_token_id=0)

        def generate(self, prompt: torch.Tensor, num_return_sequences: int, **_: object) -> torch.Tensor:
            rows = prompt.repeat_interleave(num_return_sequences, 0)
            return torch.cat([rows, torch.tensor([[5, 112, 0, 0]]).repeat(len(rows), 1)], 1)  # two tokens, padding

    clock = iter([10.0, 12.0])
    monkeypatch.setattr(bench.time, "perf_counter", lambda: next(clock))
    assert bench._library_sampling(setting, Library(), setting.prompts(16)) == 16 * setting.training.group_size * 2 / 2


def test_every_update_of_every_method_is_timed(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    real = bench.update
    monkeypatch.setattr(bench, "update", lambda *given: (made.append(given[3]), real(*given))[1])
    methods = ["dapo", "acpo", "ar_lopti"]
    found = bench.update_seconds(setting, "offp", methods, 2)
    updates = setting.study.regime("mini", "offp").updates_per_rollout
    assert {method: len(seconds) for method, seconds in found.items()} == dict.fromkeys(methods, 2 * updates)
    assert all(seconds > 0 for values in found.values() for seconds in values)
    assert made.count("all") == 2 * (2 * updates + 1)  # one more to warm up
    assert made.count("low_probability") == made.count("high_probability") == 2 * updates + 1


def test_training_speed_drops_the_first_rollout(setting: Setting) -> None:
    speeds = bench.training_speed(setting, "nonp", 2)
    assert len(speeds) == 2
    assert all(math.isfinite(speed) and speed > 0 for speed in speeds)


def test_settings_are_restored() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    with bench.one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2
    torch.set_num_threads(before)


def test_a_suite_of_another_engine_is_refused(small_base: SmallStudy) -> None:
    with pytest.raises(ConfigError, match="orz"):
        Setting.of(small_base.study(), "orz", small_base.base)


def test_a_missing_base_model_names_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = tmp_path / "seed0" / "last"
    monkeypatch.setattr(sys, "argv", ["bench_engine.py", "--config", str(ROOT / "config.yaml"), "--base", str(base)])
    with pytest.raises(StoreError, match=r"snakemake --cores 1 .*/seed0/run.json"):
        load_script("bench_engine").main()


@pytest.mark.parametrize("cells", [1, 24, 5000])
def test_the_enlarged_study_is_valid_and_large_enough(cells: int) -> None:
    values = yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8"))
    study = parse_study(load_script("bench_workflow").enlarged(values, cells))
    trained = [cell for cell in grid_cells(study) if not cell.is_base]
    assert cells <= len(trained) <= 1.1 * cells + 2
    assert study.seeds == [0]
