"""What the scores of Tables 1 and 2 can be means over."""

from dataclasses import dataclass

from acpo.audit.claims.row import claim
from acpo.audit.denominators import QUESTIONS, Fit, fit
from acpo.audit.published import Published
from acpo.audit.verdict import Row, Verdict


@dataclass(frozen=True)
class Reading:
    """Questions and samples that some scores may be means over, and what the paper says of it.

    `benchmarks` empty: all scores of the table.
    """

    id: str
    label: str
    table: str
    benchmarks: tuple[str, ...]
    questions: int
    samples: int
    said: str

    def printed(self, published: Published) -> list[str]:
        """Return the scores, as printed."""
        frame = published.tables[self.table].frame()
        wanted = frame["group"].isin(self.benchmarks) if self.benchmarks else frame["group"].notna()
        return frame[wanted]["printed"].tolist()


READINGS = (
    Reading("amc_40", "AMC", "table2", ("AMC",), 40, 8, "AMC2023 (a set of 40), avg@8"),
    Reading("amc_83", "AMC", "table2", ("AMC",), QUESTIONS["AMC"], 8, "avg@8; a set of 83 is not mentioned"),
    Reading(
        "aime", "AIME24 and AIME25", "table2", ("AIME24", "AIME25"), QUESTIONS["AIME24"], 32, "avg@32 (sets of 30)"
    ),
    Reading("math500", "Math500", "table2", ("Math500",), QUESTIONS["Math500"], 8, "avg@8 (a set of 500)"),
    Reading("minerva", "Minerva", "table2", ("Minerva",), QUESTIONS["Minerva"], 8, "avg@8 (a set of 272)"),
    Reading("olympiad", "Olympiad", "table2", ("Olympiad",), QUESTIONS["Olympiad"], 8, "avg@8 (a set of 675)"),
    Reading("hitab_1584", "HiTab", "table1b", (), 1584, 4, "avg@4 test accuracy (a test set of 1,584)"),
    Reading("hitab_300", "HiTab", "table1b", (), 300, 4, "avg@4; a subset of 300 is not mentioned"),
    Reading("countdown_4", "Countdown", "table1a", (), 1024, 4, "avg@4; the number of questions is not stated"),
    Reading("countdown_8", "Countdown", "table1a", (), 1024, 8, "avg@4; the number of questions is not stated"),
)


def rows(published: Published) -> list[Row]:
    """Test each reading: a mean of k right answers out of questions x samples has few two-decimal values."""
    return [_row(published, reading) for reading in READINGS]


def _row(published: Published, reading: Reading) -> Row:
    found = fit(reading.printed(published), reading.questions * reading.samples)
    return claim(
        f"denominator_{reading.id}",
        published.tables[reading.table].place,
        f"{reading.label}: each score is a mean over {reading.questions} questions x {reading.samples} samples",
        published=reading.said,
        recomputed=f"{found.fitting} of {found.total} printed scores are k/{found.denominator} for some k",
        verdict=verdict(found),
        why=f"Arbitrary two-decimal values would fit at a rate of {found.chance:.2f}. Reproduced: all fit; "
        "contradicted: no more fit than arbitrary values would (binomial test, 0.05).",
    )


def verdict(found: Fit) -> Verdict:
    """Turn a fit into a verdict."""
    if found.all_fit:
        return Verdict.REPRODUCED
    return Verdict.CONTRADICTED if found.no_better_than_chance else Verdict.NOT_REPRODUCED
