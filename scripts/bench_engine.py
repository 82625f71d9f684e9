"""Time the embedded engine beside transformers, DAPO and (with --trl) TRL's GRPOTrainer; see docs/benchmarks.md."""

import argparse
import json
import subprocess
import sys
import time
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from acpo.bench import (
    Measurement,
    Setting,
    compare_sampling,
    compare_updates,
    format_table,
    interleave,
    one_thread,
    training_speed,
    transformers_model,
)
from acpo.cli import parser, run
from acpo.config import load_study
from acpo.data.problems import write_problems
from acpo.engines.tiny.rollout import rollout_problems
from acpo.engines.tiny.vocabulary import Vocabulary
from acpo.errors import ConfigError
from acpo.results import RunRecord
from acpo.store import StoreError, read_json, write_json
from acpo.tasks.base import Problem
from acpo.timing import REFERENCE

SCRIPTS = Path(__file__).parent
PARTS = ("sampler", "updates", "training", "memory")
MEMORY_MB = 1500


def read_arguments() -> argparse.Namespace:
    """Read the command line."""
    arguments = parser(__doc__)
    arguments.add_argument("--suite", default="mini")
    arguments.add_argument("--base", type=Path, help="the base model (results/runs/<suite>_base/seed0/last)")
    arguments.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    arguments.add_argument("--rounds", type=int, default=5, help="turns of each contestant")
    arguments.add_argument("--trl", action="store_true", help="compare with TRL; needs envs/bench/requirements.txt")
    arguments.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    return arguments.parse_args()


def main() -> None:
    """Measure, print, write."""
    given = read_arguments()
    study = load_study(given.config)
    base = given.base or Path(f"results/runs/{given.suite}_base/seed0/last")
    if not base.is_dir():
        raise StoreError(f"{base}: no base model. Make it: snakemake --cores 1 {base.parent}/run.json")
    setting = Setting.of(study, given.suite, base)
    found: list[Measurement] = []
    for part in given.parts:
        new = measure(part, setting, given)
        print(format_table(new), flush=True)
        found += new
    if given.json:
        rows = [asdict(item) | {"ratio": item.ratio, "met": item.met} for item in found]
        given.json.write_text(json.dumps({"rounds": given.rounds, "measurements": rows}, indent=1), encoding="utf-8")


def measure(part: str, setting: Setting, given: argparse.Namespace) -> list[Measurement]:
    """Make one part's measurements."""
    grid = setting.study.grid
    if part == "sampler":
        return compare_sampling(setting, 64, given.rounds)
    if part == "updates":
        return [m for regime in grid.regimes for m in compare_updates(setting, regime, grid.methods, given.rounds)]
    if part == "training":
        return [compare_training(setting, regime, given.rounds, given.trl) for regime in grid.regimes]
    return measure_memory(setting)


def compare_training(setting: Setting, regime: str, rounds: int, trl: bool) -> Measurement:
    """End-to-end tokens per second of the embedded trainer, beside TRL's where asked for."""
    contestants = {"ours": lambda: training_speed(setting, regime, 2)}
    if trl:
        contestants["trl"] = lambda: trl_speed(setting, regime, 2)
    speeds = {name: median(values) for name, values in interleave(contestants, rounds).items()}
    name = f"training / TRL GRPOTrainer, {regime}" if trl else f"training, {regime}"
    return Measurement(name, speeds["ours"], "tokens/s", speeds.get("trl"), at_least=6 if trl else None)


def trl_speed(setting: Setting, regime: str, rollouts: int) -> list[float]:
    """Response tokens per second of TRL's GRPOTrainer with DAPO's settings, by rollout; the first is dropped.

    Raises:
        ConfigError: TRL is not installed.
    """
    try:
        from datasets import Dataset
        from trl import GRPOTrainer
    except ModuleNotFoundError as error:
        raise ConfigError(f"--trl needs the packages of envs/bench/requirements.txt ({error})") from error
    sizes = setting.study.regime(setting.suite, regime)
    count = (rollouts + 1) * sizes.train_batch_size
    problems = rollout_problems(setting.problems, 0, count, setting.study.root_seed, 0)
    grader = _Grader(setting, problems)
    with TemporaryDirectory() as place, one_thread():
        trainer = GRPOTrainer(
            model=transformers_model(setting),
            reward_funcs=grader,
            args=_trl_arguments(setting, regime, rollouts + 1, place),
            train_dataset=Dataset.from_dict({"prompt": [problem.prompt for problem in problems]}),
            processing_class=_tokenizer(setting, problems),
        )
        clock = _rollout_clock(trainer, sizes.updates_per_rollout)
        trainer.train()
    seconds = [end - start for start, end in pairwise(clock)]
    return [tokens / time_taken for tokens, time_taken in zip(grader.tokens[1:], seconds, strict=True)]


def _trl_arguments(setting: Setting, regime: str, rollouts: int, place: str) -> Any:
    from trl import GRPOConfig

    training, sizes = setting.training, setting.study.regime(setting.suite, regime)
    clip = setting.study.methods[REFERENCE].parameters
    return GRPOConfig(
        output_dir=place, use_cpu=True, bf16=False, fp16=False, gradient_checkpointing=False, report_to="none",
        save_strategy="no", logging_steps=1, disable_tqdm=True, dataloader_pin_memory=False, seed=0,
        max_steps=rollouts * sizes.updates_per_rollout, gradient_accumulation_steps=1,
        per_device_train_batch_size=sizes.mini_batch_size * training.group_size,
        steps_per_generation=sizes.updates_per_rollout, num_iterations=1, num_generations=training.group_size,
        shuffle_dataset=False, max_completion_length=training.max_response_tokens, temperature=training.temperature,
        top_p=1.0, top_k=0, loss_type="grpo", epsilon=clip["clip_low"], epsilon_high=clip["clip_high"], beta=0.0,
        scale_rewards="group", learning_rate=training.learning_rate, lr_scheduler_type="constant",
        adam_beta1=training.adam_betas[0], adam_beta2=training.adam_betas[1], weight_decay=training.weight_decay,
        max_grad_norm=training.gradient_clip,
    )  # fmt: skip


def _tokenizer(setting: Setting, problems: list[Problem]) -> Any:
    """Load the base model's tokenizer, and refuse one that would give TRL other prompts than the engine's."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(setting.base, padding_side="left")
    prompts = [problem.prompt for problem in problems]
    if tokenizer(prompts).input_ids != Vocabulary.of(setting.task).encode_prompts(prompts):
        raise StoreError(f"{setting.base}: its tokenizer does not give the engine's token ids")
    return tokenizer


class _Grader:
    """The task's grader as a TRL reward function; keeps how many tokens each rollout had."""

    __name__ = "grader"

    def __init__(self, setting: Setting, problems: list[Problem]):
        self._task, self._vocabulary = setting.task, Vocabulary.of(setting.task)
        self._gold = {problem.prompt: problem.gold for problem in problems}
        self.tokens: list[int] = []

    def __call__(self, prompts: list[str], completion_ids: list[list[int]], **_: Any) -> list[float]:
        self.tokens.append(sum(map(len, completion_ids)))
        texts = map(self._vocabulary.decode, completion_ids)
        return [
            float(self._task.grade(text, self._gold[prompt]).correct)
            for text, prompt in zip(texts, prompts, strict=True)
        ]


def _rollout_clock(trainer: Any, updates: int) -> list[float]:
    """Make a trainer note the time at the end of each rollout's last update."""
    from transformers import PrinterCallback, TrainerCallback

    times: list[float] = []

    class Clock(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ARG002
            if state.global_step % updates == 0:
                times.append(time.perf_counter())

    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(Clock())
    return times


def measure_memory(setting: Setting) -> list[Measurement]:
    """Peak memory of finished runs beside the base model, and of a training job of the largest rollout, as it says."""
    regime = max(
        setting.study.grid.regimes, key=lambda name: setting.study.regime(setting.suite, name).train_batch_size
    )
    peaks = {f"peak memory of a short job, {regime}": _short_job_memory(setting, regime)}
    finished = [
        read_json(path, RunRecord) for path in setting.base.parents[2].glob(f"{setting.suite}_*/seed*/run.json")
    ]
    if finished:
        peaks["peak memory of finished runs"] = max(record.provenance.peak_memory_mb for record in finished)
    return [Measurement(name, megabytes, "MB", at_most=MEMORY_MB) for name, megabytes in peaks.items()]


def _short_job_memory(setting: Setting, regime: str) -> float:
    suite = setting.study.suites[setting.suite]
    prompts = 2 * setting.study.regime(setting.suite, regime).train_batch_size
    short = suite.model_copy(update={"training": suite.training.model_copy(update={"prompts": prompts})})
    with TemporaryDirectory() as name:
        place = Path(name)
        suites = setting.study.suites | {setting.suite: short}
        write_json(place / "study.json", setting.study.model_copy(update={"suites": suites}))
        for split in (suite.train_split, suite.validation.split):
            problems = setting.task.problems(split, setting.study.root_seed, {})
            write_problems(place / f"{split}.parquet", suite.task, setting.task.ability, split, problems)
        command: list[str | Path] = [
            sys.executable, SCRIPTS / "train_policy.py", "--config", place / "study.json",
            "--cell", f"{setting.suite}_{REFERENCE}_{regime}", "--train-data", place / f"{suite.train_split}.parquet",
            "--validation-data", place / f"{suite.validation.split}.parquet", "--base", setting.base,
            "--run-directory", place / "run",
        ]  # fmt: skip
        # Through a shell that stays: a process started by this one directly inherits this one's peak.
        subprocess.run(["sh", "-c", '"$@"; exit $?', "sh", *command], check=True, stderr=subprocess.DEVNULL)
        return read_json(place / "run" / "run.json", RunRecord).provenance.peak_memory_mb


if __name__ == "__main__":
    run(main)
