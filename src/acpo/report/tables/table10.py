"""Table 10: the p-values of every declared comparison, the paper's test and inference side by side."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from acpo.cells import cell_seeds
from acpo.report import published
from acpo.report.comparisons import Comparisons
from acpo.report.effects import detectable_block, effects_block
from acpo.report.grid import PANELS
from acpo.report.quantities import Points, PValue, Quantity, exact_p
from acpo.report.sources import Results
from acpo.report.table import Block, Group, Number, Panel, Row, Table
from acpo.sections import Family
from acpo.stats.families import Hypothesis
from acpo.stats.records import CHECKPOINTS_ONLY, Welch

INFERENCE = ("Paired", "Sign flips", "Holm")
MOMENTS: dict[str, tuple[str, int, Callable[[Welch], float | None]]] = {
    "SD treatment": ("treatment_sd", 2, lambda test: 100 * test.treatment_sd),
    "SD baseline": ("baseline_sd", 2, lambda test: 100 * test.baseline_sd),
    "n treatment": ("treatment_n", 0, lambda test: test.treatment_n),
    "n baseline": ("baseline_n", 0, lambda test: test.baseline_n),
    "t": ("t", 3, lambda test: test.t),
    "df": ("df", 2, lambda test: test.df),
}
"""Columns of the tests in full: name, decimals, value (standard deviations in points)."""


def build(results: Results) -> Table:
    """Build Table 10 from `statistics/statistics.json`, for every family, suite and benchmark of the study.

    Of each there are a block of p-values (paper mode for each training seed, inference mode, the paper's own), two of
    paper mode's tests in full, one of effects with intervals, and one of what such comparisons can find. Source:
    Table 10, App. M, Eq. 60.
    """
    view = _Tests(results)
    blocks = tuple(
        block
        for name, family in results.study.statistics.families.items()
        for suite, benchmark in dict.fromkeys((h.treatment.suite, h.benchmark) for h in view.declared(family))
        for block in view.blocks(name, family, suite, benchmark)
    )
    caption = "p-values of the declared comparisons" if blocks else "The study declares no comparison within its grid"
    return Table("table10", "Table 10", caption, blocks)


class _Tests(Comparisons):
    """The sub-tables of p-values and of paper mode's tests in full."""

    def blocks(self, name: str, family: Family, suite: str, benchmark: str) -> Iterator[Block]:
        chosen = [h for h in self.declared(family) if (h.treatment.suite, h.benchmark) == (suite, benchmark)]
        labels = f"{self.study.suites[suite].label}, {self.study.suites[suite].benchmarks[benchmark].label}"
        yield self._p_values(name, f"{labels}: {family.label}, p", chosen)
        for kind, label in PANELS.items():
            yield self._tests(f"{labels}: paper mode's tests in full, {label[0].lower()}{label[1:]}", kind, chosen)
        yield effects_block(self, f"{labels}: effects", chosen)
        yield detectable_block(self, f"{labels}: minimum detectable differences", chosen)

    def _p_values(self, family: str, title: str, chosen: list[Hypothesis]) -> Block:
        seeds = cell_seeds(self.study, chosen[0].treatment)
        theirs = any(published.p_value(h.treatment, h.baseline.method, h.benchmark) for h in chosen)
        groups = (
            *([Group("Published", ("p",))] if theirs else []),
            Group("Difference", ("points",)),
            Group("Paper mode: Welch, one-tailed", tuple(f"seed {seed}" for seed in seeds)),
            Group("Inference mode, two-tailed", INFERENCE),
        )
        panels = self.panels(chosen, lambda h, kind: self._row(family, h, kind, seeds, theirs))
        return Block(title, self.corner(chosen), groups, panels, self._p_notes(family, chosen, theirs))

    def _row(self, family: str, h: Hypothesis, kind: str, seeds: list[int], theirs: bool) -> Iterator[Number]:
        found = self.comparison(h, kind)
        where = self.source(h, kind)
        inference = found.inference if found else None

        def p(name: str, path: str, value: float | None) -> PValue:
            made = PValue(str(h.treatment), f"{where} {path}", kind, value, item=self.item(h, name))
            return replace(made, best=value is not None and value < self.study.statistics.alpha)

        if theirs:
            yield self._published(h)
        difference = inference.difference if inference else None
        item = self.item(h, "difference")
        yield Points(str(h.treatment), f"{where} inference.difference", kind, difference, item=item)
        tests = {test.treatment_seed: test for test in found.paper} if found else {}
        for seed in seeds:
            test = tests.get(seed)
            yield p(f"welch_p_seed{seed}", f"paper, training seed {seed}, p", test.p if test else None)
        yield p("paired_p", "inference.p", inference.p if inference else None)
        yield p("sign_flip_p", "inference.permutation_p", inference.permutation_p if inference else None)
        adjusted = found.adjusted.get(family) if found else None
        yield p(f"holm_{family}", f"adjusted.{family}.holm", adjusted.holm if adjusted else None)

    def _published(self, h: Hypothesis) -> Number:
        number = published.p_value(h.treatment, h.baseline.method, h.benchmark)
        if number is None:
            item = self.item(h, "published_p")
            return Number(str(h.treatment), "no published counterpart", "published", None, item=item)
        return replace(number, best=number.value is not None and number.value < self.study.statistics.alpha)

    def _tests(self, title: str, kind: str, chosen: list[Hypothesis]) -> Block:
        groups = (Group("Welch's t-test (Eq. 60); SD of the repeat-means in points", (*MOMENTS, "p")),)
        panels = tuple(
            Panel(
                f"{self.study.regimes[regime].label}, training seed {seed}",
                tuple(
                    Row(self.baseline(h), tuple(self._moments(h, kind, seed)))
                    for h in chosen
                    if h.treatment.regime == regime
                ),
            )
            for regime in dict.fromkeys(h.treatment.regime or "" for h in chosen)
            for seed in cell_seeds(self.study, chosen[0].treatment)
        )
        notes = (
            "One test for each training seed of the treatment against the baseline's same seed, or against its only "
            "one; n: repeat-means a side, one for each of the k samples of a question. Bold: p < "
            f"{self.study.statistics.alpha:g}.",
            *self._gap_notes(kind, chosen),
        )
        return Block(title, self.corner(chosen), groups, panels, notes)

    def _moments(self, h: Hypothesis, kind: str, seed: int) -> Iterator[Number]:
        found = self.comparison(h, kind)
        test = next((test for test in found.paper if test.treatment_seed == seed), None) if found else None
        where = f"{self.source(h, kind)} paper, training seed {seed},"
        for name, decimals, value in MOMENTS.values():
            item = self.item(h, f"welch_{name}_seed{seed}")
            yield Quantity(
                str(h.treatment), f"{where} {name}", kind, value(test) if test else None, item=item, decimals=decimals
            )
        p = test.p if test else None
        bold = p is not None and p < self.study.statistics.alpha
        item = self.item(h, f"welch_p_seed{seed}")
        yield PValue(str(h.treatment), f"{where} p", kind, p, best=bold, item=item)

    def _p_notes(self, family: str, chosen: list[Hypothesis], theirs: bool) -> tuple[str, ...]:
        alpha = self.study.statistics.alpha
        found = [item for h in chosen for kind in PANELS if (item := self.comparison(h, kind))]
        sizes = {(item.inference.questions, item.inference.k) for item in found}
        sized = " or ".join(f"{questions} questions, k = {k}" for questions, k in sorted(sizes)) or "no comparison yet"
        notes = [
            f"Difference: treatment minus baseline, mean over training seeds ({sized}).",
            "Paper mode: Welch's one-tailed t-test on the k repeat-means of one checkpoint a method, treatment better; "
            "it knows nothing of other questions or other training seeds.",
            "Inference mode. Paired: by question, and by training seed where both have the same; standard errors cross "
            f"questions and seeds. Sign flips: of the questions' differences, about these checkpoints{self._floor()}. "
            "Holm: Paired, "
            f"corrected together with the others of the family {family}{self._family_size(family)}.",
            f"Bold: p < {alpha:g}, unrounded. In paper mode it speaks for {self.treatment(chosen)} on that training "
            "seed, whatever the sign of the difference, which is of the mean over seeds; in inference mode that sign "
            "says in favour of which side. With few training seeds a Paired p below 0.001 says no more than that.",
        ]
        if any(item.inference.note for item in found):
            notes.append(f"With one training seed a side there is {CHECKPOINTS_ONLY}.")
        if theirs:
            table = published.table("table10")
            notes.append(f"Published: {table.place}, as printed there; one checkpoint a method.{self._dashes(chosen)}")
        else:
            suite = self.study.suites[chosen[0].treatment.suite].label
            notes.append(f"The paper's Table 10 has no counterpart of {suite}.")
        notes += [note for kind in PANELS for note in self._gap_notes(kind, chosen)]
        return tuple(dict.fromkeys(notes))

    def _floor(self) -> str:
        """Say what the least p of random sign flips is: both signs of the most extreme, which counts itself."""
        if self.statistics is None:
            return ""
        flips = int(self.statistics.settings["resamples"])
        return f", never below {exact_p(2 / (flips + 1))}, the least that {flips} random flips can give"

    def _dashes(self, chosen: list[Hypothesis]) -> str:
        theirs = [published.p_value(h.treatment, h.baseline.method, h.benchmark) for h in chosen]
        empty = sum(number is not None and number.value is None for number in theirs)
        return f" The paper prints a dash for {empty} of them." if empty else ""

    def _family_size(self, family: str) -> str:
        sizes = {item.hypotheses for item in (self.statistics.families[family] if self.statistics else [])}
        return f" ({' or '.join(map(str, sorted(sizes)))} hypotheses)" if sizes else ""

    def _gap_notes(self, kind: str, chosen: list[Hypothesis]) -> list[str]:
        notes = self.missing_notes(kind, chosen)
        if self.statistics is None:
            return notes
        pairs = [(h, self.comparison(h, kind)) for h in chosen]
        seeds = set(cell_seeds(self.study, chosen[0].treatment))
        short = [str(h) for h, found in pairs if found and {test.treatment_seed for test in found.paper} != seeds]
        flat = [
            f"{h}, training seed {test.treatment_seed}"
            for h, found in pairs
            for test in (found.paper if found else [])
            if test.p is None
        ]
        return [
            *notes,
            *([f"–, {kind} checkpoint: undefined, neither side has any spread: {'; '.join(flat)}."] if flat else []),
            *([f"–, {kind} checkpoint: not every training seed has a test: {'; '.join(short)}."] if short else []),
        ]
