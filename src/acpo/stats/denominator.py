"""Self-check of printed numbers: a mean of n verdicts is a whole number over n."""

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from acpo.store import StoreError


def check_fraction(value: float, right: int, denominator: int, where: str) -> None:
    """Refuse a mean that is not `right / denominator`.

    Args:
        value: The mean, unrounded.
        right: How many verdicts are right.
        denominator: How many there are: questions x samples x training seeds.
        where: What the number is, for the message.

    Raises:
        StoreError: the two differ.
    """
    if abs(value * denominator - right) > 1e-6 * max(denominator, 1):
        raise StoreError(
            f"{where}: {value!r} is not {right} of {denominator} verdicts: the score and the verdict stores disagree. "
            "Score the cell again"
        )


def possible_percent(printed: str, denominator: int) -> bool:
    """Say whether a printed percentage can be a mean of `denominator` verdicts, whatever way halves are rounded.

    Args:
        printed: As in the table, e.g. `54.37`; its decimals say how it was rounded.
        denominator: Questions x samples.

    Source: the GRIM test, Brown & Heathers 2017.
    """
    value = Decimal(printed)
    half = Decimal(1).scaleb(int(value.as_tuple().exponent)) / 2
    first = ((value - half) * denominator / 100).to_integral_value(ROUND_CEILING)
    last = ((value + half) * denominator / 100).to_integral_value(ROUND_FLOOR)
    return first <= last
