"""The report's detail tables: every score and the origin of every cell. Nothing is recomputed."""

from collections.abc import Iterable
from dataclasses import dataclass

from acpo.cells import BASE, Cell, grid_cells
from acpo.config import Study
from acpo.report.grid import PANELS, Kind
from acpo.report.sources import Results
from acpo.report.table import MISSING, percent
from acpo.results import BenchmarkScore, CellResult, Provenance, SeedScore


@dataclass(frozen=True)
class SeedRow:
    """One training seed's checkpoint on one benchmark, as printed."""

    seed: int
    rollout: int
    avg: str
    standard_error: str
    pass_at_k: dict[int, str]
    truncation: str
    extraction: str
    tokens: str
    wall: str
    wall_seconds: float | None


@dataclass(frozen=True)
class ScoreRow:
    """One kind of checkpoint of a cell on one benchmark (`key` in the configuration), with its seeds."""

    cell: str
    label: str
    suite: str
    method: str
    regime: str
    key: str
    benchmark: str
    checkpoint: str
    avg: str
    seed_sd: str
    seed_standard_error: str
    questions: int
    k: int
    source: str
    seeds: tuple[SeedRow, ...]


@dataclass(frozen=True)
class OriginRow:
    """Where a cell's numbers come from."""

    cell: str
    configuration_hash: str
    code_hash: str
    commit: str
    device: str
    wall: str
    wall_seconds: float
    memory: str
    data: dict[str, str]


def describe(study: Study, cell: Cell) -> str:
    """Name a cell in words: suite, method and regime by their labels."""
    method = "Base Model" if cell.is_base else study.methods[cell.method].label
    parts = [study.suites[cell.suite].label, method]
    if cell.regime is not None:
        parts.append(study.regimes[cell.regime].label)
    return ", ".join(parts)


def duration(seconds: float | None) -> str:
    """Print a time: 31.2 s, 4 min 05 s, 2 h 03 min."""
    if seconds is None:
        return MISSING
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def score_rows(results: Results) -> list[ScoreRow]:
    """List every score of the grid's cells, in the order of the grid."""
    return [
        _score_row(results, cell, result, key, kind)
        for cell in grid_cells(results.study)
        if (result := results.cell(cell))
        for key, benchmark in result.benchmarks.items()
        for kind in PANELS
        if kind in benchmark.checkpoints
    ]


def _score_row(results: Results, cell: Cell, result: CellResult, key: str, kind: Kind) -> ScoreRow:
    study = results.study
    benchmark = result.benchmarks[key]
    score = benchmark.checkpoints[kind]
    known = study.suites[cell.suite].benchmarks.get(key)
    return ScoreRow(
        cell=str(cell),
        label=describe(study, cell),
        suite=study.suites[cell.suite].label,
        method="Base Model" if cell.method == BASE else study.methods[cell.method].label,
        regime=study.regimes[cell.regime].label if cell.regime else MISSING,
        key=key,
        benchmark=known.label if known else key,
        checkpoint=kind,
        avg=percent(score.avg_at_k),
        seed_sd=_percent_or_dash(score.seed_sd),
        seed_standard_error=_percent_or_dash(score.seed_standard_error),
        questions=benchmark.questions,
        k=benchmark.k,
        source=f"{results.source(cell)} benchmarks.{key}.checkpoints.{kind}",
        seeds=tuple(_seed_row(seed, result, benchmark) for seed in score.seeds),
    )


def _seed_row(score: SeedScore, result: CellResult, benchmark: BenchmarkScore) -> SeedRow:
    return SeedRow(
        seed=score.seed,
        rollout=score.rollout,
        avg=percent(score.avg_at_k),
        standard_error=percent(score.standard_error),
        pass_at_k={k: percent(value) for k, value in sorted(score.pass_at_k.items()) if k <= benchmark.k},
        truncation=percent(score.truncation_rate),
        extraction=percent(score.extraction_rate),
        tokens=f"{score.mean_response_tokens:.1f}",
        wall=duration(result.run_wall_seconds.get(score.seed)),
        wall_seconds=result.run_wall_seconds.get(score.seed),
    )


def _percent_or_dash(fraction: float | None) -> str:
    return MISSING if fraction is None else percent(fraction)


def pass_columns(rows: Iterable[ScoreRow]) -> list[int]:
    """List the k of every pass@k that some seed has."""
    return sorted({k for row in rows for seed in row.seeds for k in seed.pass_at_k})


def origin_rows(results: Results) -> list[OriginRow]:
    """List the provenance of every cell of the grid that has a result."""
    found = [(cell, result) for cell in grid_cells(results.study) if (result := results.cell(cell))]
    return [_origin_row(str(cell), result.provenance) for cell, result in found]


def _origin_row(cell: str, origin: Provenance) -> OriginRow:
    return OriginRow(
        cell=cell,
        configuration_hash=origin.configuration_hash,
        code_hash=origin.code_hash,
        commit=origin.git_commit + (" with local changes" if origin.git_dirty else ""),
        device=origin.device,
        wall=duration(origin.wall_seconds),
        wall_seconds=origin.wall_seconds,
        memory=f"{origin.peak_memory_mb:.0f} MB",
        data=dict(sorted(origin.data_hashes.items())),
    )


def environment(results: Results) -> dict[str, str]:
    """Gather python, platform and package versions; more than one value means that cells differ."""
    values: dict[str, dict[str, None]] = {}
    for cell in grid_cells(results.study):
        if result := results.cell(cell):
            for key, value in _environment(result.provenance).items():
                values.setdefault(key, {})[value] = None
    return {key: " / ".join(found) for key, found in values.items()}


def _environment(origin: Provenance) -> dict[str, str]:
    return {
        "Python": origin.python,
        "Platform": origin.platform,
        **dict(sorted(origin.packages.items())),
    }
