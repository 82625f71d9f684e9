"""What the paper measures, on the runs of the grid: one file a run and kind of probe."""

PROBE_MODULES = [
    "acpo.probes.tokens",
    "acpo.probes.clip_dynamics",
    "acpo.probes.run_facts",
]


localrules:
    probes,


def probed_runs() -> list[str]:
    """Return cell and seed of the grid's training runs that store tokens."""
    stored = [
        cell
        for cell in grid_cells(STUDY)
        if not cell.is_base and STUDY.suites[cell.suite].token_store.rollouts
    ]
    return [f"{cell}/seed{seed}" for cell in stored for seed in cell_seeds(STUDY, cell)]


TOKEN_PROBES = [f"results/probes/{run}/tokens.json" for run in probed_runs()]


rule probe_tokens:
    input:
        "results/runs/{trained}/seed{seed}/run.json",
    output:
        "results/probes/{trained}/seed{seed}/tokens.json",
    log:
        "results/logs/{trained}/seed{seed}/probe_tokens.log",
    benchmark:
        "results/logs/{trained}/seed{seed}/probe_tokens.tsv"
    params:
        code=code_hash(PROBE_MODULES),
    shell:
        "{PYTHON} {SCRIPTS}/probe_tokens.py --config {STUDY_FILE} --cell {wildcards.trained} "
        "--run-directory $(dirname {input}) --output $(dirname {output}) 2>&1 | tee {log}"


# Every kind of probe adds its files here.
rule probes:
    input:
        TOKEN_PROBES,
