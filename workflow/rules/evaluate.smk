"""Samples, verdicts, scores: three steps, so that a new grader never samples again."""


def verdict_files(wildcards) -> list[str]:
    """Return the verdict stores of a cell's runs."""
    return [
        f"{run}/verdicts.parquet" for run in run_directories(find_cell(wildcards.cell))
    ]


@cache
def sampling_identity(name: str) -> str:
    """Hash the configuration and the code that a cell's samples depend on."""
    cell = find_cell(name)
    return f"{digest(resolve_evaluation(STUDY, cell))}-{code_hash(sampling_modules(STUDY, cell))}"


@cache
def grading_identity(name: str) -> str:
    """Hash the code that a cell's verdicts depend on."""
    return code_hash(grading_modules(STUDY, find_cell(name)))


def sampling_share(wildcards, kind: str) -> int:
    """Return what of a training job's cores or memory goes with the GPUs that sampling uses."""
    suite = suite_of(wildcards.cell)
    amount, gpus = getattr(suite.resources, kind), suite.resources.gpus
    return max(1, amount * suite.sampling_gpus // gpus) if gpus else amount


rule sample_responses:
    input:
        run="results/runs/{cell}/seed{seed}/run.json",
        data=benchmark_files,
    output:
        "results/runs/{cell}/seed{seed}/samples.parquet",
    log:
        "results/logs/{cell}/seed{seed}/sample.log",
    benchmark:
        "results/logs/{cell}/seed{seed}/sample.tsv"
    threads: lambda wildcards: sampling_share(wildcards, "cpus")
    resources:
        mem_mb=lambda wildcards: sampling_share(wildcards, "memory_mb"),
        # Both checkpoints on all benchmarks take far less than the training that they come from.
        runtime=lambda wildcards: max(
            60, suite_of(wildcards.cell).resources.runtime_minutes // 10
        ),
        gpu=lambda wildcards: suite_of(wildcards.cell).sampling_gpus,
        nodes=1,
    params:
        identity=lambda wildcards: sampling_identity(wildcards.cell),
    shell:
        "{PYTHON} {SCRIPTS}/sample_responses.py --config {STUDY_FILE} --cell {wildcards.cell} --seed {wildcards.seed} "
        "--run-directory $(dirname {input.run}) --data results/data --output {output} 2>&1 | tee {log}"


rule grade_samples:
    input:
        samples="results/runs/{cell}/seed{seed}/samples.parquet",
        data=benchmark_files,
    output:
        "results/runs/{cell}/seed{seed}/verdicts.parquet",
    log:
        "results/logs/{cell}/seed{seed}/grade.log",
    benchmark:
        "results/logs/{cell}/seed{seed}/grade.tsv"
    params:
        identity=lambda wildcards: grading_identity(wildcards.cell),
    shell:
        "{PYTHON} {SCRIPTS}/grade_samples.py --config {STUDY_FILE} --cell {wildcards.cell} --samples {input.samples} "
        "--data results/data --output {output} 2>&1 | tee {log}"


rule score_cell:
    input:
        verdicts=verdict_files,
        data=benchmark_files,
    output:
        "results/{cell}.json",
    log:
        "results/logs/{cell}/score.log",
    benchmark:
        "results/logs/{cell}/score.tsv"
    params:
        identity=code_hash(["acpo.evaluation"]),
    shell:
        "{PYTHON} {SCRIPTS}/score_cell.py --config {STUDY_FILE} --cell {wildcards.cell} --runs results/runs/{wildcards.cell} "
        "--data results/data --output {output} 2>&1 | tee {log}"
