"""Table 9: its relative columns recomputed from the seconds beside them."""

from itertools import product

import pandas as pd

from acpo.audit.published import Number, Published
from acpo.audit.scores import NEAR, OFF, SLACK

MEASURES = {"Update (s)": "Update Rel.", "Per-token (ms)": "Per-token Rel."}
REFERENCE = "DAPO"


def relatives(published: Published) -> pd.DataFrame:
    """Recompute every relative time, in percent of DAPO's minus 100.

    Returns:
        row, regime, measure, printed, recomputed, lowest and highest (what the rounding of both times allows), and
        `within`: whether the printed value, itself rounded, lies among them.
    """
    table = published.tables["table9"]
    methods = [name for name in table.panels[""] if name != REFERENCE]
    rows = []
    for regime, (measure, relative), method in product((OFF, NEAR), MEASURES.items(), methods):
        reference = table.number("", REFERENCE, (regime, measure))
        time, printed = (table.number("", method, (regime, column)) for column in (measure, relative))
        low, high = _range(time, reference)
        slack = printed.rounding + SLACK
        value = 100 * (time.value / reference.value - 1)
        within = low - slack <= printed.value <= high + slack
        rows.append((method, regime, measure, printed.value, value, low, high, within))
    columns = ["row", "regime", "measure", "printed", "recomputed", "lowest", "highest", "within"]
    return pd.DataFrame(rows, columns=columns)


def _range(time: Number, reference: Number) -> tuple[float, float]:
    low = (time.value - time.rounding) / (reference.value + reference.rounding)
    high = (time.value + time.rounding) / (reference.value - reference.rounding)
    return 100 * (low - 1), 100 * (high - 1)


def tokens_a_response(published: Published) -> pd.DataFrame:
    """Return the tokens of a response that Table 9 implies, if a step covers one train batch of Table 3.

    Seconds a step over seconds a token, over train batch size times rollout N. Columns: row, regime, tokens.
    """
    frame = published.tables["table9"].frame().pivot(index=["row", "group"], columns="column", values="value")
    tokens = frame["Update (s)"] / (frame["Per-token (ms)"] / 1000)
    settings = published.tables["table3"]
    group_size = settings.number("", "Rollout N", ("", "N-OnP.")).value
    batches = {regime: settings.number("", "Train Batch Size", ("", regime)).value for regime in (NEAR, OFF)}
    made = tokens.rename("tokens").reset_index().rename(columns={"group": "regime"})
    made["tokens"] /= made["regime"].map(batches) * group_size
    return made
