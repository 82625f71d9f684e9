"""The declared comparisons of a study as rows of sub-tables, and the notes on those that are missing."""

from collections.abc import Callable, Iterable

from acpo.cells import BASE
from acpo.report.grid import PANELS
from acpo.report.sources import STATISTICS, Results
from acpo.report.table import Number, Panel, Row
from acpo.sections import Family
from acpo.stats.families import Hypothesis, hypotheses
from acpo.stats.records import ComparisonResult


class Comparisons:
    """A study's comparisons, by what they compare. `chosen` is always of one treatment, suite and benchmark."""

    def __init__(self, results: Results):
        """Read `statistics/statistics.json`, where it has been made.

        Raises:
            StoreError: the file is damaged.
        """
        self.study = results.study
        self.statistics = results.statistics()
        self._found = {
            (item.treatment_cell, item.baseline_cell, item.benchmark, item.checkpoint): item
            for item in (self.statistics.comparisons if self.statistics else [])
        }

    def declared(self, family: Family) -> list[Hypothesis]:
        """List a family's hypotheses within the grid."""
        return hypotheses(self.study, family)

    def comparison(self, hypothesis: Hypothesis, kind: str) -> ComparisonResult | None:
        """Return what was found at a kind of checkpoint, None where it was not compared."""
        where = (str(hypothesis.treatment), str(hypothesis.baseline), hypothesis.benchmark, kind)
        return self._found.get(where)

    def panels(
        self, chosen: list[Hypothesis], numbers: Callable[[Hypothesis, str], Iterable[Number]]
    ) -> tuple[Panel, ...]:
        """Make a panel of every kind of checkpoint and regime, with a row a baseline of `numbers(hypothesis, kind)`."""
        return tuple(
            Panel(
                f"{self.study.regimes[regime].label}, {label[0].lower()}{label[1:]}",
                tuple(Row(self.baseline(h), tuple(numbers(h, kind))) for h in chosen if h.treatment.regime == regime),
            )
            for kind, label in PANELS.items()
            for regime in dict.fromkeys(h.treatment.regime or "" for h in chosen)
        )

    def source(self, hypothesis: Hypothesis, kind: str, part: str = "comparisons") -> str:
        """Say where in the statistics a number is."""
        return f"results/{STATISTICS} {part}, {hypothesis}, {kind}:"

    def item(self, hypothesis: Hypothesis, name: str) -> str:
        """Name a number of a comparison, as its macro is called."""
        return f"{hypothesis.benchmark}/{hypothesis.baseline.method}/{name}"

    def baseline(self, hypothesis: Hypothesis) -> str:
        """Return the baseline's name in print."""
        method = hypothesis.baseline.method
        return "Base Model" if method == BASE else self.study.methods[method].label

    def treatment(self, chosen: list[Hypothesis]) -> str:
        """Return the treatment's name in print."""
        return self.study.methods[chosen[0].treatment.method].label

    def corner(self, chosen: list[Hypothesis]) -> str:
        """Head the column of baselines."""
        return f"{self.treatment(chosen)} against"

    def missing_notes(self, kind: str, chosen: list[Hypothesis]) -> list[str]:
        """Say which comparisons were not made."""
        if self.statistics is None:
            return ["–: no statistics yet: snakemake --cores 2 statistics"]
        missing = [str(h) for h in chosen if self.comparison(h, kind) is None]
        return [f"–, {kind} checkpoint: not compared: {'; '.join(missing)}."] if missing else []
