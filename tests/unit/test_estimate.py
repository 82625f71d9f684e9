"""The estimate of GPU-hours and disk, by hand-worked numbers."""

import json
import math
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest
from small_study import script

from acpo.cells import Cell
from acpo.config import Study
from acpo.engines.tiny.model import Architecture, weight_shapes
from acpo.engines.tiny.vocabulary import Vocabulary
from acpo.estimate import Cost, as_json, cell_costs, combined, parameter_count, table_rows
from acpo.results import RunRecord
from acpo.sections import BuiltModel
from acpo.store import write_json, write_table
from acpo.tasks.countdown_mini import TASK

ORZ = Cell("orz", "acpo", "offp")
MINI = Cell("mini", "acpo", "offp")


def finished_run(directory: Path, wall_seconds: float, rollout_seconds: float) -> None:
    """Write what the estimate reads of a finished run."""
    provenance = {
        "configuration": {}, "configuration_hash": "", "code_hash": "", "data_hashes": {}, "git_commit": "",
        "git_dirty": False, "packages": {}, "python": "", "platform": "", "device": "cpu",
        "wall_seconds": wall_seconds, "peak_memory_mb": 1.0,
    }  # fmt: skip
    record = {
        "cell": directory.parent.name, "seed": 0, "rollouts": 2, "updates": 2, "response_tokens": 1, "checkpoints": {},
        "measured_parameters": {}, "provenance": provenance,
    }  # fmt: skip
    write_json(directory / "run.json", RunRecord.model_validate(record))
    seconds = {"rollout": [1, 2], "sampling_seconds": [rollout_seconds, 0.0], "update_seconds": [0.0, 0.0]}
    write_table(directory / "timings.parquet", pd.DataFrame(seconds))


def cost_of(study: Study, cell: Cell, results: Path, seeds: Sequence[int] = (0, 1, 2)) -> Cost:
    (cost,) = cell_costs(study, {cell: seeds}, results)
    return cost


def test_results_are_searched_once_however_many_cells(
    shipped: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan of thousands of cells is priced in every dry run."""
    searches: list[str] = []
    glob = Path.glob
    monkeypatch.setattr(Path, "glob", lambda place, pattern: searches.append(pattern) or glob(place, pattern))
    cells = [Cell("mini", method, regime) for method in shipped.methods for regime in ("nonp", "offp")]
    costs = cell_costs(shipped, {cell: [0] for cell in cells}, tmp_path)
    assert [cost.name for cost in costs] == [str(cell) for cell in cells]
    assert len(searches) == 2


def test_a_paper_cell_is_declared(shipped: Study, tmp_path: Path) -> None:
    cost = cost_of(shipped, ORZ, tmp_path)
    # 14 days on 4 GPUs, three seeds
    assert (cost.runs, cost.hours, cost.gpu_hours) == (3, 3 * 336, 3 * 336 * 4)
    assert cost.time_basis == "declared"
    # last and best in bf16; one token store of 256 x 10 responses of 3,072 tokens of 18 bytes
    policies, tokens = 2 * 2 * 7_615_616_512, 256 * 10 * 3072 * 18
    assert cost.kept_bytes == 3 * (policies + tokens)
    # two checkpoints of weights and two moments, and two best models, in float32
    assert cost.running_bytes == policies + tokens + (2 * 12 + 2 * 4) * 7_615_616_512


def test_several_nodes_multiply(shipped: Study, tmp_path: Path) -> None:
    values = shipped.model_dump(mode="json")
    values["suites"]["orz"]["resources"]["nodes"] = 2
    cost = cost_of(Study.model_validate(values), ORZ, tmp_path, seeds=[0])
    assert cost.gpu_hours == 336 * 4 * 2


def test_own_runs_are_measured_before_others(shipped: Study, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    finished_run(runs / "mini_dapo_offp" / "seed0", 7200, 100)
    finished_run(runs / "mini_dapo_nonp" / "seed0", 99, 99)
    others = cost_of(shipped, MINI, tmp_path)
    assert (others.hours, others.time_basis) == (3 * 2, "measured on 1 of its suite and regime")
    finished_run(runs / "mini_acpo_offp" / "seed0", 3600, 100)
    finished_run(
        runs / "mini_acpo_offp" / "seed1", 60, 7200
    )  # was killed: its rollouts took longer than its last process
    own = cost_of(shipped, MINI, tmp_path)
    assert own.hours == pytest.approx(3 * 1.5)
    assert own.time_basis == "measured on 2 of this cell"


def test_token_stores_are_measured_where_there_are_some(shipped: Study, tmp_path: Path) -> None:
    before = cost_of(shipped, MINI, tmp_path)
    store = tmp_path / "runs" / "mini_acpo_offp" / "seed0" / "tokens"
    store.mkdir(parents=True)
    (store / "rollout_000001.parquet").write_bytes(b"x" * 100)
    (store / "rollout_000011.parquet").write_bytes(b"x" * 300)
    after = cost_of(shipped, MINI, tmp_path)
    assert (before.disk_basis, after.disk_basis) == ("token stores at most", "token stores measured")
    weights = 2 * 4 * parameter_count(shipped, shipped.suites["mini"])
    assert after.kept_bytes == 3 * (weights + 3 * 200)  # the suite keeps three
    assert before.kept_bytes > after.kept_bytes


@pytest.mark.parametrize("suite", ["mini", "mini_vllm"])
def test_a_built_model_has_as_many_parameters_as_are_trained(shipped: Study, suite: str) -> None:
    model = shipped.models[shipped.suites[suite].model]
    assert isinstance(model, BuiltModel)
    sizes = Architecture.of(model, len(Vocabulary.of(TASK)), 43)
    trained = sum(math.prod(shape) for shape in weight_shapes(sizes).values())
    assert parameter_count(shipped, shipped.suites[suite]) == trained


def test_totals_add_up_but_for_the_disk_of_one_run(shipped: Study, tmp_path: Path) -> None:
    costs = [cost_of(shipped, cell, tmp_path) for cell in (ORZ, MINI)]
    total = combined("total", costs)
    assert total.gpu_hours == sum(cost.gpu_hours for cost in costs)
    assert total.running_bytes == costs[0].running_bytes
    rows = table_rows(costs)
    assert rows[-1][:2] == ["total", "6"]
    assert as_json(costs)["total"]["hours"] == total.hours


def test_the_script_says_json_and_refuses_base_cells(tmp_path: Path) -> None:
    done = script("estimate_cost", "--results", tmp_path, "--json", "orz_acpo_offp", "hitab_7b_dapo_nonp")
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert [cell["gpu_hours"] for cell in content["cells"]] == [4032, 2016]
    assert content["total"]["gpu_hours"] == 6048
    shown = script("estimate_cost", "--results", tmp_path)
    assert "mini_acpo_offp" in shown.stdout
    assert "declared" in shown.stdout
    ablation = script("estimate_cost", "--results", tmp_path, "--json", "table6", "mini_acpo_offp", "table8")
    names = [cell["name"] for cell in json.loads(ablation.stdout)["cells"]]
    methods = ("dapo", "dapo_clip_max", "grpo_clip_avg", "acpo", "acpo_bins4", "acpo_bins6")
    assert names == [f"mini_{method}_{regime}" for method in methods for regime in ("nonp", "offp")]
    wrong = script("estimate_cost", "tabel6")
    assert "unknown cell or ablation 'tabel6'; did you mean 'table6'?" in wrong.stderr
    refused = script("estimate_cost", "orz_base")
    assert refused.returncode == 1
    assert "base cell is not trained" in refused.stderr
