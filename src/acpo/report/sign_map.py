"""The sign map of the theory as a figure: where high-probability tokens dominate the model's expected gradient."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from acpo.report.style import COLOURS, Drawing

HATCH = "////"


def draw(signs: pd.DataFrame) -> Drawing:
    """Draw two slices of the map for every pair of clip widths: coupling without noise, noise at constant coupling.

    Args:
        signs: From `acpo.theory.sign_map.sign_map`.
    """
    widths = list(signs[["clip_high", "clip_low"]].drop_duplicates().itertuples(index=False, name=None))
    figure = Figure(figsize=(0.6 + 2.6 * len(widths), 5.4), layout="constrained")
    grid = figure.subplots(2, len(widths), sharex=True, sharey="row", squeeze=False)
    for column, (high, low) in enumerate(widths):
        part = signs[(signs["clip_high"] == high) & (signs["clip_low"] == low)]
        _shade(grid[0][column], part[part["correlation"] == part["correlation"].max()], "exponent")
        _shade(grid[1][column], part[part["exponent"] == 0], "correlation")
        grid[0][column].set_title(f"$\\epsilon_h$ = {high:g}, $\\epsilon_l$ = {low:g}")
        grid[1][column].set(xlabel="Off-policy scale $\\kappa$", yscale="log")
    grid[0][0].set_ylabel("Exponent $m$ of $\\mu = (1-\\pi)^{-m}$")
    grid[1][0].set_ylabel("corr(A, u) at $m = 0$")
    shades = [
        Patch(facecolor="white", edgecolor="black", label="D > 0: low-probability tokens lead"),
        Patch(facecolor=_tint(), edgecolor="black", hatch=HATCH, label="D < 0: high-probability tokens lead"),
    ]
    figure.legend(handles=shades, loc="outside upper center", ncols=2)
    return Drawing("sign_map", "Who dominates in the closed form", _caption(widths), _alt(widths), figure)


def _shade(axes: Axes, part: pd.DataFrame, vertical: str) -> None:
    balance = part["difference"] / (part["low"].abs() + part["high"].abs())
    table = part.assign(balance=balance).pivot(index=vertical, columns="kappa", values="balance")
    x, y, z = table.columns.to_numpy(float), table.index.to_numpy(float), table.to_numpy()
    # Ties (m = 3 near on-policy) stay on the white side: a shade says that high-probability tokens lead.
    axes.contourf(x, y, z, levels=[-1.01, -1e-9, 1.01], colors=[_tint(), "white"], hatches=[HATCH, None])
    if (z < -1e-9).any():
        axes.contour(x, y, z, levels=[-1e-9], colors="black", linewidths=1.4, linestyles="solid")
    axes.set_xscale("log")


def _tint() -> str:
    return COLOURS[6]


def _caption(widths: Sequence[tuple[float, float]]) -> str:
    pairs = ", ".join(f"({high:g}, {low:g})" for high, low in widths)
    return (
        "Sign of D, the mean of E[G|π] over tokens with π in [0, 0.2] minus that over [0.8, 1), uniform densities, "
        f"log-normal ratio with σ = κ(1 − π), clip widths (ε_h, ε_l) = {pairs}. Top: coupling μ = (1 − π)^−m without "
        "noise; m = 0 is the paper's representative setup. Bottom: constant μ with coupling noise, by the correlation "
        "of advantage and log-ratio; 1 is the paper's noiseless limit. Black line: D = 0. D compares signed means: "
        "with noise it is negative almost only where the mean of the low-probability tokens is itself below zero."
    )


def _alt(widths: Sequence[tuple[float, float]]) -> str:
    return (
        f"Two rows of {len(widths)} maps over the off-policy scale on a logarithmic axis. Hatched regions, where "
        "high-probability tokens lead, lie at large exponents in the top row and at small correlations in the bottom "
        "row; the line of exponent 0 and correlation 1 is never hatched where the upper clip width is at least the "
        "lower one."
    )
