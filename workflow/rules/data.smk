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
        code=lambda wildcards: code_hash(dataset_modules(wildcards.task)),
    shell:
        "{PYTHON} {SCRIPTS}/format_dataset.py --config {STUDY_FILE} --task {wildcards.task} "
        "--split {wildcards.split} --output {output} 2>&1 | tee {log}"
