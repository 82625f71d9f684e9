"""Which comparisons a study declares, and their correction together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from acpo.cells import BASE, Cell
from acpo.config import Study
from acpo.sections import Family
from acpo.stats.multiplicity import adjust
from acpo.stats.records import ComparisonResult, FamilyResult


@dataclass(frozen=True)
class Hypothesis:
    """A treatment against a baseline on one benchmark."""

    treatment: Cell
    baseline: Cell
    benchmark: str

    def __str__(self) -> str:
        return f"{self.treatment} against {self.baseline} on {self.benchmark}"


def hypotheses(study: Study, family: Family) -> list[Hypothesis]:
    """List a family's hypotheses within the grid: suites x benchmarks x regimes x baselines."""
    grid = study.grid
    if family.treatment not in grid.methods:
        return []
    suites = [name for name in grid.suites if family.suites is None or name in family.suites]
    regimes = [name for name in grid.regimes if family.regimes is None or name in family.regimes]
    baselines = [name for name in family.baselines if name == BASE or name in grid.methods]
    return [
        Hypothesis(
            Cell(suite, family.treatment, regime),
            Cell(suite, BASE, None) if baseline == BASE else Cell(suite, baseline, regime),
            benchmark,
        )
        for suite in suites
        for benchmark in study.suites[suite].benchmarks
        for regime in regimes
        for baseline in baselines
    ]


def outside_grid(study: Study, family: Family) -> list[str]:
    """Name what a family declares and the grid does not make."""
    declared = {
        "method": [family.treatment, *(name for name in family.baselines if name != BASE)],
        "suite": family.suites or [],
        "regime": family.regimes or [],
    }
    made = {"method": study.grid.methods, "suite": study.grid.suites, "regime": study.grid.regimes}
    return [f"{kind} {name}" for kind, names in declared.items() for name in names if name not in made[kind]]


Tested = Mapping[Hypothesis, ComparisonResult]


def correct_families(
    study: Study, checkpoint: str, tested: Tested
) -> tuple[list[ComparisonResult], dict[str, FamilyResult]]:
    """Correct every family at one kind of checkpoint.

    Args:
        study: Declares the families.
        checkpoint: Which kind of checkpoint.
        tested: The comparisons that could be made.

    Returns:
        The comparisons with their adjusted p-values, and what each family holds.
    """
    adjusted = {hypothesis: dict(result.adjusted) for hypothesis, result in tested.items()}
    families = {}
    for name, family in study.statistics.families.items():
        declared = hypotheses(study, family)
        corrected = adjust([tested[h].inference.p if h in tested else None for h in declared])
        for hypothesis, values in zip(declared, corrected, strict=True):
            if hypothesis in tested:
                adjusted[hypothesis][name] = values
        alpha = study.statistics.alpha
        families[name] = FamilyResult(
            label=family.label,
            checkpoint=checkpoint,
            hypotheses=len(declared),
            tested=sum(h in tested for h in declared),
            rejected_holm=sum(values.holm < alpha for values in corrected),
            rejected_bh=sum(values.bh < alpha for values in corrected),
            untested=[str(h) for h in declared if h not in tested],
            outside_grid=outside_grid(study, family),
        )
    return [result.model_copy(update={"adjusted": adjusted[h]}) for h, result in tested.items()], families


def declared_hypotheses(study: Study) -> Sequence[Hypothesis]:
    """List the hypotheses of all families, each once."""
    families = study.statistics.families.values()
    return list(dict.fromkeys(h for family in families for h in hypotheses(study, family)))
