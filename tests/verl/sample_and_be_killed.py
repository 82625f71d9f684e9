"""Sample a benchmark with vLLM, one question a chunk; `test_sampling.py` kills it in the middle."""

import sys
from pathlib import Path

from small_study import SmallStudy

from acpo.cells import Cell
from acpo.data.problems import read_problems
from acpo.engines.sampling import BenchmarkSampler


def main() -> None:
    """Sample the test split of the study in argv[1] with partial work in argv[2]."""
    small = SmallStudy(Path(sys.argv[1]))
    BenchmarkSampler(questions_per_chunk=1).sample(
        small.study(), Cell("mini_vllm", "base", None), small.base, "countdown_mini",
        read_problems(small.split("test")), 0, Path(sys.argv[2]),
    )  # fmt: skip


if __name__ == "__main__":
    main()
