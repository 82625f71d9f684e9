"""Claims about the cost of an update (App. L), from `results/timing.json`."""

from acpo.audit.checks.finding import Finding, holds
from acpo.audit.comparison import Difference, all_positive
from acpo.audit.evidence import COMMANDS, PLACES, Evidence, MissingEvidenceError
from acpo.store import read_json
from acpo.timing import REFERENCE, RegimeTime, Timing

SCALE = "CPU seconds of the embedded engine; all methods in turns on one rollout, in one process."


def acpo_overhead(evidence: Evidence) -> Finding:
    """Say whether ACPO's updates cost no more than DAPO's, up to the spread of DAPO's own."""
    found = _relative(evidence, "acpo")
    spread = {name: each.methods[REFERENCE].spread / each.methods[REFERENCE].median for name, each in found.items()}
    changes = {name: each.relative("acpo") for name, each in found.items()}
    return holds(
        all(change <= spread[name] for name, change in changes.items()),
        "; ".join(f"{name} {100 * change:+.1f} % (DAPO's own spread {100 * spread[name]:.1f} %)"
                  for name, change in changes.items()),
        f"Negligible is read as no more than the spread of DAPO's own updates over rounds. {SCALE}",
    )  # fmt: skip


def ar_lopti_overhead(evidence: Evidence) -> Finding:
    """Say whether AR-Lopti costs more than the published multiple of DAPO."""
    factor = evidence.published.said("overhead_ar_lopti").value
    found = {
        name: Difference([ratio - factor for ratio in each.ratios("ar_lopti")])
        for name, each in _relative(evidence, "ar_lopti").items()
    }
    return Finding(
        all_positive(found.values()),
        "; ".join(f"{name} {factor + each.mean:.3f} times" for name, each in found.items())
        + f"; minus {factor:g}: "
        + "; ".join(f"{name} {each.text(1)}" for name, each in found.items()),
        f"Both passes count; two passes alone make 2. In brackets the 95 % t interval over rounds. {SCALE}",
    )


def high_entropy_overhead(evidence: Evidence) -> Finding:
    """Say whether High-Entropy costs about the published percentage more than DAPO."""
    said = evidence.published.said("overhead_high_entropy").value
    changes = {name: 100 * each.relative("high_entropy") for name, each in _relative(evidence, "high_entropy").items()}
    return holds(
        all(abs(value - said) < 5 for value in changes.values()),
        "; ".join(f"{name} {value:+.1f} %" for name, value in changes.items()),
        f"Reproduced would be {said - 5:g} to {said + 5:g} %. The embedded engine computes entropies for every method, "
        f"as it logs them. {SCALE}",
    )


def _relative(evidence: Evidence, method: str) -> dict[str, RegimeTime]:
    timing = read_json(evidence.path("timing"), Timing)
    found = {f"{each.suite} {each.regime}": each for each in timing.regimes if method in each.methods}
    if not found:
        raise MissingEvidenceError(f"{method} in results/{PLACES['timing']}", COMMANDS["timing"])
    return found
