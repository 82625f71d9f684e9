"""All probes of a token store, together: `scripts/probe_tokens.py`."""

from dataclasses import dataclass

import pandas as pd

from acpo.probes.clipping import ClipRule
from acpo.probes.dispersion import ratio_dispersion
from acpo.probes.entropy_map import entropy_map
from acpo.probes.exponent import fit_exponent
from acpo.probes.records import TokenSection
from acpo.streams import stream

POINTS = 600


@dataclass(frozen=True)
class Setup:
    """What a token store does not say itself: the clip rule and the vocabulary, None where unknown; and the seed."""

    rule: ClipRule | None
    vocabulary: int | None
    root_seed: int


def probe_all(tokens: pd.DataFrame, setup: Setup) -> tuple[TokenSection, dict[int, TokenSection]]:
    """Probe all tokens together, and those of each rollout by themselves.

    Args:
        tokens: From `read_tokens`.
        setup: What else is known.

    Returns:
        The pooled section, with points for a scatter plot, and one section a rollout, without them.
    """
    rollouts = {
        number: probe_section(tokens[tokens["rollout"] == number], setup, 0, f"rollout {number}")
        for number in sorted(tokens["rollout"].unique().tolist())
    }
    return probe_section(tokens, setup, POINTS, "pooled"), rollouts


def probe_section(tokens: pd.DataFrame, setup: Setup, points: int, name: str) -> TokenSection:
    """Apply every probe to one set of tokens; `name` names its random stream."""
    rng = stream(setup.root_seed, "probe tokens", name)
    return TokenSection(
        tokens=len(tokens),
        questions=tokens["cluster"].nunique(),
        updates=len(tokens[["run", "rollout", "update"]].drop_duplicates()),
        dispersion=ratio_dispersion(tokens, rng),
        exponent=fit_exponent(tokens),
        entropy=entropy_map(tokens, setup.rule, setup.vocabulary, points, rng),
    )
