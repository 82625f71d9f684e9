"""Numbers of a table that are no score: with a unit of their own, a p-value, or as the paper prints it."""

from dataclasses import dataclass

from acpo.report.table import MISSING, Number, percent

SMALLEST_P = 1e-300


def exact_p(p: float) -> str:
    """Print a p-value, never rounded to nothing: four decimals, below 0.001 two digits and a power of ten."""
    if p < SMALLEST_P:
        return f"<{SMALLEST_P:.0e}"
    return f"{p:.4f}" if p >= 0.001 else f"{p:.1e}"


@dataclass(frozen=True)
class Quantity(Number):
    """A number that is no percentage: seconds, a statistic, a count; with its decimals."""

    decimals: int = 0

    @property
    def text(self) -> str:
        """The number as printed, or a dash where it is missing."""
        return MISSING if self.value is None else f"{self.value:.{self.decimals}f}".replace("-", "−")

    @property
    def spread_text(self) -> str:
        """The spread as printed, empty where none is known."""
        return "" if self.value is None or self.spread is None else f"{self.spread:.{self.decimals}f}"


@dataclass(frozen=True)
class Points(Number):
    """A difference of two fractions, printed in percentage points with its sign."""

    @property
    def text(self) -> str:
        """The difference as printed, or a dash where it is missing."""
        if self.value is None:
            return MISSING
        return f"{'−' if self.value < 0 else '+'}{percent(abs(self.value))}"


@dataclass(frozen=True)
class PValue(Number):
    """A p-value, printed by `exact_p`."""

    @property
    def text(self) -> str:
        """The p-value as printed, or a dash where there is none."""
        return MISSING if self.value is None else exact_p(self.value)


@dataclass(frozen=True)
class Printed(Number):
    """A number of the paper, exactly as printed there; `value` is what it says, None where the paper has a dash."""

    printed: str = ""

    @property
    def text(self) -> str:
        """The paper's own characters."""
        return self.printed or MISSING

    @property
    def spread_text(self) -> str:
        """Empty: a published spread is part of the printed number."""
        return ""

    @property
    def trace(self) -> str:
        """The place in the transcription."""
        return self.source
