"""Measure norm and direction of gradients on stored responses: parts of the tokens, clipping, other objectives.

Works on any token store and transformers checkpoints of any trainer: the lowest --policy is the one that made the
responses, the highest the one whose gradients are compared.
"""

import argparse
from pathlib import Path

from acpo.cli import parser, run
from acpo.config import load_study
from acpo.data.problems import read_problems
from acpo.errors import ConfigError
from acpo.probes.comparison import compare_updates, dominance
from acpo.probes.policy import tokenized_prompts
from acpo.probes.records import DriftRecord, GradientReport
from acpo.probes.responses import read_responses
from acpo.provenance import Clock, file_hash
from acpo.store import read_json, write_json


def main() -> None:
    """Read arguments, measure, write."""
    arguments = parser(__doc__)
    source = arguments.add_mutually_exclusive_group(required=True)
    source.add_argument("--drift", type=Path, help="drift.json of scripts/drift_policy.py")
    source.add_argument("--tokens", type=Path, help="a token store; give --policy too")
    arguments.add_argument(
        "--policy", type=degree_and_folder, action="append", default=[], metavar="UPDATES=CHECKPOINT",
        help="a checkpoint after UPDATES - 1 updates from the responses; give two or more",
    )  # fmt: skip
    arguments.add_argument("--update", type=int, help="take the responses of this update of the token store only")
    arguments.add_argument("--data", type=Path, required=True, help="the data set that the questions come from")
    arguments.add_argument("--temperature", type=float, default=1.0, help="at which the responses were sampled")
    arguments.add_argument("--device", default="cpu", help="cpu or cuda")
    arguments.add_argument("--output", type=Path, required=True)
    given = arguments.parse_args()
    clock = Clock()
    study = load_study(given.config)
    name, tokens, policies = material(given)
    problems = read_problems(given.data)
    responses = read_responses(tokens, tokenized_prompts(policies[min(policies)], problems), given.update)
    common = (study, responses, policies, given.temperature, given.device)
    files = {"tokens": tokens, "data": given.data}
    report = GradientReport(
        name=name,
        responses=len(responses),
        rank=study.probes.rank,
        reference=study.probes.reference,
        dominance=dominance(*common),
        provenance=clock.provenance(
            {"probes": study.probes.model_dump(mode="json"), "temperature": given.temperature},
            ["acpo.probes.comparison"],
            {key: file_hash(path) for key, path in files.items()},
            given.device,
        ),
        **compare_updates(*common),
    )
    write_json(given.output, report)


def degree_and_folder(text: str) -> tuple[int, Path]:
    """Read an option of the form UPDATES=CHECKPOINT."""
    degree, equals, folder = text.partition("=")
    if not equals or not degree.isdecimal() or int(degree) < 1:
        raise argparse.ArgumentTypeError(f"expected UPDATES=CHECKPOINT, got {text!r}")
    return int(degree), Path(folder)


def material(given: argparse.Namespace) -> tuple[str, Path, dict[int, Path]]:
    """Return a name, the token store, and the policies by off-policy degree.

    Raises:
        ConfigError: fewer than two policies.
    """
    if given.drift:
        record = read_json(given.drift, DriftRecord)
        return record.run, Path(record.tokens), {degree: Path(path) for degree, path in record.policies.items()}
    policies = dict(given.policy)
    if len(policies) < 2:
        raise ConfigError("--tokens needs --policy UPDATES=CHECKPOINT at least twice, with different UPDATES")
    return str(given.tokens), given.tokens, policies


if __name__ == "__main__":
    run(main)
