"""Base models and training runs. A run's directory is no output: a killed run finds its checkpoints again."""

from acpo.sections import HubModel


localrules:
    fetch_model,
    link_base,


PUBLISHED = {
    name: model for name, model in STUDY.models.items() if isinstance(model, HubModel)
}
LINKED = [name for name, suite in STUDY.suites.items() if suite.model in PUBLISHED]
NONE = "(?!)"


def published_identity(name: str) -> list[str | None]:
    """Return what makes a published model another one; a new label or a hash that has become known does not."""
    return [PUBLISHED[name].repository, PUBLISHED[name].revision]


def base_data(wildcards) -> str:
    """Return what a suite's base model is made from."""
    suite = STUDY.suites[wildcards.suite]
    return data_file(suite.task, suite.train_split)


def training_input(wildcards) -> dict[str, str | list[str]]:
    """Return what a training run reads: base model, data, and the runs that measured parameters come from."""
    cell = find_cell(wildcards.trained)
    suite = STUDY.suites[cell.suite]
    return {
        "base": f"results/runs/{cell.suite}_{BASE}/seed0/run.json",
        "train": data_file(suite.task, suite.train_split),
        "validation": data_file(suite.task, suite.validation.split),
        "measured": [
            f"{run}/run.json" for run in measured_runs(cell, wildcards.seed).values()
        ],
    }


def measured_runs(cell: Cell, seed: str) -> dict[str, str]:
    """Return the run of each method that a measured parameter names, of the same suite, regime and seed."""
    sources = {source.method for source in STUDY.methods[cell.method].measured.values()}
    return {
        method: f"results/runs/{Cell(cell.suite, method, cell.regime)}/seed{seed}"
        for method in sorted(sources)
    }


def measured_options(wildcards) -> str:
    """Return the options that hand those runs to the script."""
    runs = measured_runs(find_cell(wildcards.trained), wildcards.seed)
    return " ".join(f"--measured-run {method}={run}" for method, run in runs.items())


@cache
def training_identity(name: str) -> str:
    """Hash the configuration and the code that a cell's training depends on."""
    cell = find_cell(name)
    return f"{digest(resolve(STUDY, cell))}-{code_hash(training_modules(STUDY, cell))}"


# The network is used here and in fetch_dataset alone, on the machine that runs Snakemake.
rule fetch_model:
    output:
        "results/models/{model}/manifest.json",
    log:
        "results/logs/models/{model}.log",
    benchmark:
        "results/logs/models/{model}.tsv"
    wildcard_constraints:
        model="|".join(PUBLISHED) or NONE,
    params:
        identity=lambda wildcards: published_identity(wildcards.model),
    shell:
        "HF_HUB_OFFLINE=0 {PYTHON} {SCRIPTS}/fetch_model.py --config {STUDY_FILE} --model {wildcards.model} "
        "--output $(dirname {output}) {FROM_MIRROR} 2>&1 | tee {log}"


rule link_base:
    input:
        lambda wildcards: f"results/models/{STUDY.suites[wildcards.suite].model}/manifest.json",
    output:
        "results/runs/{suite}_base/seed0/run.json",
    log:
        "results/logs/{suite}_base/seed0/train.log",
    benchmark:
        "results/logs/{suite}_base/seed0/train.tsv"
    wildcard_constraints:
        suite="|".join(LINKED) or NONE,
    params:
        identity=lambda wildcards: published_identity(
            STUDY.suites[wildcards.suite].model
        ),
    shell:
        "{PYTHON} {SCRIPTS}/link_base.py --config {STUDY_FILE} --cell {wildcards.suite}_base "
        "--model-directory $(dirname {input}) --run-directory $(dirname {output}) 2>&1 | tee {log}"


rule make_base:
    input:
        base_data,
    output:
        "results/runs/{suite}_base/seed0/run.json",
    log:
        "results/logs/{suite}_base/seed0/train.log",
    benchmark:
        "results/logs/{suite}_base/seed0/train.tsv"
    wildcard_constraints:
        suite="|".join(sorted(set(STUDY.suites) - set(LINKED))) or NONE,
    resources:
        mem_mb=lambda wildcards: STUDY.suites[wildcards.suite].resources.memory_mb,
    params:
        identity=lambda wildcards: training_identity(f"{wildcards.suite}_{BASE}"),
    shell:
        "{PYTHON} {SCRIPTS}/train_policy.py --config {STUDY_FILE} --cell {wildcards.suite}_base --train-data {input} "
        "--run-directory $(dirname {output}) 2>&1 | tee {log}"


rule train_policy:
    input:
        unpack(training_input),
    output:
        "results/runs/{trained}/seed{seed}/run.json",
    log:
        "results/logs/{trained}/seed{seed}/train.log",
    benchmark:
        "results/logs/{trained}/seed{seed}/train.tsv"
    threads: lambda wildcards: suite_of(wildcards.trained).resources.cpus
    resources:
        mem_mb=lambda wildcards: suite_of(wildcards.trained).resources.memory_mb,
        runtime=lambda wildcards: suite_of(wildcards.trained).resources.runtime_minutes,
        gpu=lambda wildcards: suite_of(wildcards.trained).resources.gpus,
        nodes=lambda wildcards: suite_of(wildcards.trained).resources.nodes,
    params:
        identity=lambda wildcards: training_identity(wildcards.trained),
        measured=measured_options,
    shell:
        "{PYTHON} {SCRIPTS}/train_policy.py --config {STUDY_FILE} --cell {wildcards.trained} --seed {wildcards.seed} "
        "--train-data {input.train} --validation-data {input.validation} --base $(dirname {input.base})/last "
        "{params.measured} --run-directory $(dirname {output}) 2>&1 | tee {log}"
