"""Made-up results of the shipped study, with scores and metrics of a test's choice."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from acpo.audit.evidence import Evidence
from acpo.audit.published import published
from acpo.cells import BASE, Cell, resolve, resolve_evaluation
from acpo.config import Study, digest
from acpo.evaluation import over_seeds
from acpo.results import BenchmarkScore, CellResult, CheckpointScore, Provenance, RunRecord, SeedScore
from acpo.store import write_json, write_table
from acpo.timing import MethodTime, RegimeTime, Timing

SEEDS = (0, 1, 2)
METHODS = ("ar_lopti", "high_entropy", "low_entropy", "dapo", "cispo", "acpo")
REGIMES = ("nonp", "offp")
BENCHMARK = "countdown_mini"
NOISE = (-0.004, 0.001, 0.003)
"""What training seeds add to a score; they sum to 0."""
SPREAD = [0.002 * (sample - 3.5) for sample in range(8)]
"""What the repeats add to it."""


def provenance(configuration: Mapping[str, Any]) -> Provenance:
    return Provenance(
        configuration=dict(configuration), configuration_hash=digest(configuration), code_hash="0" * 16, data_hashes={},
        git_commit="none", git_dirty=False, packages={}, python="3.11", platform="test", device="cpu", wall_seconds=1.0,
        peak_memory_mb=1.0,
    )  # fmt: skip


def checkpoint(scores: Mapping[int, float]) -> CheckpointScore:
    """Make up a checkpoint of a benchmark of 1000 questions with scores in tenths of a percent."""
    return over_seeds(
        [
            SeedScore(
                seed=seed, rollout=1, avg_at_k=score, standard_error=0.01, pass_at_k={1: score},
                repeat_means=[score + more if score else 0.0 for more in SPREAD], truncation_rate=0.0,
                extraction_rate=1.0, mean_response_tokens=20.0, undecided=0,
            )
            for seed, score in scores.items()
        ]
    )  # fmt: skip


def write_cell(root: Path, study: Study, cell: Cell, scores: Mapping[int, float]) -> None:
    """Write a cell whose best checkpoint has these scores, and whose last one has none worth reading."""
    kept = checkpoint(scores)
    useless = checkpoint(dict.fromkeys(scores, 0.0))
    checkpoints = {"last": kept} if cell.is_base else {"best": kept, "last": useless}
    benchmark = BenchmarkScore(task="countdown_mini", questions=1000, k=8, grader_version="1", checkpoints=checkpoints)
    configuration = {"training": resolve(study, cell), "evaluation": resolve_evaluation(study, cell)}
    write_json(
        root / f"{cell}.json",
        CellResult(
            cell=str(cell), suite=cell.suite, method=cell.method, regime=cell.regime,
            benchmarks={BENCHMARK: benchmark}, updates_per_rollout=None, run_wall_seconds={},
            provenance=provenance(configuration),
        ),
    )  # fmt: skip


def write_scores(root: Path, study: Study, score: Callable[[str, str], float], seeds: tuple[int, ...] = SEEDS) -> None:
    """Write every cell of the mini suite with score(method, regime) plus what each seed adds."""
    write_cell(root, study, Cell("mini", BASE, None), {0: 0.15})
    for method in (*METHODS, "dapo_clip_max", "grpo_clip_avg", "acpo_bins4", "acpo_bins6", "cispo_released"):
        for regime in REGIMES:
            # A little of each method's own, so that differences have a spread.
            own = 0.001 * (len(method) % 3)
            scores = {seed: score(method, regime) + NOISE[seed] + own * ((seed * 7) % 3 - 1) for seed in seeds}
            write_cell(root, study, Cell("mini", method, regime), scores)


def metrics(study: Study, regime: str, rollouts: int = 3, **bins: Any) -> pd.DataFrame:
    """Return a log of updates; `bins` gives a quantity's values for the five bins (or one for all)."""
    sizes = study.regime("mini", regime)
    rows = []
    for rollout in range(1, rollouts + 1):
        for update in range(sizes.updates_per_rollout):
            row: dict[str, float] = {"rollout": rollout, "update": len(rows) + 1, "tokens": 500.0}
            row["clip_width_mean"] = bins.get("clip_width_mean", 0.25)
            for number in range(1, 6):
                for name in ("ratio_std", "ratio_mean", "clip_fraction", "gradient_std"):
                    value = bins.get(name, {"ratio_mean": 1.0}.get(name, 0.1))
                    value = value[number - 1] if isinstance(value, list | tuple) else value
                    if update == 0 and name in ("ratio_std", "ratio_mean"):
                        value = {"ratio_std": 0.0, "ratio_mean": 1.0}[name]
                    row[f"bin{number}/{name}"] = value
                row[f"bin{number}/count"] = 100.0
                row[f"bin{number}/clip_width_high"] = 0.2 + 3.0 * row[f"bin{number}/ratio_std"]
            rows.append(row)
    return pd.DataFrame(rows)


def write_run(root: Path, study: Study, cell: Cell, seed: int, log: pd.DataFrame) -> None:
    folder = root / "runs" / str(cell) / f"seed{seed}"
    write_table(folder / "metrics.parquet", log)
    record = RunRecord(
        cell=str(cell), seed=seed, rollouts=3, updates=len(log), response_tokens=1, checkpoints={},
        measured_parameters={}, provenance=provenance(resolve(study, cell)),
    )  # fmt: skip
    write_json(folder / "run.json", record)


def write_logs(root: Path, study: Study, make: Callable[[str, str, int], dict[str, Any]]) -> None:
    """Write the runs of DAPO and ACPO; make(method, regime, seed) gives the values of `metrics`."""
    for method in ("dapo", "acpo"):
        for regime in REGIMES:
            for seed in SEEDS:
                log = metrics(study, regime, **make(method, regime, seed))
                write_run(root, study, Cell("mini", method, regime), seed, log)


def write_probe(root: Path, kind: str, make: Callable[[str, int], dict[str, Any]]) -> None:
    """Write the probe files of DAPO's runs; make(regime, seed) gives their content."""
    for regime in REGIMES:
        for seed in SEEDS:
            path = root / "probes" / f"mini_dapo_{regime}" / f"seed{seed}" / f"{kind}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(make(regime, seed)))


def write_timing(root: Path, times: Mapping[str, list[float]]) -> None:
    regimes = [
        RegimeTime(
            suite="mini", regime=regime, tokens=2000, updates=2,
            methods={name: MethodTime(seconds=seconds) for name, seconds in times.items()},
        )
        for regime in REGIMES
    ]  # fmt: skip
    write_json(root / "timing.json", Timing(regimes=regimes, provenance=provenance({})))


def evidence(root: Path, study: Study) -> Evidence:
    return Evidence(study, root, published())
