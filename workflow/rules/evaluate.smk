"""Samples, verdicts, scores: three steps, so that a new grader never samples again."""


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
    resources:
        mem_mb=lambda wildcards: suite_of(wildcards.cell).resources.memory_mb,
        gpu=lambda wildcards: suite_of(wildcards.cell).resources.gpus,
    params:
        spec=lambda wildcards: digest(
            resolve_evaluation(STUDY, find_cell(wildcards.cell))
        ),
        directory=lambda wildcards: f"results/runs/{wildcards.cell}/seed{wildcards.seed}",
    shell:
        "{PYTHON} {SCRIPTS}/sample_responses.py --config {STUDY_FILE} --cell {wildcards.cell} --seed {wildcards.seed} "
        "--run-directory {params.directory} --data results/data --output {output} 2>&1 | tee {log}"


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
        code=lambda wildcards: code_hash(
            grading_modules(STUDY, find_cell(wildcards.cell))
        ),
    shell:
        "{PYTHON} {SCRIPTS}/grade_samples.py --config {STUDY_FILE} --cell {wildcards.cell} --samples {input.samples} "
        "--data results/data --output {output} 2>&1 | tee {log}"


rule score_cell:
    input:
        verdicts=lambda wildcards: [
            f"{run}/verdicts.parquet"
            for run in run_directories(find_cell(wildcards.cell))
        ],
        data=benchmark_files,
    output:
        "results/{cell}.json",
    log:
        "results/logs/{cell}/score.log",
    benchmark:
        "results/logs/{cell}/score.tsv"
    params:
        code=code_hash(["acpo.evaluation"]),
    shell:
        "{PYTHON} {SCRIPTS}/score_cell.py --config {STUDY_FILE} --cell {wildcards.cell} --runs results/runs/{wildcards.cell} "
        "--data results/data --output {output} 2>&1 | tee {log}"
