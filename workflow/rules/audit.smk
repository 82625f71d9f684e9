"""The paper's numbers recomputed, and its claims judged on whatever results exist."""

import hashlib

AUDIT = Path(workflow.basedir) / "src/acpo/audit"
# What the ledger reads, where it exists. By itself the audit makes no study, it says what is missing.
EVIDENCE = [
    "*.json",
    "runs/*/seed*/run.json",
    "theory/*.json",
    "probes/*/seed*/*.json",
]


localrules:
    audit,
    audit_claims,


# What the same command asks for comes first.
STUDIED = [
    *GRID_CELLS,
    *GRID_RUNS,
    *DRAWN_TOKEN_PROBES,
    *GRADIENT_PROBES,
    *TIMING,
    *rules.theory.input,
]
TOGETHER = {
    "probes": [*TOKEN_PROBES, *GRADIENT_PROBES],
    "theory": rules.theory.input,
    "ablations": rules.ablations.input,
    **dict.fromkeys(
        ("all", "results/report.html", "results/paper.tex", "results/paper.pdf"),
        STUDIED,
    ),
}


def asked_together(wildcards) -> list[str]:
    """Return the evidence that the command itself asks for; a command without a target asks for all."""
    settings = workflow.dag_settings
    targets = settings.targets or ([] if settings.target_jobs else ["all"])
    return [
        file
        for target, files in TOGETHER.items()
        if target in targets
        for file in files
    ]


def evidence_identity(wildcards) -> str:
    """Hash the evidence that exists now and is no input, so that more of it, or other, judges again."""
    given = {*map(Path, asked_together(wildcards))}
    found = {file for pattern in EVIDENCE for file in Path("results").glob(pattern)}
    listed = "\n".join(f"{file} {file_hash(file)}" for file in sorted(found - given))
    return hashlib.sha256(listed.encode()).hexdigest()[:16]


rule audit_claims:
    input:
        asked_together,
    output:
        multiext("results/audit/published", ".json", ".tex"),
        multiext("results/audit/ledger", ".json", ".tex"),
        [
            report(
                f"results/audit/{name}.html",
                caption=f"{CAPTIONS}/audit.rst",
                category="Audit",
                labels={"audit": name},
            )
            for name in ("published", "ledger")
        ],
    log:
        "results/logs/audit.log",
    benchmark:
        "results/logs/audit.tsv"
    params:
        study=digest(STUDY),
        code=code_hash(["acpo.audit.claims", "acpo.audit.ledger", "acpo.audit.render"]),
        claims=[file_hash(file) for file in sorted(AUDIT.glob("*.yaml"))],
        templates=TEMPLATES,
        evidence=evidence_identity,
    shell:
        "{PYTHON} {SCRIPTS}/audit_claims.py --config {STUDY_FILE} --results results --output-dir results/audit "
        "2>&1 | tee {log}"


rule audit:
    input:
        rules.audit_claims.output,
