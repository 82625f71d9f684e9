r"""Ask a grader from a shell: one answer with its reason, or a whole file.

python -m acpo.grading --task math --pred 'The answer is \boxed{1/2}' --gold '0.5'
python -m acpo.grading --task countdown --pred '<answer>1+2+3</answer>' --numbers 1 2 3 --target 6
python -m acpo.grading --task math --input samples.parquet --output verdicts.parquet
"""

import argparse
import json
import sys
from pathlib import Path

from acpo.errors import ConfigError
from acpo.grading.batch import grade_file
from acpo.grading.countdown import write_gold
from acpo.grading.pool import PoolError
from acpo.store import StoreError
from acpo.tasks import load_task, task_names

EXIT_WRONG = 1
EXIT_USAGE = 2


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m acpo.grading", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--task", required=True, help=f"one of: {', '.join(task_names())}")
    parser.add_argument("--pred", help="one response; '-' reads it from standard input")
    parser.add_argument("--gold", help="its gold, as the task's data has it (text, or JSON)")
    parser.add_argument("--numbers", type=int, nargs="+", help="countdown: the given numbers, in place of --gold")
    parser.add_argument("--target", type=int, help="countdown: the target")
    parser.add_argument("--input", type=Path, help="grade a .parquet or .jsonl file instead")
    parser.add_argument("--output", type=Path, help="where the graded rows go")
    parser.add_argument("--response-column", default="response")
    parser.add_argument("--gold-column", default="gold")
    parser.add_argument("--released", action="store_true", help="use the released scorer's semantics")
    parsed = parser.parse_args(_joined(sys.argv[1:] if arguments is None else arguments))
    if parsed.numbers is not None and parsed.target is not None and parsed.gold is None:
        parsed.gold = write_gold(parsed.numbers, parsed.target)
    one, many = (
        parsed.pred is not None and parsed.gold is not None,
        parsed.input is not None and parsed.output is not None,
    )
    if one == many:
        parser.error("give --pred with --gold (or --numbers and --target), or else --input with --output")
    return parsed


def _joined(arguments: list[str]) -> list[str]:
    """Join answers to their options, so that one that starts with a minus sign is not taken for an option."""
    joined: list[str] = []
    for argument in arguments:
        if joined and joined[-1] in ("--pred", "--gold"):
            joined[-1] += f"={argument}"
        else:
            joined.append(argument)
    return joined


def main(arguments: list[str] | None = None) -> int:
    """Run the command.

    Returns:
        0: right, or the file was graded. 1: wrong. 2: the command, the gold or the file is at fault.
    """
    options = _arguments(arguments)
    try:
        task = load_task(options.task)
        if options.input is not None:
            counts = grade_file(
                task,
                options.input,
                options.output,
                options.response_column,
                options.gold_column,
                options.released,
            )
            print(json.dumps(counts, indent=1, ensure_ascii=False))
            return 0
        response = sys.stdin.read() if options.pred == "-" else options.pred
        grade = task.grade_released if options.released else task.grade
        verdict = grade(response, options.gold)
    except (ConfigError, StoreError, PoolError, ValueError, KeyError, TypeError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return EXIT_USAGE
    shown = {"correct": verdict.correct, "extracted": verdict.extracted, "reason": verdict.reason}
    print(json.dumps({**shown, "grader": task.grader_version}, ensure_ascii=False))
    return 0 if verdict.correct else EXIT_WRONG


if __name__ == "__main__":
    sys.exit(main())
