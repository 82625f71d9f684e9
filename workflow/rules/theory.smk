"""The paper's derivations, recomputed. Nothing here depends on a run."""


localrules:
    theory,
    check_theory,
    map_dominance,
    plot_sign_map,


rule check_theory:
    output:
        multiext("results/theory/statements", ".json", ".tex", ".html"),
    log:
        "results/logs/theory/statements.log",
    benchmark:
        "results/logs/theory/statements.tsv"
    params:
        root_seed=STUDY.root_seed,
        code=code_hash(["acpo.theory.statements", "acpo.report.text_table"]),
        templates=TEMPLATES,
    shell:
        "{PYTHON} {SCRIPTS}/check_theory.py --config {STUDY_FILE} --output {output[0]} 2>&1 | tee {log}"


rule map_dominance:
    output:
        signs="results/theory/sign_map.parquet",
        reversals="results/theory/reversals.json",
    log:
        "results/logs/theory/sign_map.log",
    benchmark:
        "results/logs/theory/sign_map.tsv"
    params:
        code=code_hash(["acpo.theory.sign_map"]),
    shell:
        "{PYTHON} {SCRIPTS}/map_dominance.py --signs {output.signs} --reversals {output.reversals} 2>&1 | tee {log}"


rule plot_sign_map:
    input:
        "results/theory/sign_map.parquet",
    output:
        multiext("results/theory/sign_map", ".pdf", ".png"),
    log:
        "results/logs/theory/plot_sign_map.log",
    benchmark:
        "results/logs/theory/plot_sign_map.tsv"
    params:
        code=code_hash(["acpo.report.sign_map"]),
    shell:
        "{PYTHON} {SCRIPTS}/plot_sign_map.py --signs {input} --output-dir results/theory 2>&1 | tee {log}"


rule theory:
    input:
        multiext("results/theory/statements", ".json", ".tex", ".html"),
        multiext("results/theory/sign_map", ".parquet", ".pdf", ".png"),
        "results/theory/reversals.json",
