"""A small study with questions, responses, verdicts, statistics and an audit; some responses are hostile."""

from pathlib import Path

import pandas as pd
from report_fixtures import provenance, study_values, write_logs, write_run

from acpo.audit.verdict import Audit, Row, Verdict
from acpo.cells import Cell, cell_seeds, grid_cells
from acpo.cli import benchmark_problems
from acpo.config import Study, parse_study
from acpo.evaluation import score_cell
from acpo.report.sources import Results
from acpo.results import DATA_SCHEMA, SAMPLE_SCHEMA, VERDICT_SCHEMA, CellResult
from acpo.stats.analysis import analyse
from acpo.store import write_json, write_table

QUESTIONS = 20
SAMPLES = 4
HOSTILE = "</script><img src=x onerror=\"document.title='owned'\"><b>8 - 4</b> &lt;i&gt; {{ 1 }} ' \\ \u2028 yes"
PROMPT = "<img src=x onerror=\"document.title='owned'\"> to 7 >"


def explored_study() -> Study:
    values = study_values()
    values["grid"]["methods"] = ["dapo", "acpo"]
    values["seeds"] = [0, 1]
    values["statistics"]["families"]["all"]["baselines"] = ["base", "dapo"]
    return parse_study(values)


def write_questions(root: Path) -> None:
    records = [
        {
            "data_source": "countdown_mini",
            "prompt": [{"role": "user", "content": PROMPT if number == 0 else f"1 2 {number} to 7 >"}],
            "ability": "arithmetic",
            "reward_model": {"style": "rule", "ground_truth": f"1 2 {number} to 7"},
            "extra_info": {"id": f"q{number}", "split": "test", "index": number},
        }
        for number in range(QUESTIONS)
    ]
    write_table(root / "data/countdown_mini/test.parquet", pd.DataFrame(records), DATA_SCHEMA)


def is_right(cell: Cell, seed: int, kind: str, question: int, sample: int) -> bool:
    """ACPO is right on more questions than DAPO, DAPO on more than the base model."""
    level = {"base": 5, "dapo": 9, "acpo": 13}[cell.method] + (cell.regime == "offp") + seed + (kind == "best")
    return (7 * question + 5 * sample) % QUESTIONS < level


def response(cell: Cell, question: int, sample: int) -> str:
    if question == 0 and sample == 1:
        return HOSTILE
    return f"{cell.method} tries 1 + {question} = {1 + question} , {sample} yes"


def write_stores(root: Path, cell: Cell, seed: int) -> None:
    rows = [
        {
            "benchmark": "test",
            "checkpoint": kind,
            "question": f"q{question}",
            "sample": sample,
            "response": (text := response(cell, question, sample)),
            "response_tokens": 12 + sample,
            "finish_reason": "stop",
            "correct": (right := is_right(cell, seed, kind, question, sample)),
            "extracted": text[:30] if sample != 2 else None,
            "reason": "solved" if right else "wrong result",
            "grader_version": "1",
        }
        for kind in (("last",) if cell.is_base else ("last", "best"))
        for question in range(QUESTIONS)
        for sample in range(SAMPLES)
    ]
    run, frame = root / "runs" / str(cell) / f"seed{seed}", pd.DataFrame(rows)
    write_table(run / "samples.parquet", frame[SAMPLE_SCHEMA.names], SAMPLE_SCHEMA)
    write_table(run / "verdicts.parquet", frame[VERDICT_SCHEMA.names], VERDICT_SCHEMA)


def write_result(root: Path, study: Study, cell: Cell) -> None:
    runs = {seed: root / "runs" / str(cell) / f"seed{seed}" for seed in cell_seeds(study, cell)}
    result = {
        "cell": str(cell),
        "suite": cell.suite,
        "method": cell.method,
        "regime": cell.regime,
        "benchmarks": score_cell(study, cell, runs, benchmark_problems(study, cell, root / "data")),
        "updates_per_rollout": None if cell.is_base else 2,
        "run_wall_seconds": {} if cell.is_base else {seed: 30.0 + seed for seed in runs},
        "provenance": provenance(cell),
    }
    write_json(root / f"{cell}.json", CellResult.model_validate(result))


def write_audit(root: Path) -> None:
    rows = [
        Row(id=f"row{number}", place="Table 1", claim=f"Claim {number}", published="1", recomputed="2",
            verdict=verdict, why="because", command="snakemake --cores 1 audit")
        for number, verdict in enumerate(Verdict)
    ]  # fmt: skip
    for name in ("published", "ledger"):
        write_json(root / f"audit/{name}.json", Audit(title=f"The {name}", rows=rows))


def fill_stores(root: Path, study: Study) -> Results:
    """Write everything that a finished study has."""
    write_questions(root)
    for cell in grid_cells(study):
        for seed in cell_seeds(study, cell):
            if cell.is_base:
                write_run(root, cell, seed)
            else:
                write_logs(root, study, cell, seed, 0.4)
            write_stores(root, cell, seed)
        write_result(root, study, cell)
    write_json(root / "statistics/statistics.json", analyse(study, root))
    write_audit(root)
    return Results(study, root)
