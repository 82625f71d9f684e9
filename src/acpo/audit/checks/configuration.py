"""Whether the study is configured with the published settings (Tables 3 and 4)."""

from typing import Any

from acpo.audit.checks.finding import Finding, holds
from acpo.audit.evidence import Evidence, MissingEvidenceError

TRAINING = {
    "Max Prompt Length": "max_prompt_tokens",
    "Max Response Length": "max_response_tokens",
    "Learning Rate": "learning_rate",
    "Total Epochs": "epochs",
    "Rollout N": "group_size",
    "Temperature": "temperature",
    "Entropy Coefficient": "entropy_coefficient",
    "KL Coefficient": "kl_coefficient",
}
CLIP = {"epsilon_low": "clip_low", "epsilon_high": "clip_high"}
BATCHES = {"Train Batch Size": "train_batch_size", "PPO Mini Batch Size": "mini_batch_size"}
REGIMES = {"N-OnP.": "nonp", "OffP.": "offp"}
METHODS = {
    "AR-Lopti": ("ar_lopti", {"alpha_AR": "ar_alpha", "tau_AR": "ar_tau", "w_neg": "w_neg", "p_lopti": "threshold"}),
    "High-Entropy": ("high_entropy", {"k_ratio": "ratio"}),
    "Low-Entropy": ("low_entropy", {"k_ratio": "ratio"}),
    "ACPO": (
        "acpo",
        {"alpha": "alpha", "epsilon_base": "clip_base", "epsilon_min": "clip_min", "epsilon_max": "clip_max"},
    ),
    "CISPO": ("cispo", {"epsilon_is_high": "clip_high", "epsilon_is_low": "clip_low"}),
}
"""How `config.yaml` calls what Tables 3 and 4 call otherwise."""


def common_settings(evidence: Evidence, suite: str) -> Finding:
    """Compare a suite's settings with Table 3."""
    if suite not in evidence.study.suites:
        raise MissingEvidenceError(f"a suite {suite} in config.yaml", "git checkout config.yaml")
    evidence.require("dapo")
    training = evidence.study.suites[suite].training.model_dump()
    found: dict[tuple[str, str], Any] = {(row, "N-OnP."): training[key] for row, key in TRAINING.items()}
    found["Validation N", "N-OnP."] = evidence.study.suites[suite].validation.samples
    found |= {(row, "N-OnP."): evidence.study.methods["dapo"].parameters[key] for row, key in CLIP.items()}
    for column, regime in REGIMES.items():
        if regime not in evidence.study.regimes:
            raise MissingEvidenceError(f"a regime {regime} in config.yaml", "git checkout config.yaml")
        sizes = evidence.study.regime(suite, regime)
        found |= {(row, column): getattr(sizes, key) for row, key in BATCHES.items()}
    table = evidence.published.tables["table3"]
    return _compare(
        {
            f"{row} {column}": (table.number("", row, ("", column)).value, value)
            for (row, column), value in found.items()
        },
        f"config.yaml: suites.{suite}, regimes, methods.dapo.",
    )


def method_settings(evidence: Evidence) -> Finding:
    """Compare the methods' parameters with Table 4."""
    table = evidence.published.tables["table4"]
    pairs = {}
    for panel, (method, keys) in METHODS.items():
        evidence.require(method)
        for row, key in keys.items():
            said = table.number(panel, row, ("", "value")).value
            pairs[f"{panel} {row}"] = (said, evidence.study.methods[method].parameters.get(key))
    return _compare(pairs, "config.yaml: methods.")


def _compare(pairs: dict[str, tuple[float, Any]], where: str) -> Finding:
    different = {name: values for name, values in pairs.items() if values[0] != values[1]}
    shown = "; ".join(f"{name} {said:g} here {value}" for name, (said, value) in different.items())
    return holds(
        not different,
        f"{len(pairs) - len(different)} of {len(pairs)} settings are the published ones{': ' if shown else ''}{shown}",
        where,
    )
