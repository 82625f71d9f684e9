"""What an update of each method costs (Table 9): `results/timing.json`."""

from statistics import median, stdev
from typing import Literal

from pydantic import Field

from acpo.config import Study
from acpo.errors import ConfigError
from acpo.results import Provenance, Record

REFERENCE = "dapo"


class MethodTime(Record):
    """CPU seconds of all updates of one rollout, every pass counted, once a round."""

    seconds: list[float] = Field(min_length=2)

    @property
    def median(self) -> float:
        """The middle round."""
        return median(self.seconds)

    @property
    def spread(self) -> float:
        """Standard deviation over rounds (ddof 1)."""
        return stdev(self.seconds)


class RegimeTime(Record):
    """All methods in one regime of one suite, timed in turns on the same rollout from the same base model.

    `tokens` are the response tokens of the rollout, `updates` its mini-batches; a method of two passes makes twice as
    many updates.
    """

    suite: str
    regime: str
    tokens: int
    updates: int
    methods: dict[str, MethodTime]

    def relative(self, method: str) -> float:
        """Return a method's median over DAPO's, minus 1."""
        return self.methods[method].median / self.methods[REFERENCE].median - 1

    def ratios(self, method: str) -> list[float]:
        """Return a method's time over DAPO's, round by round."""
        return [
            ours / theirs
            for ours, theirs in zip(self.methods[method].seconds, self.methods[REFERENCE].seconds, strict=True)
        ]

    def milliseconds_a_token(self, method: str) -> MethodTime:
        """Return a method's time divided by the rollout's tokens, in milliseconds."""
        return MethodTime(seconds=[1000 * each / self.tokens for each in self.methods[method].seconds])


class Timing(Record):
    """`timing.json`."""

    schema_version: Literal[1] = 1
    regimes: list[RegimeTime]
    provenance: Provenance


def timed_methods(study: Study) -> list[str]:
    """List the methods to time: those of the grid whose parameters are all configured, and the reference, DAPO.

    A method with a measured parameter is another one's code with another number.

    Raises:
        ConfigError: the study does not define the reference.
    """
    if REFERENCE not in study.methods:
        raise ConfigError(f"methods: update times are relative to {REFERENCE!r}, which the study does not define")
    return list(dict.fromkeys([REFERENCE, *(name for name in study.grid.methods if not study.methods[name].measured)]))
