"""Raw files, formatted data sets, overlap of training sets with benchmarks."""

import re

from acpo.data.registry import SOURCES
from acpo.tasks import load_task


localrules:
    fetch_dataset,


def raw_file(key: str) -> str:
    """Return the place of a raw file: its path in a mirror."""
    return f"results/data/raw/{SOURCES[key].relative_path}"


# Not a parameter of the rule: where a verified file came from changes nothing, and must make nothing again.
FROM_MIRROR = f"--mirror {MIRROR}" if MIRROR else ""
RAW_KEYS = {SOURCES[key].relative_path: key for key in SOURCES}


def raw_files(wildcards) -> dict[str, str]:
    """Return the raw files that a split is made from, by key."""
    return {
        key: raw_file(key) for key in load_task(wildcards.task).sources(wildcards.split)
    }


# The network is used by this rule alone, on the machine that runs Snakemake; never with a mirror that has the file.
rule fetch_dataset:
    output:
        protected("results/data/raw/{path}"),
    log:
        "results/logs/data/raw/{path}.log",
    benchmark:
        "results/logs/data/raw/{path}.tsv"
    wildcard_constraints:
        path="|".join(map(re.escape, RAW_KEYS)),
    params:
        key=lambda wildcards: RAW_KEYS[wildcards.path],
    shell:
        "{PYTHON} {SCRIPTS}/fetch_dataset.py --key {params.key} --output {output} {FROM_MIRROR} 2>&1 | tee {log}"


rule format_dataset:
    input:
        unpack(raw_files),
    output:
        data="results/data/{task}/{split}.parquet",
        manifest="results/data/{task}/{split}.manifest.json",
    log:
        "results/logs/data/{task}/{split}.log",
    benchmark:
        "results/logs/data/{task}/{split}.tsv"
    wildcard_constraints:
        task="(?!raw)[a-z0-9_]+",
    params:
        root_seed=STUDY.root_seed,
        code=lambda wildcards: code_hash(dataset_modules(wildcards.task)),
        files=lambda wildcards, input: " ".join(
            f"--file {key}={path}" for key, path in raw_files(wildcards).items()
        ),
    shell:
        "{PYTHON} {SCRIPTS}/format_dataset.py --config {STUDY_FILE} --task {wildcards.task} "
        "--split {wildcards.split} {params.files} --output {output.data} 2>&1 | tee {log}"


MATH_BENCHMARKS = ["math500", "aime24", "aime25", "amc", "amc23", "minerva", "olympiad"]


rule report_overlap:
    input:
        training=lambda wildcards: raw_file(wildcards.training),
        benchmarks=[raw_file(key) for key in MATH_BENCHMARKS],
    output:
        json="results/data/overlap/{training}.json",
        table="results/data/overlap/{training}.md",
    log:
        "results/logs/data/overlap/{training}.log",
    benchmark:
        "results/logs/data/overlap/{training}.tsv"
    wildcard_constraints:
        training="orz57k|orz57k_prefix",
    params:
        benchmarks=[f"math/{key}" for key in MATH_BENCHMARKS],
        files=lambda wildcards: [
            f"--file {key}={raw_file(key)}"
            for key in (wildcards.training, *MATH_BENCHMARKS)
        ],
        code=code_hash(["acpo.data.overlap", "acpo.tasks.math"]),
    shell:
        "{PYTHON} {SCRIPTS}/report_overlap.py --config {STUDY_FILE} --training math/{wildcards.training} "
        "--benchmarks {params.benchmarks} {params.files} --output {output.json} 2>&1 | tee {log}"


# What the suites of the paper need; with `--config mirror=<directory>` the parts that the mirror holds need no network.
DATA_SETS = [
    *((("math", split)) for split in (*MATH_BENCHMARKS, "aime24_released")),
    *((("hitab", split)) for split in ("test", "test_released", "test300")),
]
DATA_SETS_WITH_A_NETWORK = [
    ("math", "orz57k"),
    ("hitab", "train"),
    ("hitab", "dev"),
    ("countdown", "train"),
    ("countdown", "test"),
]


def in_mirror(task: str, split: str) -> bool:
    """Say whether a mirror holds every raw file of a split."""
    return all(
        (Path(MIRROR) / SOURCES[key].relative_path).is_file()
        for key in load_task(task).sources(split)
    )


rule data:
    input:
        [data_file(*each) for each in DATA_SETS],
        [
            data_file(*each)
            for each in DATA_SETS_WITH_A_NETWORK
            if not MIRROR or in_mirror(*each)
        ],
        "results/data/overlap/orz57k_prefix.md"
        if MIRROR
        else "results/data/overlap/orz57k.md",
