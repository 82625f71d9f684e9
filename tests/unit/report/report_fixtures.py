"""A small study with made-up results: cells, run logs, and ways to lose some of them."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from acpo.cells import Cell, cell_seeds, grid_cells
from acpo.config import Study
from acpo.report.sources import STATISTICS, Results
from acpo.results import CellResult, RunRecord
from acpo.stats.families import Hypothesis, declared_hypotheses
from acpo.stats.power import SEED_COUNTS
from acpo.stats.records import (
    Adjusted,
    CellScore,
    ComparisonResult,
    Components,
    Detectable,
    FamilyResult,
    Inference,
    Interval,
    StatisticsResult,
    Welch,
)
from acpo.store import write_json, write_table

METHODS = {
    "ar_lopti": "AR-Lopti",
    "high_entropy": "High-Entropy",
    "low_entropy": "Low-Entropy",
    "dapo": "DAPO",
    "cispo": "CISPO",
    "acpo": "ACPO",
}


def suite_values(label: str, family: str = "countdown", **changes: Any) -> dict[str, Any]:
    return {
        "label": label,
        "family": family,
        "task": "countdown_mini",
        "train_split": "train",
        "model": "tiny",
        "engine": {
            "name": "tiny",
            "micro_batch_size": None,
            "generation_batch_size": 512,
            "length_buckets": 4,
        },
        "training": {
            "learning_rate": 3e-4,
            "adam_betas": [0.9, 0.999],
            "weight_decay": 0.0,
            "gradient_clip": 1.0,
            "group_size": 8,
            "temperature": 1.0,
            "top_p": 1.0,
            "max_prompt_tokens": 8,
            "max_response_tokens": 36,
            "prompts": 4480,
            "validation_every": 5,
            "checkpoint_every": 5,
            "kl_coefficient": 0.0,
            "entropy_coefficient": 0.0,
        },
        "validation": {"split": "dev", "samples": 4},
        "benchmarks": {"test": {"label": "Test", "task": "countdown_mini", "split": "test", "samples": 4}},
        "token_store": {"rollouts": [1]},
        "resources": {"gpus": 0, "cpus": 1, "memory_mb": 1500, "runtime_minutes": 10},
        **changes,
    }


def study_values() -> dict[str, Any]:
    return {
        "root_seed": 0,
        "seeds": [0, 1, 2],
        "grid": {"suites": ["mini"], "methods": list(METHODS), "regimes": ["nonp", "offp"]},
        "regimes": {
            "nonp": {"label": "N-OnP.", "train_batch_size": 64, "mini_batch_size": 32},
            "offp": {"label": "OffP.", "train_batch_size": 128, "mini_batch_size": 8},
        },
        "models": {
            "tiny": {
                "source": "built",
                "label": "Qwen2-shaped, 113 k",
                "hidden_size": 64,
                "layers": 2,
                "attention_heads": 4,
                "key_value_heads": 2,
                "feed_forward_size": 192,
                "supervised": {
                    "steps": 1800,
                    "batch_size": 64,
                    "learning_rate": 5e-3,
                    "warmup_steps": 50,
                    "adam_betas": [0.9, 0.98],
                    "weight_decay": 0.01,
                },
            }
        },
        "methods": {
            name: {"label": label, "objective": name, "parameters": {"epsilon_low": 0.2}}
            for name, label in METHODS.items()
        },
        "suites": {"mini": suite_values("Mini-Countdown")},
        "probes": {
            "methods": ["dapo"],
            "seeds": 3,
            "reference": "dapo",
            "compared": ["cispo"],
            "updates": [1, 4],
            "prompts": 8,
            "low_probability": 0.2,
            "high_probability": 0.8,
            "entropy_share": 0.2,
            "rank": 128,
            "micro_batch_size": 8,
        },
        "statistics": {
            "alpha": 0.05,
            "power": 0.8,
            "resamples": 1000,
            "stream": 0,
            "ties": "min",
            "families": {"all": {"label": "ACPO", "treatment": "acpo", "baselines": ["base", "dapo", "cispo"]}},
        },
    }


def provenance(cell: Cell) -> dict[str, Any]:
    return {
        "configuration": {"cell": str(cell)},
        "configuration_hash": "c0ffee0123456789",
        "code_hash": "deadbeef01234567",
        "data_hashes": {"countdown_mini/test": "abc123"},
        "git_commit": "0123456789abcdef0123456789abcdef01234567",
        "git_dirty": False,
        "packages": {"torch": "2.13.0", "transformers": "5.10.4"},
        "python": "3.11.9",
        "platform": "Linux-x86_64",
        "device": "cpu",
        "wall_seconds": 95.0,
        "peak_memory_mb": 812.4,
    }


def checkpoint_values(scores: dict[int, float], rollout: int, k: int = 4) -> dict[str, Any]:
    values = list(scores.values())
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return {
        "seeds": [
            {
                "seed": seed,
                "rollout": rollout,
                "avg_at_k": score,
                "standard_error": 0.011,
                "pass_at_k": {1: score, 2: min(1.0, score + 0.08), 4: min(1.0, score + 0.15)},
                "repeat_means": [score] * k,
                "truncation_rate": 0.0125,
                "extraction_rate": 0.99,
                "mean_response_tokens": 27.34,
                "undecided": 0,
            }
            for seed, score in scores.items()
        ],
        "avg_at_k": math.fsum(values) / len(values),
        "seed_sd": spread,
        "seed_standard_error": None if spread is None else spread / math.sqrt(len(values)),
    }


def cell_values(cell: Cell, best: dict[int, float], last: dict[int, float], questions: int = 1000) -> dict[str, Any]:
    """Make up a cell; scores are whole numbers over `questions`, as every repeat has the score of all."""
    return {
        "cell": str(cell),
        "suite": cell.suite,
        "method": cell.method,
        "regime": cell.regime,
        "benchmarks": {
            "test": {
                "task": "countdown_mini",
                "questions": questions,
                "k": 4,
                "grader_version": "1",
                "checkpoints": {"best": checkpoint_values(best, 30), "last": checkpoint_values(last, 35)},
            }
        },
        "updates_per_rollout": {"nonp": 2, "offp": 16}[cell.regime] * (1 + (cell.method == "ar_lopti"))
        if cell.regime
        else None,
        "run_wall_seconds": {seed: 31.25 + seed for seed in last},
        "provenance": provenance(cell),
    }


def write_cell(
    root: Path, cell: Cell, best: dict[int, float], last: dict[int, float] | None = None, questions: int = 1000
) -> None:
    result = CellResult.model_validate(cell_values(cell, best, last or best, questions))
    write_json(root / f"{cell}.json", result)


def write_logs(root: Path, study: Study, cell: Cell, seed: int, level: float) -> None:
    rng = np.random.default_rng([seed, len(cell.method), ord(cell.method[0])])
    rollouts = 70 if cell.regime == "nonp" else 35
    updates = study.regime(cell.suite, cell.regime or "").updates_per_rollout
    steps = np.arange(1, rollouts + 1)
    curve = 0.16 + (level - 0.16) * (1 - np.exp(-steps / (rollouts / 4)))
    log = pd.DataFrame(
        {
            "rollout": steps,
            "reward_mean": curve + rng.normal(0, 0.02, rollouts),
            "response_tokens_mean": 27.0,
            "truncation_rate": 0.01,
            "zero_variance_fraction": 0.3,
            "response_tokens_total": 15000,
            "validation": np.where(steps % 5 == 0, curve + rng.normal(0, 0.006, rollouts), np.nan),
        }
    )
    folder = root / "runs" / str(cell) / f"seed{seed}"
    write_table(folder / "rollouts.parquet", log)
    metrics = pd.DataFrame({"rollout": np.repeat(steps, updates), "update": np.arange(1, rollouts * updates + 1)})
    within = np.tile(np.arange(updates), rollouts) / max(updates - 1, 1)
    fixed = cell.method != "acpo"
    metrics["tokens"] = 1000
    metrics["entropy"] = 0.5
    for number in range(1, 6):
        top = (0.2 / number if fixed else 0.01) * within
        metrics[f"bin{number}/count"] = 100 * number
        metrics[f"bin{number}/clip_fraction"] = np.clip(top + rng.normal(0, 0.003, len(metrics)), 0, 1)
        metrics[f"bin{number}/gradient_std"] = np.abs(0.9 - number / 8 + rng.normal(0, 0.1, len(metrics)))
    metrics.loc[metrics["rollout"] == 3, ["bin2/clip_fraction", "bin2/gradient_std"]] = np.nan
    metrics.loc[metrics["rollout"] == 3, "bin2/count"] = 0
    write_table(folder / "metrics.parquet", metrics)
    timings = {"rollout": steps, "sampling_seconds": 0.25, "update_seconds": 0.5}
    write_table(folder / "timings.parquet", pd.DataFrame(timings))
    write_run(root, cell, seed, rollouts, rollouts * updates)


def write_run(root: Path, cell: Cell, seed: int, rollouts: int = 35, updates: int = 70) -> None:
    kinds = ["last"] if cell.is_base else ["last", "best"]
    record = {
        "cell": str(cell),
        "seed": seed,
        "rollouts": rollouts,
        "updates": updates,
        "response_tokens": 15000,
        "checkpoints": {
            kind: {"path": kind, "rollout": rollouts, "weights_sha256": kind, "validation": 0.3} for kind in kinds
        },
        "measured_parameters": {},
        "provenance": provenance(cell),
    }
    write_json(root / "runs" / str(cell) / f"seed{seed}" / "run.json", RunRecord.model_validate(record))


def fill(root: Path, study: Study, leave_out: tuple[str, ...] = (), logs: bool = True) -> Results:
    """Write every cell of the grid but those left out; scores rise with the method's place in the grid."""
    for index, cell in enumerate(grid_cells(study)):
        if str(cell) in leave_out:
            continue
        level = 0.16 if cell.is_base else 0.25 + 0.007 * index
        seeds = cell_seeds(study, cell)
        last = {seed: level + 0.004 * seed for seed in seeds}
        best = {seed: score + 0.003 for seed, score in last.items()}
        write_cell(root, cell, last if cell.is_base else best, last)
        for seed in seeds if logs and not cell.is_base else ():
            write_logs(root, study, cell, seed, level)
    return Results(study, root)


def welch(seed: int, p: float | None, baseline_seed: int | None = None) -> Welch:
    return Welch(
        treatment_seed=seed, baseline_seed=seed if baseline_seed is None else baseline_seed,
        treatment_mean=0.31, baseline_mean=0.30, treatment_sd=0.0123, baseline_sd=0.0045,
        treatment_n=8, baseline_n=4, t=None if p is None else 2.5, df=None if p is None else 9.876, p=p,
    )  # fmt: skip


def comparison(hypothesis: Hypothesis, kind: str, paper: list[Welch], **changes: Any) -> ComparisonResult:
    """Make up a comparison of 3 points, [1, 5]; p = 0.02, 0.03, Holm's 0.06."""
    ours, theirs = hypothesis.treatment, hypothesis.baseline
    inference = Inference(
        scope="algorithm", note=None, treatment_seeds=[0, 1, 2], baseline_seeds=[0, 1, 2], paired_seeds=True,
        questions=500, k=4, difference=0.03, standard_error=0.01, df=4, t=3, p=0.02, permutation_p=0.03,
        interval=Interval(low=0.01, high=0.05), cliffs_delta=0.1, probability_of_improvement=0.55,
    )  # fmt: skip
    return ComparisonResult(
        suite=ours.suite, regime=ours.regime or "", benchmark=hypothesis.benchmark, checkpoint=kind,
        treatment=ours.method, baseline=theirs.method, treatment_cell=str(ours), baseline_cell=str(theirs),
        treatment_mean=0.33, baseline_mean=0.30, paper=paper, inference=inference.model_copy(update=changes),
        adjusted={"all": Adjusted(holm=0.06, bh=0.03)},
    )  # fmt: skip


def cell_score(item: ComparisonResult) -> CellScore:
    return CellScore(
        cell=item.treatment_cell, suite=item.suite, method=item.treatment, regime=item.regime, benchmark=item.benchmark,
        checkpoint=item.checkpoint, seeds=[0, 1, 2], expected_seeds=3, questions=500, k=4, right=1980, denominator=6000,
        mean=0.33, scope="algorithm", standard_error=0.01, df=4, interval=None, majority_at_k={}, truncation_rate=0.0,
        components=Components(seed=None, question=0.05, seed_by_question=-0.00012, sample=0.14),
        extraction_failure_rate=0.0, grader_version="1",
    )  # fmt: skip


def write_statistics(root: Path, comparisons: list[ComparisonResult], hypotheses: int) -> None:
    family = FamilyResult(
        label="ACPO", checkpoint="last", hypotheses=hypotheses, tested=len(comparisons), rejected_holm=0,
        rejected_bh=0, untested=[], outside_grid=[],
    )  # fmt: skip
    detectable = [
        Detectable(
            suite=item.suite, regime=item.regime, benchmark=item.benchmark, checkpoint=item.checkpoint,
            treatment=item.treatment, baseline=item.baseline, seeds=seeds, questions=500, k=4, difference=0.06 / seeds,
        )
        for item in comparisons
        for seeds in (SEED_COUNTS if item.inference.scope == "algorithm" else (1,))
    ]  # fmt: skip
    cells = {(item.treatment_cell, item.benchmark, item.checkpoint): cell_score(item) for item in comparisons}
    result = StatisticsResult(
        settings={"resamples": 1000}, cells=list(cells.values()), comparisons=comparisons, families={"all": [family]},
        rankings=[], profiles=[], detectable=detectable, missing=[],
    )  # fmt: skip
    write_json(root / STATISTICS, result)


def fill_statistics(root: Path, study: Study) -> None:
    """Write every declared comparison at both kinds of checkpoint."""
    declared = declared_hypotheses(study)
    made = [
        comparison(hypothesis, kind, [welch(seed, 0.01 * (seed + 1)) for seed in study.seeds])
        for kind in ("best", "last")
        for hypothesis in declared
    ]
    write_statistics(root, made, len(declared))
