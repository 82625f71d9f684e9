"""Time the hierarchical bootstrap on one core; see docs/benchmarks.md."""

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np

from acpo.bench import Measurement, format_table
from acpo.cli import run
from acpo.stats.bootstrap import draw_weights, resampled_means
from acpo.streams import stream

METHODS, CONFIGURATIONS, QUESTIONS, SAMPLES = 13, 18, 675, 32
RESAMPLES = 10_000
SECONDS = 30


def main() -> None:
    """Measure, print, write."""
    arguments = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    arguments.add_argument("--seeds", type=int, nargs="+", default=[1, 3], help="training seeds of each cell")
    arguments.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    given = arguments.parse_args()
    found = [bootstrap_seconds(seeds) for seeds in given.seeds]
    print(format_table(found))
    if given.json:
        rows = [asdict(item) | {"met": item.met} for item in found]
        given.json.write_text(json.dumps({"measurements": rows}, indent=1), encoding="utf-8")


def bootstrap_seconds(seeds: int) -> Measurement:
    """Time 10,000 resamples of 13 x 18 cells of 675 questions and 32 samples: CPU seconds of this one thread."""
    rng = stream(0, "bench statistics", seeds)
    # A hard draw: every question differs, so that all 31 numbers of right samples between none and all occur.
    chances = rng.beta(0.4, 0.4, (METHODS, QUESTIONS))
    right = [rng.binomial(SAMPLES, chance, (seeds, QUESTIONS)) for chance in chances]
    start = time.process_time()
    seed_weights = draw_weights(seeds, RESAMPLES, rng)
    for _ in range(CONFIGURATIONS):
        question_weights = draw_weights(QUESTIONS, RESAMPLES, rng)
        means = [resampled_means(counts, SAMPLES, seed_weights, question_weights, rng) for counts in right]
        assert np.shape(means) == (METHODS, RESAMPLES)
    name = f"bootstrap, {METHODS} x {CONFIGURATIONS} cells, training seeds {seeds}"
    return Measurement(name, time.process_time() - start, "CPU s", at_most=SECONDS)


if __name__ == "__main__":
    run(main)
