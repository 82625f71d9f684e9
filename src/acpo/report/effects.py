"""How large the declared comparisons' differences are, with intervals, and how small a difference they can find."""

from collections.abc import Iterator

from acpo.report.comparisons import Comparisons
from acpo.report.grid import PANELS
from acpo.report.quantities import Points, Quantity
from acpo.report.table import Block, Group, Number
from acpo.stats.families import Hypothesis
from acpo.stats.power import SEED_COUNTS
from acpo.stats.records import CHECKPOINTS_ONLY, Detectable


def effects_block(view: Comparisons, title: str, chosen: list[Hypothesis]) -> Block:
    """Make the sub-table of differences with intervals (points), Cliff's delta and probability of improvement.

    Args:
        view: The study's comparisons.
        title: Of the sub-table.
        chosen: Hypotheses of one treatment, suite and benchmark.
    """
    groups = (
        Group("Difference", ("points",)),
        Group(f"{100 * (1 - view.study.statistics.alpha):g} % interval, points", ("low", "high")),
        Group("Other effects", ("Cliff's delta", "P(better run)")),
    )
    panels = view.panels(chosen, lambda h, kind: _effects(view, h, kind))
    return Block(title, view.corner(chosen), groups, panels, _effect_notes(view, chosen))


def _effects(view: Comparisons, h: Hypothesis, kind: str) -> Iterator[Number]:
    found = view.comparison(h, kind)
    inference = found.inference if found else None
    interval = inference.interval if inference else None
    cell, where = str(h.treatment), f"{view.source(h, kind)} inference"
    for name, path, value in (
        ("difference", "difference", inference.difference if inference else None),
        ("interval_low", "interval.low", interval.low if interval else None),
        ("interval_high", "interval.high", interval.high if interval else None),
    ):
        yield Points(cell, f"{where}.{path}", kind, value, item=view.item(h, name))
    for name, value, decimals in (
        ("cliffs_delta", inference.cliffs_delta if inference else None, 3),
        ("probability_of_improvement", inference.probability_of_improvement if inference else None, 2),
    ):
        yield Quantity(cell, f"{where}.{name}", kind, value, item=view.item(h, name), decimals=decimals)


def _effect_notes(view: Comparisons, chosen: list[Hypothesis]) -> tuple[str, ...]:
    treatment = view.treatment(chosen)
    notes = [
        "Interval: of the difference, by the hierarchical bootstrap of training seeds, questions and samples, its "
        "width set to t times the standard error.",
        f"Cliff's delta: share of questions on which {treatment} is better, minus share on which it is worse. P(better "
        f"run): chance that a training run of {treatment} scores above one of the baseline; ties count half.",
    ]
    pairs = [(h, kind, found) for kind in PANELS for h in chosen if (found := view.comparison(h, kind))]
    if any(found.inference.note for *_, found in pairs):
        notes.append(f"With one training seed a side there is {CHECKPOINTS_ONLY}.")
    flat = [f"{h}, {kind}" for h, kind, found in pairs if found.inference.interval is None]
    if flat:
        notes.append(f"–: no interval, the difference has no spread: {'; '.join(flat)}.")
    notes += [note for kind in PANELS for note in view.missing_notes(kind, chosen)]
    return tuple(dict.fromkeys(notes))


def detectable_block(view: Comparisons, title: str, chosen: list[Hypothesis]) -> Block:
    """Make the sub-table of minimum detectable differences (points), a column a number of training seeds.

    Args:
        view: The study's comparisons.
        title: Of the sub-table.
        chosen: Hypotheses of one treatment, suite and benchmark.
    """
    found = {_key(item): item for item in (view.statistics.detectable if view.statistics else [])}
    columns = tuple(map(str, SEED_COUNTS))
    panels = view.panels(chosen, lambda h, kind: _detectable(view, found, h, kind))
    how = view.study.statistics
    notes = [
        f"The smallest difference that such a comparison finds with power {how.power:g} (two-tailed, level "
        f"{how.alpha:g}), in points, by training seeds a method, from its own measured spread; a smaller one is likely "
        "to be missed. One training seed: of two checkpoints only.",
        *(note for kind in PANELS for note in view.missing_notes(kind, chosen)),
    ]
    numbers = [number for panel in panels for row in panel.rows for number in row.numbers]
    if view.statistics and any(number.value is None for number in numbers):
        notes.append("–: unknown where no side has two training seeds, whose spread would say it.")
    groups = (Group("Training seeds a method", columns),)
    return Block(title, view.corner(chosen), groups, panels, tuple(dict.fromkeys(notes)))


_Key = tuple[str, str, str, str, str, str, int]


def _key(item: Detectable) -> _Key:
    return (
        item.suite, item.regime, item.benchmark, item.checkpoint, item.treatment, item.baseline, item.seeds,
    )  # fmt: skip


def _detectable(view: Comparisons, found: dict[_Key, Detectable], h: Hypothesis, kind: str) -> Iterator[Number]:
    ours = h.treatment
    for seeds in SEED_COUNTS:
        key = (ours.suite, ours.regime or "", h.benchmark, kind, ours.method, h.baseline.method, seeds)
        value = found[key].difference if key in found else None
        where = f"{view.source(h, kind, 'detectable')} {seeds} seeds"
        yield Number(str(ours), where, kind, value, item=view.item(h, f"detectable_{seeds}_seeds"))
