"""Statements about the importance ratio: Lemma 2.1 and App. C.1, model (M1), and the entropy bounds of App. E."""

import numpy as np
from numpy.typing import NDArray

from acpo.streams import stream
from acpo.theory import softmax
from acpo.theory.entropy import entropy_bounds
from acpo.theory.statement import Statement

Array = NDArray[np.float64]
VOCABULARIES = (2, 5, 50, 200)
DRAWS = 20_000
NOISES = (0.1, 0.01, 0.001)
Z_LIMIT = 5.0
"""Standard errors within which a simulated number counts as agreeing; of a few hundred comparisons none is further
off by chance (probability below 1e-3)."""


def ratio_statements(root_seed: int) -> list[Statement]:
    """Recompute them in the order of the paper."""
    return [
        first_order(root_seed),
        variance(root_seed),
        remainder(root_seed),
        band(),
        mean_ratio(root_seed),
        entropies(root_seed),
    ]


def random_policies(rng: np.random.Generator) -> list[Array]:
    """Draw distributions from flat to peaked, for each vocabulary of `VOCABULARIES`."""
    return [rng.dirichlet(np.full(v, shape)) for v in VOCABULARIES for shape in (0.1, 1.0, 30.0)]


def peaked_policy(probability: float, vocabulary: int, flat: bool) -> Array:
    """Give token 0 a probability; spread the rest evenly (S = 1/(V-1)), or put it on one other token (S = 1)."""
    policy = np.zeros(vocabulary)
    policy[0] = probability
    policy[1:] = (1 - probability) / (vocabulary - 1) if flat else 0.0
    policy[1] += 0.0 if flat else 1 - probability
    return policy


def simulated_ratios(policy: Array, noise: float, rng: np.random.Generator) -> Array:
    """Draw exact ratios (draws, vocabulary) under independent normal logit shifts.

    Each shift is used with both signs: odd terms, the largest part of the noise of a mean, cancel.
    """
    shift = noise * rng.standard_normal((DRAWS // 2, len(policy)))
    with np.errstate(divide="ignore"):
        logits = np.log(policy)
    return softmax.exact_ratio(logits, np.concatenate([shift, -shift]), 1.0)


def first_order(root_seed: int) -> Statement:
    """Compare Eq. 14-16 with finite differences of the softmax."""
    rng, step = stream(root_seed, "theory", "first order"), 1e-5
    worst = 0.0
    for policy in random_policies(rng):
        shift = rng.standard_normal(len(policy))
        moved = [softmax.exact_ratio(np.log(policy), sign * step * shift, 1.0) for sign in (1, -1)]
        slope = (moved[0] - moved[1]) / (2 * step)
        worst = max(worst, float(np.abs(slope - (softmax.first_order_ratio(policy, shift, 1.0) - 1)).max()))
    return Statement(
        id="first_order_ratio",
        statement="To first order ρ − 1 = [(1 − π) Δy − Σ π Δy of the others] / T",
        place="Eq. 14-16",
        published="identity",
        recomputed=f"largest difference of the slopes {worst:.1e}",
        how=f"central differences (step {step:g}) for {len(VOCABULARIES) * 3} policies, V = {_listed(VOCABULARIES)}",
        agrees=worst < 1e-7,
        numbers={"largest_difference": worst},
    )


def variance(root_seed: int) -> Statement:
    """Compare Eq. 21 with the spread of simulated ratios at a small step."""
    rng, noise = stream(root_seed, "theory", "variance"), 0.01
    worst = 0.0
    for policy in random_policies(rng):
        squares = (simulated_ratios(policy, noise, rng) - 1) ** 2
        predicted = softmax.ratio_variance(policy, noise)
        # A squared shift and its mirror image are nearly equal, so half the draws are independent.
        error = squares.std(axis=0) / np.sqrt(DRAWS / 2)
        worst = max(worst, float((np.abs(squares.mean(axis=0) - predicted) / (error + noise**4)).max()))
    return Statement(
        id="ratio_variance",
        statement="Var(ρ) = (σ_y/T)² (1 − π)² (1 + S) to leading order",
        place="Eq. 21",
        published="identity",
        recomputed=f"largest deviation {worst:.1f} standard errors over all tokens",
        how=f"{DRAWS} simulated softmax updates each, σ_y/T = {noise:g}, V = {_listed(VOCABULARIES)}",
        agrees=worst < Z_LIMIT,
        numbers={"largest_z": worst},
    )


def remainder(root_seed: int) -> Statement:
    """Simulate a token with a flat and one with a concentrated rest, and see at which order κ²(1 − π)² misses."""
    rng, vocabulary = stream(root_seed, "theory", "remainder"), 50
    policies = {0.1: peaked_policy(0.1, vocabulary, flat=True), 0.9: peaked_policy(0.9, vocabulary, flat=False)}
    mean_shape = (1 / (vocabulary - 1) + 1) / 2
    misses = {}
    for noise in NOISES:
        kappa = softmax.effective_scale(noise, mean_shape)
        for probability, policy in policies.items():
            measured = simulated_ratios(policy, noise, rng)[:, 0].var()
            misses[noise, probability] = float(measured / softmax.model_variance(probability, kappa) - 1)
    expected = {0.1: (1 + 1 / (vocabulary - 1)) / (1 + mean_shape) - 1, 0.9: 2 / (1 + mean_shape) - 1}
    shown = "; ".join(f"κ ∝ {n:g}: {misses[n, 0.1]:+.2f} and {misses[n, 0.9]:+.2f}" for n in NOISES)
    # A miss of order kappa^3 would fall tenfold with each step of the noise.
    shrinks = all(abs(misses[NOISES[-1], p]) < 0.2 * abs(misses[NOISES[0], p]) for p in policies)
    return Statement(
        id="remainder_order",
        statement="σ²(π) = κ² (1 − π)² up to O(κ³), the variation of 1 + S(π) included",
        place="Eq. 7, 24, 26",
        published="remainder O(κ³)",
        recomputed=f"relative miss at π = 0.1 (flat rest) and 0.9 (one alternative): {shown}. "
        "It stays, so it is of order κ²; σ² = κ² (1 − π)² (1 + S(π)) / (1 + mean S) + O(κ³)",
        how=f"simulated softmax updates, V = {vocabulary}, mean S = {mean_shape:.2f}; "
        f"predicted {expected[0.1]:+.2f} and {expected[0.9]:+.2f} at every κ",
        agrees=shrinks,
        numbers={f"miss_pi{p}_noise{n:g}": value for (n, p), value in misses.items()},
    )


def band() -> Statement:
    """State the width of the band of Eq. 25 and that of its inner bounds."""
    mean_shape = 0.5
    lower, upper = (float(edge) for edge in softmax.published_band(0.0, 1.0))
    sharp_lower, sharp_upper = (float(edge) for edge in softmax.sharp_band(0.0, 1.0, mean_shape))
    return Statement(
        id="band",
        statement="κ² (1 − π)² / 2 ≤ σ²(π) ≤ 2 κ² (1 − π)²",
        place="Eq. 25",
        published=f"ends a factor {upper / lower:g} apart; called an exact bound up to a factor of two",
        recomputed=f"holds; the inner bounds are κ² (1 − π)² [1, 2] / (1 + mean S), a factor "
        f"{sharp_upper / sharp_lower:g} apart ([{sharp_lower:.2f}, {sharp_upper:.2f}] at mean S = {mean_shape:g})",
        how="1 + S lies in [1, 2], and κ² holds 1 + mean S",
        agrees=lower <= sharp_lower < sharp_upper <= upper,
        numbers={"published_ratio": upper / lower, "sharp_ratio": sharp_upper / sharp_lower},
    )


def mean_ratio(root_seed: int) -> Statement:
    """Compare the mean of simulated ratios with 1 and with the second-order expansion."""
    rng, noise, vocabulary = stream(root_seed, "theory", "mean ratio"), 0.2, 50
    numbers: dict[str, float] = {}
    for probability, flat in ((0.1, False), (0.5, True)):
        policy = peaked_policy(probability, vocabulary, flat)
        draws = simulated_ratios(policy, noise, rng)[:, 0]
        pairs = draws.reshape(2, -1).mean(axis=0)
        key = f"pi{probability:g}"
        numbers[f"{key}_simulated"] = float(pairs.mean() - 1)
        numbers[f"{key}_standard_error"] = float(pairs.std() / np.sqrt(len(pairs)))
        numbers[f"{key}_predicted"] = float(softmax.mean_ratio_excess(policy, noise)[0])
    shown = "; ".join(
        f"{numbers[f'{key}_simulated']:+.4f} ± {numbers[f'{key}_standard_error']:.4f} at π = {place} "
        f"(expansion {numbers[f'{key}_predicted']:+.4f})"
        for key, place in (("pi0.1", "0.1 with one alternative"), ("pi0.5", "0.5 with a flat rest"))
    )
    far = [abs(numbers[f"{k}_simulated"]) > Z_LIMIT * numbers[f"{k}_standard_error"] for k in ("pi0.1", "pi0.5")]
    return Statement(
        id="mean_ratio",
        statement="E[ρ | π] = 1",
        place="App. C.2, (M1)",
        published="1, by the log-normal model",
        recomputed=f"E[ρ | π] − 1 = {shown}: (σ_y/T)² (1 − π) [(1 − π) S − π] to second order",
        how=f"{DRAWS} simulated softmax updates (the model of App. C.1), σ_y/T = {noise:g}, V = {vocabulary}",
        agrees=not any(far),
        numbers=numbers,
    )


def entropies(root_seed: int) -> Statement:
    """Check the bounds of App. E on random policies, and that both ends are attained."""
    rng = stream(root_seed, "theory", "entropies")
    outside, gap = 0.0, 0.0
    for policy in random_policies(rng):
        low, high = entropy_bounds(policy, len(policy))
        value = _entropy(policy)
        outside = max(outside, float((low - value).max()), float((value - high).max()))
        end = entropy_bounds(policy[0], len(policy))
        extremes = [_entropy(peaked_policy(float(policy[0]), len(policy), flat)) for flat in (False, True)]
        gap = max(gap, *(abs(float(bound) - found) for bound, found in zip(end, extremes, strict=True)))
    return Statement(
        id="entropy_bounds",
        statement="H_min(π) ≤ H ≤ H_max(π), natural logarithm, V the size of the vocabulary",
        place="App. E",
        published="bounds",
        recomputed=f"largest excess {max(outside, 0):.0e}; both ends attained to {gap:.0e}",
        how=f"random policies, V = {_listed(VOCABULARIES)}; ends by one alternative and by a flat rest",
        agrees=outside < 1e-12 and gap < 1e-12,
        numbers={"largest_excess": outside, "largest_gap_at_ends": gap},
    )


def _entropy(policy: Array) -> float:
    kept = policy[policy > 0]
    return float(-(kept * np.log(kept)).sum())


def _listed(values: tuple[int, ...]) -> str:
    return ", ".join(str(value) for value in values)
