"""Base models and training runs. A run's directory is no output: a killed run finds its checkpoints again."""


def suite_data(suite, split: str) -> str:
    """Return a data set of a suite's own task."""
    return data_file(suite.task, split)


def measured_runs(wildcards) -> list[str]:
    """Return the finished runs that a method's measured parameters are read from."""
    return [
        f"{directory}/run.json"
        for directory in measured_directories(wildcards).values()
    ]


def measured_directories(wildcards) -> dict[str, str]:
    """Return the run directory of each method that a measured parameter names, of the same suite, regime, seed."""
    cell = find_cell(wildcards.trained)
    sources = {source.method for source in STUDY.methods[cell.method].measured.values()}
    return {
        method: f"results/runs/{Cell(cell.suite, method, cell.regime)}/seed{wildcards.seed}"
        for method in sorted(sources)
    }


rule make_base:
    input:
        lambda wildcards: suite_data(
            STUDY.suites[wildcards.suite], STUDY.suites[wildcards.suite].train_split
        ),
    output:
        "results/runs/{suite}_base/seed0/run.json",
    log:
        "results/logs/{suite}_base/seed0/train.log",
    benchmark:
        "results/logs/{suite}_base/seed0/train.tsv"
    resources:
        mem_mb=lambda wildcards: STUDY.suites[wildcards.suite].resources.memory_mb,
    params:
        spec=lambda wildcards: digest(resolve(STUDY, Cell(wildcards.suite, BASE, None))),
        code=lambda wildcards: code_hash(
            training_modules(STUDY, Cell(wildcards.suite, BASE, None))
        ),
        directory=lambda wildcards: f"results/runs/{wildcards.suite}_base/seed0",
    shell:
        "{PYTHON} {SCRIPTS}/train_policy.py --config {STUDY_FILE} --cell {wildcards.suite}_base --train-data {input} "
        "--run-directory {params.directory} 2>&1 | tee {log}"


rule train_policy:
    input:
        base=lambda wildcards: f"results/runs/{find_cell(wildcards.trained).suite}_base/seed0/run.json",
        train=lambda wildcards: suite_data(
            suite_of(wildcards.trained), suite_of(wildcards.trained).train_split
        ),
        validation=lambda wildcards: suite_data(
            suite_of(wildcards.trained), suite_of(wildcards.trained).validation.split
        ),
        measured=measured_runs,
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
    params:
        spec=lambda wildcards: digest(resolve(STUDY, find_cell(wildcards.trained))),
        code=lambda wildcards: code_hash(
            training_modules(STUDY, find_cell(wildcards.trained))
        ),
        directory=lambda wildcards: f"results/runs/{wildcards.trained}/seed{wildcards.seed}",
        base=lambda wildcards: f"results/runs/{find_cell(wildcards.trained).suite}_base/seed0/last",
        measured=lambda wildcards: " ".join(
            f"--measured-run {method}={directory}"
            for method, directory in measured_directories(wildcards).items()
        ),
    shell:
        "{PYTHON} {SCRIPTS}/train_policy.py --config {STUDY_FILE} --cell {wildcards.trained} --seed {wildcards.seed} "
        "--train-data {input.train} --validation-data {input.validation} --base {params.base} {params.measured} "
        "--run-directory {params.directory} 2>&1 | tee {log}"
