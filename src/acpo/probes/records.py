"""What probes find: `results/probes/<cell>/seed<N>/tokens.json` and `gradients.json`.

Where data do not suffice a value is None and a `note` says why; no number stands in for it.
"""

from typing import Literal

from acpo.results import Provenance, Record


class Estimate(Record):
    """A number with its 95 % interval; `note` says what is missing where one of them is None."""

    value: float | None
    low: float | None = None
    high: float | None = None
    note: str = ""


class RatioBin(Record):
    """The importance ratio of the tokens whose behavior probability is in one bin.

    `quantiles` are of the ratio, by level; empty where the bin has no token.
    """

    low: float
    high: float
    tokens: int
    questions: int
    mean: float | None
    std: Estimate
    quantiles: dict[str, float]


class UpdateDegree(Record):
    """The off-policy degree at one update of a rollout, counted from 1 (Eq. 6)."""

    update: int
    tokens: int
    degree: float | None


class Dispersion(Record):
    """Spread of the ratio by behavior probability (Fig. 2a), and the mean variance over tokens (Eq. 6)."""

    bins: list[RatioBin]
    degree: float | None
    by_update: list[UpdateDegree]


class FitBin(Record):
    """One bin of the exponent's fit.

    `distance` is the root mean square of its tokens' 1 - pi, `fitted` the variance that the law predicts, `note` why a
    bin is left out.
    """

    low: float
    high: float
    tokens: int
    variance: float | None
    distance: float | None
    fitted: float | None
    used: bool
    note: str = ""


class ExponentFit(Record):
    """The fit of log Var(rho) on log(1 - pi), weighted by tokens (Fig. 4), and the band of Eq. 25.

    Args:
        exponent: With its interval of 1.96 standard errors.
        standard_error: From the residuals of the fit.
        coefficient: Var(rho) at 1 - pi = 1 on the line.
        r_squared: Weighted.
        exponent_at_centres: The same fit with every bin at its centre.
        kappa_squared: Mean Var(rho) over mean (1 - pi)^2 (Eq. 50): the scale where the exponent is held at 2.
        mean_shape: A lower bound of the mean of S, from the entropies; None without enough tokens.
        band: The sharp band of Eq. 25 over kappa^2 (1 - pi)^2 at that mean of S.
        spread: Largest over smallest Var(rho) / (1 - pi)^2 of the bins used; the softmax model allows 2.
        bins_in_band: How many of the bins used are inside the band.
    """

    bins: list[FitBin]
    exponent: Estimate
    standard_error: float | None
    coefficient: float | None
    r_squared: float | None
    exponent_at_centres: Estimate
    kappa_squared: float | None
    mean_shape: float | None
    band: tuple[float, float] | None
    spread: float | None
    bins_in_band: int | None


class Stratum(Record):
    """Clipping among the tokens of one bin of behavior probability.

    `low_entropy` and `high_entropy` are the clip rates of its tokens below and above the bin's median entropy.
    """

    low: float
    high: float
    tokens: int
    clipped: int | None
    rate: Estimate
    low_entropy: Estimate
    high_entropy: Estimate


class Quadrant(Record):
    """Tokens by current probability and entropy, split at 0.5 and at half of the largest entropy found."""

    probability: Literal["below 0.5", "0.5 and above"]
    entropy: Literal["lower half", "upper half"]
    tokens: int
    clipped: int | None


class Bounds(Record):
    """How many tokens lie outside the entropy bounds of App. E by more than `tolerance`, and by how much at most.

    `vocabulary` None: the upper bound is unknown, and `above` and `largest_above` are None.
    """

    vocabulary: int | None
    tolerance: float
    below: int
    largest_below: float
    above: int | None
    largest_above: float | None


class EntropyMap(Record):
    """Token probability against entropy, both of the current policy, with clipped tokens (Fig. 5).

    Args:
        entropy_limit: Upper end of the map's entropy axis: the largest entropy found, nats.
        counts: Tokens by probability (rows, equal bins on [0, 1]) and entropy (columns, equal bins up to the limit).
        clipped_counts: Of those, the clipped ones; None where the clip rule is unknown.
        kept_points: (probability, entropy) of a random draw of tokens that were not clipped.
        clipped_points: Of the clipped ones.
        clip_rule: What decided which tokens are clipped.
    """

    entropy_limit: float
    counts: list[list[int]]
    clipped_counts: list[list[int]] | None
    kept_points: list[tuple[float, float]]
    clipped_points: list[tuple[float, float]]
    clip_rule: str
    strata: list[Stratum]
    quadrants: list[Quadrant]
    bounds: Bounds


class TokenSection(Record):
    """All token probes over one set of tokens."""

    tokens: int
    questions: int
    updates: int
    dispersion: Dispersion
    exponent: ExponentFit
    entropy: EntropyMap


class BinDynamics(Record):
    """Clipping and gradients of one probability bin over training: token-weighted, and over rollouts (App. K)."""

    low: float
    high: float
    tokens: int
    clip_fraction: Estimate
    gradient_std: Estimate


class ClipDynamics(Record):
    """One entry a bin; empty with a note where there are no metrics."""

    bins: list[BinDynamics]
    note: str = ""


class TokenProbe(Record):
    """The whole file: all rollouts together, each by itself, and the dynamics over training."""

    schema_version: Literal[1] = 1
    name: str
    pooled: TokenSection
    rollouts: dict[int, TokenSection]
    clip_dynamics: ClipDynamics
    provenance: Provenance


class MatrixAngles(Record):
    """Mean principal angles of one projection matrix's gradient, in degrees (App. D).

    `rank` is the k that was used: as wanted, or below half of the shorter side. `split_half_angle` lies between the
    gradients of the two halves of the responses: angles of this size are noise.
    """

    name: str
    rows: int
    columns: int
    rank: int
    angle: float
    split_half_angle: float


class VariantGradient(Record):
    """The gradient of one variant; `norm_percent` and angles are against the reference variant.

    `tokens` are those that it is made from. A matrix whose gradient is zero has no angle and is not listed.
    """

    name: str
    policy: str
    denominator: Literal["all", "selected"]
    tokens: int
    norm: float
    norm_percent: float | None
    cosine: float | None
    matrices: list[MatrixAngles]


class DominancePoint(Record):
    """Gradients of low- and of high-probability tokens after some updates from one rollout (Fig. 2b).

    `updates` is the off-policy degree: the measured update would be the last of so many. `ratio_std` is that of all
    measured tokens.
    """

    updates: int
    ratio_std: float
    gradients: list[VariantGradient]


class GradientReport(Record):
    """`results/probes/<cell>/seed<k>/gradients.json`.

    `random_angle` is the mean principal angle of unrelated subspaces of the same shapes; `additivity` the relative
    residual of g(A>0) + g(A<0) = g.
    """

    schema_version: Literal[1] = 1
    name: str
    responses: int
    rank: int
    reference: str
    variants: list[VariantGradient]
    random_angle: float | None
    additivity: float | None
    dominance: list[DominancePoint]
    provenance: Provenance


class DriftRecord(Record):
    """`drift.json`: responses of one policy, and that policy after some updates on other responses of its own.

    `policies` has checkpoint folders by off-policy degree: 1 is the behavior policy, u the one after u - 1 updates.
    """

    schema_version: Literal[1] = 1
    run: str
    policies: dict[int, str]
    tokens: str
    provenance: Provenance
