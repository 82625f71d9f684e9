"""Raw files, formatted data sets, overlap of training sets with benchmarks."""

import re

from acpo.data.registry import SOURCES
from acpo.tasks import load_task


localrules:
    data,
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
        "HF_HUB_OFFLINE=0 {PYTHON} {SCRIPTS}/fetch_dataset.py --key {params.key} --output {output} "
        "{FROM_MIRROR} 2>&1 | tee {log}"


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
        limit=f"--limit {LIMIT}" if LIMIT else "",
        code=lambda wildcards: code_hash(dataset_modules(wildcards.task)),
        files=lambda wildcards, input: " ".join(
            f"--file {key}={path}" for key, path in raw_files(wildcards).items()
        ),
    shell:
        "{PYTHON} {SCRIPTS}/format_dataset.py --config {STUDY_FILE} --task {wildcards.task} "
        "--split {wildcards.split} {params.limit} {params.files} --output {output.data} 2>&1 | tee {log}"


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


DATA_SETS = [
    *(("math", split) for split in (*MATH_BENCHMARKS, "aime24_released", "orz57k")),
    *(
        ("hitab", split)
        for split in ("train", "dev", "test", "test_released", "test300")
    ),
    *(("countdown", split) for split in ("train", "test")),
]


def at_hand(task: str, split: str) -> bool:
    """Say whether a split needs no network: there is no mirror to stay within, or it holds every raw file."""
    sources = load_task(task).sources(split)
    return MIRROR is None or all(
        (Path(MIRROR) / SOURCES[key].relative_path).is_file() for key in sources
    )


# With a mirror, `data` is what that mirror holds; the rest is named when it runs, and can be asked for by file.
LEFT_OUT = [f"{task}/{split}" for task, split in DATA_SETS if not at_hand(task, split)]
OVERLAP = "orz57k" if at_hand("math", "orz57k") else "orz57k_prefix"


rule data:
    input:
        [data_file(*each) for each in DATA_SETS if at_hand(*each)],
        f"results/data/overlap/{OVERLAP}.md",
    log:
        "results/logs/data/data.log",
    benchmark:
        "results/logs/data/data.tsv"
    params:
        left_out=(
            f"not in the mirror, so not made: {', '.join(LEFT_OUT)}"
            if LEFT_OUT
            else "all data sets are made"
        ),
    shell:
        "echo '{params.left_out}' 2>&1 | tee {log}"
