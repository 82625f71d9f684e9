"""Time the updates of every method of the grid, in turns on the same rollout (Table 9)."""

from collections.abc import Sequence
from pathlib import Path

from acpo.bench import Setting, one_thread, update_seconds
from acpo.cli import keyed_path, parser, run
from acpo.config import load_study
from acpo.provenance import Clock, file_hash
from acpo.store import write_json
from acpo.timing import MethodTime, RegimeTime, Timing, timed_methods


def main() -> None:
    """Read arguments, time, write."""
    arguments = parser(__doc__)
    arguments.add_argument(
        "--base",
        type=keyed_path,
        action="append",
        required=True,
        metavar="SUITE=DIRECTORY",
        help="a suite's base model",
    )
    arguments.add_argument("--rounds", type=int, default=9, help="turns of each method (2 or more)")
    arguments.add_argument("--output", type=Path, required=True, help="the JSON file")
    given = arguments.parse_args()
    if given.rounds < 2:
        arguments.error("--rounds: 2 or more, as one has no spread")
    clock, study = Clock(), load_study(given.config)
    methods, regimes, hashes = timed_methods(study), [], {}
    for suite, base in given.base:
        setting = Setting.of(study, suite, base)
        hashes[suite] = file_hash(base / "model.safetensors")
        for regime in study.grid.regimes:
            print(f"timing {len(methods)} methods, {suite} {regime}, {given.rounds} rounds", flush=True)
            regimes.append(time_regime(setting, regime, methods, given.rounds))
    configuration = {"methods": methods, "rounds": given.rounds, "root_seed": study.root_seed}
    write_json(
        given.output,
        Timing(regimes=regimes, provenance=clock.provenance(configuration, ["acpo.timing", "acpo.bench"], hashes)),
    )


def time_regime(setting: Setting, regime: str, methods: Sequence[str], rounds: int) -> RegimeTime:
    """Time every method's updates of one rollout, methods in turns from mini-batch to mini-batch."""
    with one_thread():
        tokens = int(setting.rollout(regime).responses.lengths.sum())
        found = update_seconds(setting, regime, methods, rounds)
    updates = setting.study.regime(setting.suite, regime).updates_per_rollout
    return RegimeTime(
        suite=setting.suite,
        regime=regime,
        tokens=tokens,
        updates=updates,
        methods={name: MethodTime(seconds=by_round(times, updates)) for name, times in found.items()},
    )


def by_round(times: Sequence[float], updates: int) -> list[float]:
    """Add up the mini-batches of each round."""
    return [sum(times[start : start + updates]) for start in range(0, len(times), updates)]


if __name__ == "__main__":
    run(main)
