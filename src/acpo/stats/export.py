"""Every number of a study in tidy form, and a cell in the layout of lm-evaluation-harness."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from acpo.cells import Cell, grid_cells
from acpo.config import Study
from acpo.results import BenchmarkScore, CellResult
from acpo.stats.records import StatisticsResult
from acpo.store import read_json

COLUMNS = [
    *("kind", "suite", "method", "regime", "benchmark", "checkpoint", "seed", "baseline", "name", "value", "source")
]
STATISTICS = "results/statistics/statistics.json"


def numbers(study: Study, results: Path, statistics: StatisticsResult) -> pd.DataFrame:
    """List every number of a study, one a row.

    Args:
        study: The study.
        results: The results folder; cells of the grid without a file give no rows.
        statistics: Its statistics.

    Returns:
        `COLUMNS`: `kind` is `seed`, `cell`, `comparison`, `family`, `detectable`, `rank` or `profile`; `name` says what
        the number is, with a path into nested values (`pass_at_k.4`, `seeds_3.difference`); `source` is the file it
        comes from. Text that does not apply is empty.
    """
    rows = [*_seed_rows(study, results), *_statistics_rows(statistics)]
    frame = pd.DataFrame(rows, columns=COLUMNS)
    text = [name for name in COLUMNS if name not in ("seed", "value")]
    frame[text] = frame[text].fillna("")
    return frame.astype({"seed": "Int64", "value": "float64"})


def _seed_rows(study: Study, results: Path) -> Iterator[dict[str, Any]]:
    for cell in grid_cells(study):
        path = results / f"{cell}.json"
        if not path.exists():
            continue
        for benchmark, score in read_json(path, CellResult).benchmarks.items():
            for checkpoint, kept in score.checkpoints.items():
                for seed in kept.seeds:
                    yield from _rows(
                        seed.model_dump(exclude={"seed"}), kind="seed", suite=cell.suite, method=cell.method,
                        regime=cell.regime, benchmark=benchmark, checkpoint=checkpoint, seed=seed.seed,
                        source=f"results/{cell}.json",
                    )  # fmt: skip


def _statistics_rows(statistics: StatisticsResult) -> Iterator[dict[str, Any]]:
    for score in statistics.cells:
        yield from _rows(
            score.model_dump(exclude={"seeds"}), kind="cell", suite=score.suite, method=score.method,
            regime=score.regime, benchmark=score.benchmark, checkpoint=score.checkpoint, source=STATISTICS,
        )  # fmt: skip
    for item in statistics.comparisons:
        numbers_only = {"inference": {"treatment_seeds", "baseline_seeds", "note", "paired_seeds"}}
        content = item.model_dump(exclude=numbers_only)
        content["paper"] = {f"seed{test.treatment_seed}": test.model_dump() for test in item.paper}
        yield from _rows(
            content, kind="comparison", suite=item.suite, method=item.treatment, baseline=item.baseline,
            regime=item.regime, benchmark=item.benchmark, checkpoint=item.checkpoint, source=STATISTICS,
        )  # fmt: skip
    for name, results in statistics.families.items():
        for family in results:
            yield from _rows(
                {name: family.model_dump()}, kind="family", checkpoint=family.checkpoint, source=STATISTICS
            )
    for found in statistics.detectable:
        yield from _rows(
            {f"seeds_{found.seeds}": found.model_dump(exclude={"seeds"})}, kind="detectable", suite=found.suite,
            method=found.treatment, baseline=found.baseline, regime=found.regime, benchmark=found.benchmark,
            checkpoint=found.checkpoint, source=STATISTICS,
        )  # fmt: skip
    for ranking in statistics.rankings:
        for place in ranking.methods:
            labels = {"kind": "rank", "method": place.method, "checkpoint": ranking.checkpoint, "source": STATISTICS}
            yield from _rows(place.model_dump(), **labels)
        friedman = ranking.model_dump(include={"friedman", "friedman_df", "friedman_p", "critical_difference"})
        yield from _rows(friedman, kind="rank", checkpoint=ranking.checkpoint, source=STATISTICS)
    for profile in statistics.profiles:
        labels = {"kind": "profile", "method": profile.method, "checkpoint": profile.checkpoint, "source": STATISTICS}
        yield from _rows(profile.model_dump(), **labels)


def _rows(content: dict[str, Any], **labels: Any) -> Iterator[dict[str, Any]]:
    for name, value in _leaves(content, ""):
        yield labels | {"name": name, "value": value}


def _leaves(value: Any, name: str) -> Iterator[tuple[str, float | int | None]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{name}.{key}".lstrip("."))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _leaves(inner, f"{name}.{place}")
    elif isinstance(value, int | float):
        yield name, value


def harness_results(study: Study, cell: Cell, result: CellResult) -> dict[str, Any]:
    """Arrange a cell as lm-evaluation-harness writes its results, so that its readers can read it.

    A task is `<benchmark>_<checkpoint>`; the metric is `exact_match`, the mean over training seeds. Its standard error
    is over training seeds where there are several, otherwise over questions. `repeats` is k.

    Args:
        study: The study.
        cell: The cell.
        result: Its scores.
    """
    suite = study.suites[cell.suite]
    tasks = {
        f"{name}_{kind}": (name, score, kind) for name, score in result.benchmarks.items() for kind in score.checkpoints
    }
    training = suite.training
    return {
        "results": {task: _task_results(task, score, kind) for task, (_, score, kind) in tasks.items()},
        "group_subtasks": {task: [] for task in tasks},
        "configs": {
            task: {
                "task": task,
                "dataset_path": score.task,
                "test_split": suite.benchmarks[name].split,
                "output_type": "generate_until",
                "repeats": score.k,
                "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
                "generation_kwargs": {
                    "do_sample": True,
                    "temperature": training.temperature,
                    "top_p": training.top_p,
                    "max_gen_toks": training.max_response_tokens,
                },
            }
            for task, (name, score, _) in tasks.items()
        },
        "versions": {task: score.grader_version for task, (_, score, _) in tasks.items()},
        "n-shot": dict.fromkeys(tasks, 0),
        "higher_is_better": {task: {"exact_match": True} for task in tasks},
        "n-samples": {
            task: {"original": score.questions, "effective": score.questions} for task, (_, score, _) in tasks.items()
        },
        "config": {
            "model": study.models[suite.model].label,
            "model_args": f"cell={cell}",
            "device": result.provenance.device,
            "random_seed": study.root_seed,
        },
        "git_hash": result.provenance.git_commit,
        "model_name": str(cell),
    }


def _task_results(task: str, score: BenchmarkScore, kind: str) -> dict[str, float | str]:
    kept = score.checkpoints[kind]
    error = kept.seed_standard_error
    return {
        "alias": task,
        "exact_match,none": kept.avg_at_k,
        "exact_match_stderr,none": kept.seeds[0].standard_error if error is None else error,
    }
