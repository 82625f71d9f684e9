"""How figures look and are saved: readable in grey and for the colour-blind, the same bytes each time."""

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from matplotlib.typing import RcKeyType

from acpo.store import atomic_file

# Okabe and Ito's colours that hold on white (their yellow does not), ordered to differ in lightness too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#000000", "#E69F00", "#CC79A7", "#56B4E9")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5)), (0, (3, 1.2)))
HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "++++", "----")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")

_SETTINGS: dict[RcKeyType, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9,
    "legend.fontsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#d9d9d9",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "lines.markersize": 4,
    "legend.frameon": False,
    "pdf.fonttype": 42,
    "svg.hashsalt": "acpo",
}
_METADATA: dict[str, dict[str, Any]] = {
    "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
}


@dataclass(frozen=True)
class Drawing:
    """A finished figure: `stem` names its files, `alt` describes it to who cannot see it."""

    stem: str
    title: str
    caption: str
    alt: str
    figure: Figure


@contextmanager
def look() -> Iterator[None]:
    """Draw with the house's settings, whatever the machine's matplotlib defaults are."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        yield


def line_style(index: int) -> dict[str, Any]:
    """Return colour, dash and marker of the method at a place in the grid, unlike its neighbours'."""
    return {
        "color": COLOURS[index % len(COLOURS)],
        "linestyle": DASHES[index % len(DASHES)],
        "marker": MARKERS[index % len(MARKERS)],
    }


def bar_style(index: int) -> dict[str, Any]:
    """Return a pale colour with a hatch for the bars of the method at a place in the grid, told apart in grey too."""
    red, green, blue = to_rgb(COLOURS[index % len(COLOURS)])
    return {
        "facecolor": tuple(0.45 * part + 0.55 for part in (red, green, blue)),
        "edgecolor": "#222222",
        "hatch": HATCHES[index % len(HATCHES)],
        "linewidth": 0.7,
    }


def method_styles(methods: Sequence[str], extra: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
    """Give each method of the grid its style, the same in every figure; `extra` ones come after."""
    names = dict.fromkeys([*methods, *extra])
    return {name: line_style(index) for index, name in enumerate(names)}


def draw_curves(
    axes: Axes,
    curves: Mapping[str, pd.DataFrame],
    labels: Mapping[str, str],
    styles: Mapping[str, dict[str, Any]],
) -> None:
    """Draw one line with its band per method, and say so where there is nothing to draw.

    Args:
        axes: The panel.
        curves: By method, the columns `mean`, `low`, `high` over rollouts (see `series.over_seeds`).
        labels: What the legend calls each method.
        styles: How each method's line looks.
    """
    for method, curve in curves.items():
        if not curve.empty:
            axes.plot(curve.index, curve["mean"], label=labels[method], **styles[method])
            colour = styles[method]["color"]
            axes.fill_between(curve.index, curve["low"], curve["high"], color=colour, alpha=0.13, lw=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=5, steps=[1, 2, 5, 10]))
    if all(curve.empty for curve in curves.values()):
        say_empty(axes)


def say_empty(axes: Axes) -> None:
    """Say in a panel that there is nothing to draw."""
    axes.tick_params(bottom=False, labelbottom=False)
    axes.text(0.5, 0.5, "no data", ha="center", va="center", transform=axes.transAxes, color="#555555")


def gap_note(gaps: Sequence[str]) -> str:
    """Say in a caption which runs are not in the figure; empty when all are."""
    return f" Missing runs: {', '.join(gaps)}." if gaps else ""


def shared_legend(figure: Figure, axes: Sequence[Axes], columns: int) -> None:
    """Put one legend above all panels, naming each line once."""
    entries: dict[str, Any] = {}
    for panel in axes:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    if entries:
        figure.legend(entries.values(), entries.keys(), loc="outside upper center", ncols=columns, handlelength=3.2)


def encode(drawing: Drawing, ending: str) -> bytes:
    """Return a drawing as `pdf`, `png` or `svg`, the same bytes for the same drawing."""
    buffer = io.BytesIO()
    with look():
        drawing.figure.savefig(buffer, format=ending, dpi=200, metadata=_METADATA[ending])
    return buffer.getvalue()


def save(drawing: Drawing, directory: Path) -> list[Path]:
    """Write a drawing as PDF and PNG, atomically, and return the two paths.

    Raises:
        StoreError: a file cannot be written.
    """
    paths = [directory / f"{drawing.stem}.{ending}" for ending in ("pdf", "png")]
    for path in paths:
        content = encode(drawing, path.suffix[1:])
        with atomic_file(path) as temporary:
            temporary.write_bytes(content)
    return paths
