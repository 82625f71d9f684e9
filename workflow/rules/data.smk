"""Data sets in one schema."""


rule format_dataset:
    output:
        "results/data/{task}/{split}.parquet",
    log:
        "results/logs/data/{task}/{split}.log",
    benchmark:
        "results/logs/data/{task}/{split}.tsv"
    params:
        root_seed=STUDY.root_seed,
        code=lambda wildcards: code_hash(
            ["acpo.datasets", *task_modules(wildcards.task)]
        ),
    shell:
        "{PYTHON} {SCRIPTS}/format_dataset.py --config {STUDY_FILE} --task {wildcards.task} "
        "--split {wildcards.split} --output {output} 2>&1 | tee {log}"


def task_modules(task: str) -> list[str]:
    """Return a task's module, or nothing for a task that this version does not have: the job says so."""
    return (
        [f"acpo.tasks.{task}"]
        if Path(f"{workflow.basedir}/src/acpo/tasks/{task}.py").exists()
        else []
    )
