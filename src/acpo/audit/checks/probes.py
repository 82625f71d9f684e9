"""Claims about tokens and gradients, from what the probes measured in DAPO's runs of the grid.

`tokens.json` and `gradients.json` are what `scripts/probe_tokens.py` and `scripts/probe_gradients.py` write. Parts of
an update are named with their denominator: divided by its own tokens (`_selected`) a part can exceed the whole, as
those of the paper do.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import somersd

from acpo.audit.checks.finding import Finding, holds
from acpo.audit.comparison import Difference, all_positive
from acpo.audit.evidence import COMMANDS, PLACES, Evidence, MissingEvidenceError
from acpo.audit.verdict import Verdict
from acpo.cells import Cell, cell_seeds
from acpo.store import StoreError

PROBED = "dapo"
SPREAD = "In brackets the 95 % t interval over training seeds."


def variance_exponent(evidence: Evidence) -> Finding:
    """Say whether the exponent of Var(rho) in 1 - pi is near the theory's 2 (Fig. 4)."""
    target = evidence.published.said("theory_exponent").value
    found = _tokens(evidence, lambda pooled: _given(pooled["exponent"]["exponent"]["value"]))
    inside = [low <= target <= high for low, high in (each.interval() for each in found.values())]
    return holds(all(inside), _texts(found, 1), f"Reproduced: every interval holds {target:g}. {SPREAD}")


def variance_in_band(evidence: Evidence) -> Finding:
    """Say whether every bin's variance lies within the sharp band of Eq. 25."""
    inside = _tokens(evidence, lambda pooled: _given(pooled["exponent"]["bins_in_band"]))
    bins = _tokens(evidence, lambda pooled: sum(each["used"] for each in pooled["exponent"]["bins"]))
    shown = "; ".join(f"{name} {sum(inside[name].values):g} of {sum(bins[name].values):g} bins" for name in inside)
    return holds(inside == bins, shown, "Bins of behavior probability of all training seeds together.")


def entropy_correlation(evidence: Evidence) -> Finding:
    """Say whether a token's probability and the entropy at its place are inversely correlated."""
    found = _tokens(evidence, lambda pooled: -float(somersd(_occupied(pooled["entropy"]["counts"])).statistic))
    return Finding(
        all_positive(found.values()),
        f"minus Somers' D of entropy by probability: {_texts(found, 1)}",
        f"Rank correlation of all tokens, counted on a grid of probability and entropy. {SPREAD}",
    )


def entropy_within_bounds(evidence: Evidence) -> Finding:
    """Say whether every token lies inside the bounds of App. E."""
    outside = _tokens(
        evidence,
        lambda pooled: pooled["entropy"]["bounds"]["below"] + _given(pooled["entropy"]["bounds"]["above"]),
    )
    every = _tokens(evidence, lambda pooled: pooled["tokens"])
    shown = "; ".join(f"{name} {sum(outside[name].values):g} of {sum(every[name].values):g}" for name in outside)
    return holds(
        not any(sum(each.values) for each in outside.values()),
        f"tokens outside: {shown}",
        "All training seeds together; outside by more than float32 explains.",
        otherwise=Verdict.CONTRADICTED,
    )


def clipped_region(evidence: Evidence) -> Finding:
    """Say whether most clipped tokens have low probability and low entropy, more than tokens at large (Fig. 5)."""
    clipped = _tokens(evidence, lambda pooled: _low_share(pooled, "clipped"))
    every = _tokens(evidence, lambda pooled: _low_share(pooled, "tokens"))
    found = {name: Difference(list(np.subtract(clipped[name].values, every[name].values))) for name in clipped}
    verdict = all_positive(found.values())
    if verdict is Verdict.REPRODUCED and not all(each.mean > 0.5 for each in clipped.values()):
        verdict = Verdict.NOT_REPRODUCED
    shown = "; ".join(f"{name} {100 * each.mean:.1f} % of clipped tokens" for name, each in clipped.items())
    return Finding(
        verdict,
        f"{shown}; more than of all tokens by {_texts(found)} points",
        f"Probability below 0.5, entropy in the lower half of its range. Reproduced: most clipped tokens. {SPREAD}",
    )


def dominance_reversal(evidence: Evidence) -> Finding:
    """Say whether low-probability tokens have the larger gradient at one update a rollout, and the smaller at many."""
    starts = _gradients(evidence, lambda document: _log_ratios(document)[0])
    ends = _gradients(evidence, lambda document: -_log_ratios(document)[-1])
    return Finding(
        all_positive([*starts.values(), *ends.values()]),
        f"log of low- over high-probability norm at the fewest updates: {_texts(starts, 1)}; minus that at the most: "
        f"{_texts(ends, 1)}",
        f"Reproduced: both above 0. {SPREAD}",
    )


def gradient_order(
    evidence: Evidence,
    nearer: str,
    farther: str,
    larger: str | None = None,
    smaller: str | None = None,
) -> Finding:
    """Say whether one part's gradient is nearer in direction to the whole's than another's, and one is larger."""
    angles = _part(evidence, farther, "angle", minus=nearer)
    differences, shown = dict(angles), f"angle of {farther} minus {nearer}, degrees: {_texts(angles, 1)}"
    if larger and smaller:
        norms = _part(evidence, larger, "norm", minus=smaller)
        differences |= {f"norm {name}": each for name, each in norms.items()}
        shown += f"; norm of {larger} minus {smaller}, percent of the whole's: {_texts(norms, 1)}"
    return Finding(all_positive(differences.values()), shown, SPREAD)


def gradient_norm(evidence: Evidence, variant: str, at_least: float) -> Finding:
    """Say whether a variant's gradient norm is at least so many percent of the reference's."""
    found = _part(evidence, variant, "norm")
    low = [each.interval()[0] >= at_least for each in found.values()]
    return holds(all(low), f"norm in percent: {_texts(found, 1)}", f"Reproduced: at least {at_least:g} %. {SPREAD}")


def gradient_angle(evidence: Evidence, variant: str, at_most: float) -> Finding:
    """Say whether a variant's gradient is turned by at most so many degrees."""
    found = _part(evidence, variant, "angle")
    high = [each.interval()[1] <= at_most for each in found.values()]
    return holds(all(high), f"angle in degrees: {_texts(found, 1)}", f"Reproduced: at most {at_most:g}. {SPREAD}")


def gradient_rotation(evidence: Evidence, variant: str) -> Finding:
    """Say whether a variant has nearly the reference's norm, and is turned further than the reference from itself.

    The floor is the angle between two halves of the same gradient.
    """
    norms = _part(evidence, variant, "norm")
    floor = _gradients(
        evidence, lambda document: _mean(document, variant, "angle") - _mean(document, "reference", "split_half_angle")
    )
    near = [low >= 80 and high <= 125 for low, high in (each.interval() for each in norms.values())]
    turned = all_positive(floor.values()) is Verdict.REPRODUCED
    return holds(
        turned and all(near),
        f"norm in percent: {_texts(norms, 1)}; angle above that of two halves of one gradient: {_texts(floor, 1)}",
        "Reproduced: norm between 80 and 125 %, and the angle above the noise floor. An angle below it does not tell "
        f"directions apart, and does not show that they are the same. {SPREAD}",
    )


def _part(evidence: Evidence, part: str, quantity: str, minus: str | None = None) -> dict[str, Difference]:
    def value(document: dict[str, Any], name: str) -> float:
        if quantity == "norm":
            return _given(_variant(document["variants"], name)["norm_percent"])
        return _mean(document, name, quantity)

    return _gradients(evidence, lambda document: value(document, part) - (value(document, minus) if minus else 0.0))


def _gradients(evidence: Evidence, value: Callable[[dict[str, Any]], float]) -> dict[str, Difference]:
    """Take a number of every seed's gradients."""
    return {name: Difference(_read(documents, value, name)) for name, documents in _documents(evidence, "gradients")}


def _variant(variants: list[dict[str, Any]], name: str) -> dict[str, Any]:
    found = [variant for variant in variants if variant["name"] == name]
    if not found:
        raise KeyError(name)
    return found[0]


def _mean(document: dict[str, Any], name: str, angle: str) -> float:
    """Return the mean of an angle over projection matrices, in degrees."""
    matrices = _variant(document["variants"], name)["matrices"]
    if not matrices:
        raise MissingEvidenceError(f"a gradient of {name} that is not zero", "probes.prompts in config.yaml")
    return float(np.mean([matrix[angle] for matrix in matrices]))


def _tokens(evidence: Evidence, value: Callable[[dict[str, Any]], float]) -> dict[str, Difference]:
    """Take a number of every seed's pooled tokens."""
    return {
        name: Difference(_read(documents, lambda document: float(value(document["pooled"])), name))
        for name, documents in _documents(evidence, "tokens")
    }


def _given(value: float | None) -> float:
    if value is None:
        raise MissingEvidenceError("more tokens than the probe found", "token_store.rollouts in config.yaml")
    return value


def _low_share(pooled: dict[str, Any], count: str) -> float:
    quadrants = pooled["entropy"]["quadrants"]
    total = sum(_given(each[count]) for each in quadrants)
    low = sum(
        each[count] for each in quadrants if (each["probability"], each["entropy"]) == ("below 0.5", "lower half")
    )
    return low / _given(total or None)


def _occupied(counts: list[list[int]]) -> NDArray[np.int64]:
    table = np.array(counts)
    return table[table.any(axis=1)][:, table.any(axis=0)]


def _read(documents: list[dict[str, Any]], value: Callable[[dict[str, Any]], float], name: str) -> list[float]:
    try:
        return [value(document) for document in documents]
    except (KeyError, TypeError) as error:
        raise StoreError(f"a probe of {name} lacks {error}: make it again") from error


def _documents(evidence: Evidence, kind: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for suite in evidence.suites():
        for regime in evidence.study.grid.regimes:
            cell = Cell(suite, PROBED, regime)
            evidence.require(PROBED)
            seeds = cell_seeds(evidence.study, cell)
            found = [evidence.document(kind, cell=str(cell), seed=seed) for seed in seeds]
            if len(found) < 2:
                raise MissingEvidenceError(f"{PLACES[kind]} of two training seeds of {cell} or more", COMMANDS[kind])
            yield str(cell), found


def _log_ratios(document: dict[str, Any]) -> list[float]:
    """Return log of the norm of the low- over that of the high-probability tokens' gradient, by rising updates."""
    points = sorted(document["dominance"], key=lambda point: point["updates"])
    pairs = [
        [_variant(point["gradients"], f"{side}_probability_all")["norm"] for side in ("low", "high")]
        for point in points
    ]
    return [float(np.log(low / high)) for low, high in pairs]


def _texts(found: dict[str, Difference], scale: float = 100.0) -> str:
    return "; ".join(f"{name} {difference.text(scale)}" for name, difference in found.items())
