"""Update times: what is added up, what is relative to what, and Table 9."""

import json
import runpy
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError
from small_study import ROOT, SmallStudy

from acpo.bench import Setting
from acpo.config import Study, parse_study
from acpo.errors import ConfigError
from acpo.report.registry import make_table
from acpo.report.sources import Results
from acpo.results import Provenance
from acpo.store import read_json, write_json
from acpo.timing import MethodTime, RegimeTime, Timing, timed_methods

SCRIPT = ROOT / "scripts" / "time_updates.py"
PROVENANCE = Provenance(
    configuration={}, configuration_hash="0" * 16, code_hash="0" * 16, data_hashes={}, git_commit="none",
    git_dirty=False, packages={}, python="3.11", platform="test", device="cpu", wall_seconds=1.0, peak_memory_mb=1.0,
)  # fmt: skip


def regime_time(name: str = "nonp") -> RegimeTime:
    methods = {"dapo": [1.0, 2.0, 9.0], "acpo": [1.0, 2.2, 2.4], "ar_lopti": [4.0, 4.2, 4.4]}
    return RegimeTime(
        suite="mini", regime=name, tokens=4000, updates=2,
        methods={method: MethodTime(seconds=seconds) for method, seconds in methods.items()},
    )  # fmt: skip


def test_relative_times_are_those_of_medians() -> None:
    timed = regime_time()
    assert timed.methods["dapo"].median == 2.0
    assert timed.relative("dapo") == 0.0
    assert timed.relative("acpo") == pytest.approx(0.1)
    assert timed.relative("ar_lopti") == pytest.approx(1.1)


def test_ratios_are_taken_round_by_round() -> None:
    assert regime_time().ratios("ar_lopti") == pytest.approx([4.0, 2.1, 4.4 / 9])


def test_time_a_token_counts_the_rollout_once() -> None:
    assert regime_time().milliseconds_a_token("ar_lopti").median == pytest.approx(4200 / 4000)


def test_one_round_has_no_spread_and_is_refused() -> None:
    with pytest.raises(ValidationError, match="at least 2 items"):
        MethodTime(seconds=[1.0])


def test_mini_batches_of_a_round_are_added_up() -> None:
    by_round = runpy.run_path(str(SCRIPT))["by_round"]
    assert by_round([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 3) == [6.0, 15.0]


def test_methods_with_measured_widths_are_not_timed(values: dict) -> None:
    values["grid"]["methods"] = ["dapo", "acpo", "dapo_clip_max"]
    assert timed_methods(parse_study(values)) == ["dapo", "acpo"]


def test_the_reference_is_timed_also_where_the_grid_lacks_it(values: dict) -> None:
    values["grid"]["methods"] = ["acpo", "cispo"]
    assert timed_methods(parse_study(values)) == ["dapo", "acpo", "cispo"]


def test_a_study_that_does_not_define_the_reference_is_refused(values: dict) -> None:
    values["grid"]["methods"] = ["acpo", "cispo"]
    values["probes"] |= {"methods": ["acpo"], "compared": ["cispo"]}
    values["statistics"]["families"] = {}
    values["ablations"] = {}
    del values["methods"]["dapo"]
    with pytest.raises(ConfigError, match="relative to 'dapo', which the study does not define"):
        timed_methods(parse_study(values))


def test_every_pass_of_every_method_is_timed(
    small: SmallStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "timing.json"
    line = [
        "time_updates",
        "--config",
        small.config,
        "--base",
        f"mini={small.base}",
        "--rounds",
        "2",
        "--output",
        output,
    ]
    monkeypatch.setattr(sys, "argv", [str(part) for part in line])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    timing = read_json(output, Timing)
    assert [(each.suite, each.regime, each.updates) for each in timing.regimes] == [
        ("mini", "nonp", 2),
        ("mini", "offp", 4),
    ]
    setting = Setting.of(small.study(), "mini", small.base)
    for each in timing.regimes:
        assert set(each.methods) == set(small.study().grid.methods)
        assert each.tokens == int(setting.rollout(each.regime).responses.lengths.sum())
        assert all(len(time.seconds) == 2 and min(time.seconds) > 0 for time in each.methods.values())
        assert each.relative("ar_lopti") > 0.3  # two passes
    assert timing.provenance.configuration["rounds"] == 2


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--base", "mini=nowhere", "--rounds", "1"], 2, "--rounds: 2 or more"),
        (["--base", "nowhere"], 2, "expected KEY=PATH"),
        (["--base", "orz=nowhere"], 1, "'orz' is no suite of the embedded engine"),
        (["--base", "mini=nowhere"], 1, "nowhere"),
    ],
)
def test_bad_arguments_end_in_one_line(
    small: SmallStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    arguments: list[str], code: int, message: str,
) -> None:  # fmt: skip
    output = tmp_path / "timing.json"
    line = ["time_updates", "--config", str(small.config), *arguments, "--output", str(output)]
    monkeypatch.setattr(sys, "argv", line)
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    told = capsys.readouterr().err
    assert end.value.code == code
    assert message in told.splitlines()[-1]
    assert not output.exists()


def table9(study: Study, root: Path, *regimes: RegimeTime):
    if regimes:
        write_json(root / "timing.json", Timing(regimes=list(regimes), provenance=PROVENANCE))
    return make_table("table9", Results(study, root))


def test_table_9_prints_times_and_changes(shipped: Study, tmp_path: Path) -> None:
    frame = table9(shipped, tmp_path, regime_time("nonp"), regime_time("offp")).frame()
    row = frame[(frame["row"] == "ACPO") & (frame["group"] == "OffP.")]
    assert row["printed"].tolist() == ["2.200", "0.5500", "+10.0%"]
    assert row["printed_seed_sd"].tolist()[:2] == ["0.757", "0.1893"]
    dapo = frame[(frame["row"] == "DAPO") & (frame["column"] == "Rel.")]
    assert dapo["printed"].tolist() == ["–", "–"]
    assert row["source"].tolist() == ["results/timing.json mini_acpo_offp"] * 3


def test_table_9_has_a_dash_where_nothing_was_timed(shipped: Study, tmp_path: Path) -> None:
    table = table9(shipped, tmp_path, regime_time("nonp"))
    frame = table.frame()
    assert set(frame[frame["group"] == "OffP."]["printed"]) == {"–"}
    assert set(frame[frame["row"] == "CISPO"]["printed"]) == {"–"}


def test_table_9_without_a_measurement_says_how_to_make_it(shipped: Study, tmp_path: Path) -> None:
    table = table9(shipped, tmp_path)
    assert set(table.frame()["printed"]) == {"–"}
    assert table.blocks[0].notes[0] == "Not measured yet: snakemake --cores 1 results/timing.json"


def test_table_9_of_another_engine_has_published_numbers_only(values: dict, tmp_path: Path) -> None:
    values["grid"]["suites"] = ["orz"]
    table = table9(parse_study(values), tmp_path)
    assert [block.title for block in table.blocks] == ["Published"]
    assert set(table.frame()["checkpoint"]) == {"published"}


def test_a_damaged_timing_file_is_refused_by_name(shipped: Study, tmp_path: Path) -> None:
    (tmp_path / "timing.json").write_text(json.dumps({"schema_version": 1, "regimes": 3}))
    with pytest.raises(Exception, match=r"timing\.json: regimes"):
        make_table("table9", Results(shipped, tmp_path))
