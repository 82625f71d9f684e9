"""Print how often paper mode calls equal methods different, and what comparisons of several sizes can find."""

import argparse

import pandas as pd

from acpo.cli import run
from acpo.stats.power import AIME, MATH500, SEED_COUNTS, Difficulty, SeedSpread, Spread, false_positive_rate
from acpo.stats.power import minimum_detectable_difference as detectable
from acpo.streams import stream

BENCHMARKS = {"MATH500": MATH500, "AIME": AIME}
SEED_SDS = (0.0, 0.5, 1.0, 2.0)
ALPHA, POWER = 0.05, 0.8


def main() -> None:
    """Read arguments, simulate, print."""
    arguments = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    arguments.add_argument("--simulations", type=int, default=20_000)
    given = arguments.parse_args()
    rates = {name: false_positives(name, given.simulations) for name in BENCHMARKS}
    print("False-positive rate of paper mode (alpha 0.05, one-tailed), by SD over training seeds in points:")
    print(pd.DataFrame(rates).T.to_string(float_format="%.3f"))
    print("\nMinimum detectable difference in points (alpha 0.05, two-tailed, power 0.8), by training seeds a method:")
    print("(1 seed: of two checkpoints, whatever the SD over seeds)")
    rows = {(name, sd): differences(item, sd) for name, item in BENCHMARKS.items() for sd in SEED_SDS}
    print(pd.DataFrame(rows).T.rename_axis(["benchmark", "seed SD"]).to_string(float_format="%.2f"))


def false_positives(name: str, simulations: int) -> dict[float, float]:
    """Simulate a benchmark's rates."""
    rngs = {sd: stream(0, "false positives", name, str(sd / 100)) for sd in SEED_SDS}
    return {sd: false_positive_rate(BENCHMARKS[name], sd / 100, simulations, rng, ALPHA) for sd, rng in rngs.items()}


def differences(benchmark: Difficulty, seed_sd: float) -> dict[int, float]:
    """Return the minimum detectable difference of two methods that find the same questions hard, by training seeds."""
    spread = Spread(0.0, (SeedSpread(2 * (seed_sd / 100) ** 2, 2 * benchmark.within / benchmark.k),))
    return {seeds: 100 * detectable(spread, seeds, benchmark.questions, ALPHA, POWER) for seeds in SEED_COUNTS}


if __name__ == "__main__":
    run(main)
