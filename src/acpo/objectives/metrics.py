"""What is logged at every update, gathered inside the loss."""

from dataclasses import dataclass

import torch
from torch import Tensor

from acpo.objectives.batch import TokenBatch
from acpo.objectives.binning import bin_sums
from acpo.objectives.clipping import TokenTerms

LOG_BINS = 5  # logged bins are always these, whatever the number of bins ACPO clips with
_COLUMNS = (
    *("count", "excess", "excess_squared", "clip_low", "clip_high", "clipped_low", "clipped_high"),
    *("dual_clipped", "coefficient", "coefficient_squared", "kl", "entropy", "selected"),
)


@dataclass(frozen=True)
class UpdateMetrics:
    """Sums and maxima over response tokens, so that metrics of disjoint micro-batches add up exactly.

    All response tokens count, also those a selection method leaves out. Bins are five equal-width bins of the
    behavior probability pi_old.

    Args:
        bins: (LOG_BINS, quantities) float64 sums per bin.
        responses: scalar, responses with at least one token.
        maxima: (2,) largest ratio and largest upper clip width; 0 without tokens.
    """

    bins: Tensor
    responses: Tensor
    maxima: Tensor

    def __add__(self, other: "UpdateMetrics") -> "UpdateMetrics":
        """Metrics of the union of two disjoint sets of responses."""
        return UpdateMetrics(
            self.bins + other.bins, self.responses + other.responses, torch.maximum(self.maxima, other.maxima)
        )

    def summary(self) -> dict[str, float]:
        """Flat numbers to log; a mean over no token is NaN, a count 0.

        Overall: `tokens`, `responses`; means over tokens `approx_kl` (log pi_old - log pi), `clip_fraction`
        (sign-aware), `dual_clip_fraction`, `entropy` (nats), `selected_fraction`, `ratio_mean`,
        `clip_width_mean` (upper width); `ratio_max`, `clip_width_max`. For b = 1..5 `bin{b}/count`,
        `ratio_mean`, `ratio_std` (ddof 0), `clip_width_low`, `clip_width_high`, `clip_fraction`,
        `clip_low_fraction`, `clip_high_fraction`, `gradient_std` (std, ddof 0, of d loss / d log_prob of a
        token before aggregation: -rho A where the gate is open, 0 where it is closed or the token is not
        selected; -clip(rho) A for CISPO; with the reweighted advantage for AR-Lopti).
        """
        responses, largest_ratio, largest_width = torch.cat([self.responses.view(1), self.maxima]).tolist()
        bins: list[list[float]] = self.bins.tolist()
        total = dict(zip(_COLUMNS, (sum(column) for column in zip(*bins, strict=True)), strict=True))
        summary = {"tokens": total["count"], "responses": responses, **_overall(total)}
        summary["ratio_max"] = largest_ratio if total["count"] else torch.nan
        summary["clip_width_max"] = largest_width if total["count"] else torch.nan
        for number, row in enumerate(bins, start=1):
            values = _bin(dict(zip(_COLUMNS, row, strict=True)))
            summary |= {f"bin{number}/{key}": value for key, value in values.items()}
        return summary


@torch.no_grad()
def measure(batch: TokenBatch, terms: TokenTerms) -> UpdateMetrics:
    """Metrics of one micro-batch.

    Args:
        batch: the micro-batch.
        terms: its token losses, as the method computed them.

    Returns:
        Sums and maxima over its response tokens.
    """
    excess = terms.ratio.double() - 1
    coefficient = terms.coefficient.double()
    columns = [
        *(batch.mask, excess, excess.square(), terms.clip_low, terms.clip_high),
        *(terms.clipped_low, terms.clipped_high, terms.dual_clipped),
        *(coefficient, coefficient.square(), -terms.log_ratio, batch.token_entropy, terms.selected),
    ]
    return UpdateMetrics(
        bins=bin_sums(batch.behavior_bins(LOG_BINS), columns, LOG_BINS),
        responses=(batch.length > 0).sum().double(),
        maxima=torch.stack([_largest(terms.ratio, batch.mask), _largest(terms.clip_high, batch.mask)]),
    )


def _largest(value: Tensor, mask: Tensor) -> Tensor:
    kept = torch.where(mask, value, 0.0).double()
    return kept.amax() if kept.numel() else kept.sum()


def _overall(total: dict[str, float]) -> dict[str, float]:
    mean = {name: _ratio(value, total["count"]) for name, value in total.items()}
    return {
        "approx_kl": mean["kl"],
        "clip_fraction": mean["clipped_low"] + mean["clipped_high"],
        "dual_clip_fraction": mean["dual_clipped"],
        "entropy": mean["entropy"],
        "selected_fraction": mean["selected"],
        "ratio_mean": 1 + mean["excess"],
        "clip_width_mean": mean["clip_high"],
    }


def _bin(sums: dict[str, float]) -> dict[str, float]:
    mean = {name: _ratio(value, sums["count"]) for name, value in sums.items()}
    return {
        "count": sums["count"],
        "ratio_mean": 1 + mean["excess"],
        "ratio_std": _std(mean["excess"], mean["excess_squared"]),
        "clip_width_low": mean["clip_low"],
        "clip_width_high": mean["clip_high"],
        "clip_fraction": mean["clipped_low"] + mean["clipped_high"],
        "clip_low_fraction": mean["clipped_low"],
        "clip_high_fraction": mean["clipped_high"],
        "gradient_std": _std(mean["coefficient"], mean["coefficient_squared"]),
    }


def _ratio(value: float, count: float) -> float:
    return value / count if count else torch.nan


def _std(mean: float, mean_of_squares: float) -> float:
    # A NaN first argument of max survives, so an empty bin stays NaN.
    return float(max(mean_of_squares - mean * mean, 0.0) ** 0.5)
