"""The checks of the ledger, by name. Each takes the evidence and its own arguments, and returns a finding.

A check whose inputs are missing raises `MissingEvidenceError`.
"""

from collections.abc import Callable

from acpo.audit.checks import clipping, configuration, equations, probes, scores, theory, timing, training
from acpo.audit.checks.finding import Finding

CHECKS: dict[str, Callable[..., Finding]] = {
    check.__name__: check
    for check in (
        *(scores.acpo_leads, scores.heuristics_gain, scores.average_rank, scores.cross_regime, scores.clip_ablation),
        *(scores.best_bins, scores.sensitivity, scores.welch_tests),
        *(training.ratio_spread_by_probability, training.ratio_spread_by_regime, training.mean_ratio),
        *(clipping.uneven_clipping, clipping.clip_levels, clipping.acpo_clips_little, clipping.even_clipping),
        *(clipping.steady_gradients, clipping.average_width, clipping.widths_follow_spread, training.updates_a_rollout),
        *(equations.grpo_objective, equations.clipped_gradient, equations.acpo_objective, equations.advantages),
        *(equations.logit_gradient, equations.welch_statistic),
        *(configuration.common_settings, configuration.method_settings, theory.derivation),
        *(probes.variance_exponent, probes.variance_in_band, probes.entropy_correlation, probes.clipped_region),
        probes.entropy_within_bounds,
        *(probes.dominance_reversal, probes.gradient_order, probes.gradient_norm, probes.gradient_rotation),
        probes.gradient_angle,
        *(timing.acpo_overhead, timing.ar_lopti_overhead, timing.high_entropy_overhead),
    )
}
