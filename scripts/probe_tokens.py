"""Probe token stores: spread of the ratio, its exponent, probability against entropy, clipping by bin.

Reads any store with the columns that docs/probes.md lists. What a store does not say comes from options, or from the
run that wrote it: --config, --cell and --run-directory.
"""

import argparse
import os
from pathlib import Path
from typing import Any

from acpo.cli import parser, run
from acpo.config import load_study
from acpo.errors import ConfigError
from acpo.probes.clip_dynamics import METRICS, clip_dynamics
from acpo.probes.records import ClipDynamics, TokenProbe
from acpo.probes.run_facts import given_facts, run_facts
from acpo.probes.token_store import read_tokens
from acpo.probes.tokens import Setup, probe_all
from acpo.provenance import Clock, file_hash
from acpo.store import read_table, write_json


def arguments() -> argparse.ArgumentParser:
    """Describe the command line."""
    made = parser(__doc__)
    made.add_argument("--tokens", type=Path, nargs="+", default=[], help="token stores; by default the run's own")
    made.add_argument("--output", type=Path, required=True, help="directory; gets tokens.json")
    made.add_argument("--clip-low", type=float, help="lower clip width of the updates, where no cell says it")
    made.add_argument("--clip-high", type=float, help="upper clip width")
    made.add_argument("--vocabulary", type=int, help="tokens in the vocabulary: the upper entropy bound needs it")
    made.add_argument("--metrics", type=Path, help="metrics.parquet of the run, for clipping over training")
    made.add_argument("--cell", help="the configured cell that the run belongs to: its method says what was clipped")
    made.add_argument("--run-directory", type=Path, help="the run, with run.json, tokens/, metrics.parquet, last/")
    return made


def hashes(paths: list[Path]) -> dict[str, str]:
    """Hash files by their path below the directory that they share."""
    places = [path.resolve() for path in paths]
    shared = os.path.commonpath([place.parent for place in places])
    return {str(place.relative_to(shared)): file_hash(place) for place in places}


def main() -> None:
    """Read arguments, probe, write."""
    given = arguments().parse_args()
    if (given.cell is None) != (given.run_directory is None):
        raise ConfigError("--cell and --run-directory belong together")
    clock = Clock()
    study = load_study(given.config)
    if given.cell:
        facts = run_facts(study, given.cell, given.run_directory)
    else:
        facts = given_facts(given.clip_low, given.clip_high, given.vocabulary, given.metrics)
    paths = given.tokens or facts.tokens
    pooled, rollouts = probe_all(read_tokens(paths), Setup(facts.rule, facts.vocabulary, study.root_seed))
    dynamics = ClipDynamics(bins=[], note="no metrics given")
    if facts.metrics:
        dynamics = clip_dynamics(read_table(facts.metrics, METRICS))
    modules = ["acpo.probes.tokens", "acpo.probes.clip_dynamics", *facts.modules]
    inputs = hashes([*paths, facts.metrics] if facts.metrics else paths)
    setup: dict[str, Any] = {
        "root_seed": study.root_seed,
        "clip_rule": facts.rule.name if facts.rule else None,
        "vocabulary": facts.vocabulary,
    }
    probe = TokenProbe(
        name=facts.name, pooled=pooled, rollouts=rollouts, clip_dynamics=dynamics,
        provenance=clock.provenance(setup, modules, inputs),
    )  # fmt: skip
    write_json(given.output / "tokens.json", probe)


if __name__ == "__main__":
    run(main)
