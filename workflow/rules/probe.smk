"""What the paper measures, on the runs of the grid: one file a run and kind of probe."""

PROBE_MODULES = [
    "acpo.probes.tokens",
    "acpo.probes.clip_dynamics",
    "acpo.probes.run_facts",
]


localrules:
    probes,


def probed_runs(cells: list[Cell]) -> list[str]:
    """Return cell and seed of the training runs, among some cells, that store tokens."""
    stored = [
        cell
        for cell in cells
        if not cell.is_base and STUDY.suites[cell.suite].token_store.rollouts
    ]
    return [f"{cell}/seed{seed}" for cell in stored for seed in cell_seeds(STUDY, cell)]


def token_probes(cells: list[Cell]) -> list[str]:
    """Return the token probes of some cells."""
    return [f"results/probes/{run}/tokens.json" for run in probed_runs(cells)]


TOKEN_PROBES = token_probes(grid_cells(STUDY))
# Figures show a few methods, so they wait for no others.
DRAWN_CELLS = [
    cell for cell in grid_cells(STUDY) if cell.method in STUDY.probes.methods
]
DRAWN_TOKEN_PROBES = token_probes(DRAWN_CELLS)


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


# The embedded engine makes the material of gradient probes. Runs of other engines are probed by hand: docs/probes.md.
def drifting_runs() -> list[str]:
    """Return cell and seed of the grid's runs whose gradients are probed."""
    return [
        f"{cell}/seed{seed}"
        for cell in DRAWN_CELLS
        if STUDY.suites[cell.suite].engine.name == "tiny"
        for seed in cell_seeds(STUDY, cell)[: STUDY.probes.seeds]
    ]


def train_data(wildcards) -> str:
    """Return the data set that a cell is trained on."""
    suite = suite_of(wildcards.trained)
    return data_file(suite.task, suite.train_split)


GRADIENT_PROBES = [f"results/probes/{run}/gradients.json" for run in drifting_runs()]


rule drift_policy:
    input:
        run="results/runs/{trained}/seed{seed}/run.json",
        train=train_data,
    output:
        "results/probes/{trained}/seed{seed}/drift/drift.json",
    log:
        "results/logs/{trained}/seed{seed}/drift_policy.log",
    benchmark:
        "results/logs/{trained}/seed{seed}/drift_policy.tsv"
    params:
        probes=digest(STUDY.probes),
        code=code_hash(["acpo.engines.tiny.drift"]),
    shell:
        "{PYTHON} {SCRIPTS}/drift_policy.py --config {STUDY_FILE} --cell {wildcards.trained} --seed {wildcards.seed} "
        "--checkpoint $(dirname {input.run})/last --train-data {input.train} --output-dir $(dirname {output}) "
        "2>&1 | tee {log}"


rule probe_gradients:
    input:
        drift="results/probes/{trained}/seed{seed}/drift/drift.json",
        data=train_data,
    output:
        "results/probes/{trained}/seed{seed}/gradients.json",
    log:
        "results/logs/{trained}/seed{seed}/probe_gradients.log",
    benchmark:
        "results/logs/{trained}/seed{seed}/probe_gradients.tsv"
    params:
        probes=digest(STUDY.probes),
        temperature=lambda wildcards: suite_of(wildcards.trained).training.temperature,
        code=code_hash(["acpo.probes.comparison"]),
    shell:
        "{PYTHON} {SCRIPTS}/probe_gradients.py --config {STUDY_FILE} --drift {input.drift} --data {input.data} "
        "--temperature {params.temperature} --output {output} 2>&1 | tee {log}"


rule probes:
    input:
        TOKEN_PROBES,
        GRADIENT_PROBES,
