"""Table 9 and App. F."""

import pandas as pd

from acpo.audit.claims.row import claim
from acpo.audit.durations import relatives, tokens_a_response
from acpo.audit.published import Published
from acpo.audit.scores import NEAR, OFF
from acpo.audit.verdict import Row, Verdict

SECONDS, TOKEN = "Update (s)", "Per-token (ms)"


def rows(published: Published) -> list[Row]:
    """Recompute relative times, and what is said about them; the size of App. F's gradients."""
    found = relatives(published)
    return [
        _relatives(found),
        _ar_lopti(published, found),
        _high_entropy(published, found),
        _acpo(published, found),
        _tokens(published),
        _parts(published),
    ]


def _relatives(found: pd.DataFrame) -> Row:
    gap = (found["printed"] - found["recomputed"]).abs().max()
    return claim(
        "relatives",
        "Table 9",
        "Relative times follow from the times beside them",
        published=f"{len(found)} relative times",
        recomputed=f"{int(found['within'].sum())} of {len(found)} within what rounding of both times allows; "
        f"largest gap {gap:.2f} percent of DAPO's time",
        verdict=bool(found["within"].all()),
        why="Each time may be off by half a unit of its last digit.",
    )


def _of(found: pd.DataFrame, method: str, measure: str) -> dict[str, float]:
    chosen = found[(found["row"] == method) & (found["measure"] == measure)]
    return dict(zip(chosen["regime"], chosen["recomputed"], strict=True))


def _both(found: pd.DataFrame, method: str) -> str:
    return "; ".join(
        f"{measure}: " + ", ".join(f"{value:+.1f} % {regime}" for regime, value in _of(found, method, measure).items())
        for measure in (TOKEN, SECONDS)
    )


def _ar_lopti(published: Published, found: pd.DataFrame) -> Row:
    factor = published.said("overhead_ar_lopti").value
    measures = {measure: _of(found, "AR-Lopti", measure).values() for measure in (TOKEN, SECONDS)}
    holds = [name for name, values in measures.items() if all(1 + value / 100 > factor for value in values)]
    return claim(
        "overhead_ar_lopti",
        "App. L",
        "AR-Lopti's overhead is more than twice DAPO's cost",
        published=f"over {factor:g} times",
        recomputed=_both(found, "AR-Lopti"),
        verdict=TOKEN in holds,
        why=f"In both regimes by: {', '.join(holds) or 'no measure'}. The verdict is about time a token.",
    )


def _high_entropy(published: Published, found: pd.DataFrame) -> Row:
    said = published.said("overhead_high_entropy")
    values = _of(found, "High-Entropy", TOKEN)
    near = {regime: abs(value - said.value) < 5 for regime, value in values.items()}
    return claim(
        "overhead_high_entropy",
        "App. L",
        "Computing and sorting entropies adds about 40 % to an update",
        published=f"approximately {said.printed} %",
        recomputed=_both(found, "High-Entropy"),
        verdict=all(near.values()),
        why="Reproduced would be 35 to 45 % a token in both regimes; it is so in "
        f"{', '.join(regime for regime, holds in near.items() if holds) or 'neither'}.",
    )


def _acpo(published: Published, found: pd.DataFrame) -> Row:
    dapo = {regime: published.tables["table9"].number("", "DAPO", (regime, SECONDS)) for regime in (OFF, NEAR)}
    spread = {regime: 100 * (time.spread or 0.0) / time.value for regime, time in dapo.items()}
    values = _of(found, "ACPO", SECONDS)
    return claim(
        "overhead_acpo",
        "App. L",
        "ACPO's overhead over DAPO is negligible",
        published="negligible",
        recomputed=f"{_both(found, 'ACPO')}; spread of DAPO's own seconds: "
        + ", ".join(f"{value:.1f} % {regime}" for regime, value in spread.items()),
        verdict=all(value <= spread[regime] for regime, value in values.items()),
        why="Negligible is read as no more than the printed spread of DAPO's updates.",
    )


def _tokens(published: Published) -> Row:
    found = tokens_a_response(published).pivot(index="row", columns="regime", values="tokens").T.to_dict()
    limit = published.tables["table3"].number("", "Max Response Length", ("", NEAR)).value
    above = [f"{method} {regime}" for method, line in found.items() for regime in (OFF, NEAR) if line[regime] > limit]
    return claim(
        "tokens_a_step",
        "Table 9, Table 3",
        "A step takes the seconds of one train batch",
        published="near on-policy steps take longer, with half the train batch",
        recomputed="seconds a step over seconds a token and responses a batch, in tokens a response: "
        + "; ".join(f"{method} {line[NEAR]:.0f} {NEAR}, {line[OFF]:.0f} {OFF}" for method, line in found.items()),
        verdict=Verdict.NOT_TESTABLE,
        why=f"Which tokens are counted is not stated. Above the response limit of {limit:.0f}: "
        f"{', '.join(above) or 'none'}.",
    )


def _parts(published: Published) -> Row:
    table = published.tables["appendix_f"]
    up, down = (table.number("F.2", row, ("", "norm")).value for row in ("A > 0", "A < 0"))
    low, high = (table.number("F.1", row, ("", "norm")).value for row in ("pi < 0.2", "pi > 0.8"))
    rest = low - high - 100
    return claim(
        "gradient_parts",
        "App. F.1, F.2, Fig. 6",
        "Norms of the parts are possible for parts of one gradient",
        published=f"A > 0 {up:g} %, A < 0 {down:g} %; pi < 0.2 {low:g} %, pi > 0.8 {high:g} %",
        recomputed=f"A > 0 and A < 0: the whole (100 %) lies between {abs(up - down):g} and {up + down:g} %; pi: the "
        f"tokens between 0.2 and 0.8 would need a norm of at least {rest:g} %",
        verdict=Verdict.NOT_TESTABLE,
        why="The triangle inequality holds for parts with the whole's denominator; whether parts were divided by all "
        "tokens or by their own is not stated.",
    )
