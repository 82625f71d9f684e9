"""Rollouts by transformers' `generate` behind verl's interface of a rollout server: no vLLM, on any device.

Each rank of the trainer has one server (a Ray actor). Requests that arrive together are generated together; every
request has a random stream of its own, so that its response depends on no other request.
"""

import asyncio
import hashlib
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import ray
import torch
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig
from verl.plugin.platform import get_platform
from verl.workers.rollout import base, replica

from acpo.engines.generation import generate
from acpo.engines.verl.overrides import PLUGIN
from acpo.streams import stream

NAME = "transformers"
MODULES = "VERL_USE_EXTERNAL_MODULES"
SECONDS_TO_GATHER = 0.05


@dataclass(frozen=True)
class Request:
    """One response to make."""

    prompt: tuple[int, ...]
    temperature: float
    limit: int
    stream: tuple[Any, ...]


def respond(model: Any, requests: list[Request], end_tokens: frozenset[int]) -> list[tuple[list[int], list[float]]]:
    """Make the responses of a batch.

    Args:
        model: A causal language model of transformers.
        requests: What to answer.
        end_tokens: Tokens that end a response; the one that does is part of it.

    Returns:
        Tokens and their log-probabilities at the request's temperature, for each request.
    """
    longest = max(request.limit for request in requests)
    draws = np.stack([stream(*request.stream).random(longest) for request in requests])
    heats = [request.temperature for request in requests]
    made = generate(model, [request.prompt for request in requests], draws, heats, end_tokens)
    return [
        (drawn.tokens[: request.limit], drawn.log_probs[: request.limit])
        for drawn, request in zip(made, requests, strict=True)
    ]


@dataclass
class _Waiting:
    request: Request
    answer: "asyncio.Future[tuple[list[int], list[float]]]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class TransformersServer:
    """Holds a copy of the policy and answers requests in batches; a Ray actor."""

    def __init__(self, config: Any, model_config: Any, replica_rank: int):
        """Make the model; its weights come with the first `update_weights`."""
        self._config, self._rank = config, replica_rank
        path = model_config.path
        self._model = AutoModelForCausalLM.from_config(
            AutoConfig.from_pretrained(path), dtype=getattr(torch, config.dtype), attn_implementation="sdpa"
        )
        self._model.to(get_platform().device_name).eval()
        settings = GenerationConfig.from_pretrained(path)
        ends = settings.eos_token_id
        self._end_tokens = frozenset(ends if isinstance(ends, list) else [ends])
        self._steps = 0
        self._asked: Counter[tuple[int, ...]] = Counter()
        self._waiting: list[_Waiting] = []
        self._task: asyncio.Task[None] | None = None

    async def update_weights(self, weights: dict[str, Tensor], global_steps: int | None) -> None:
        """Take the policy's weights after a step."""
        missing, unexpected = self._model.load_state_dict(weights, strict=False)
        tied = set(getattr(self._model, "all_tied_weights_keys", None) or {})
        if set(missing) - tied or unexpected:
            raise RuntimeError(f"the trainer's weights do not fit the rollout's model: {missing} {unexpected}")
        self._steps = self._steps if global_steps is None else global_steps
        self._asked.clear()

    async def generate(
        self, *, prompt_ids: list[int], sampling_params: dict[str, Any], **_unused: Any
    ) -> replica.TokenOutput:
        """Answer one request (see verl's `LLMServerClient.generate`)."""
        prompt = tuple(prompt_ids)
        number = self._asked[prompt]
        self._asked[prompt] += 1
        name = hashlib.sha256(repr(prompt).encode()).hexdigest()
        limit = sampling_params.get("max_tokens") or self._config.response_length
        request = Request(
            prompt, sampling_params["temperature"], limit,
            (self._config.seed, "verl rollout", self._rank, self._steps, name, number),
        )  # fmt: skip
        waiting = _Waiting(request)
        self._waiting.append(waiting)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())
        tokens, log_probs = await waiting.answer
        ended = bool(tokens) and tokens[-1] in self._end_tokens
        return replica.TokenOutput(
            token_ids=tokens, log_probs=log_probs, stop_reason="completed" if ended else "length",
            extra_fields={"global_steps": self._steps},
        )  # fmt: skip

    async def _work(self) -> None:
        """Answer what waits, in batches; requests that come meanwhile are in the next one."""
        while self._waiting:
            await asyncio.sleep(SECONDS_TO_GATHER)
            size = self._config.max_num_seqs
            batch, self._waiting = self._waiting[:size], self._waiting[size:]
            requests = [waiting.request for waiting in batch]
            try:
                answers = await asyncio.to_thread(respond, self._model, requests, self._end_tokens)
            except Exception as error:
                for waiting in batch:
                    waiting.answer.set_exception(error)
                continue
            for waiting, answer in zip(batch, answers, strict=True):
                waiting.answer.set_result(answer)

    async def sleep(self) -> None:
        """Do nothing: the model stays where it is."""

    async def wake_up(self, **_unused: Any) -> None:
        """Do nothing: the model stays where it is."""


class TransformersReplica(replica.RolloutReplica):  # type: ignore[misc]
    """Starts one server next to its rank of the trainer."""

    async def launch_servers(self) -> None:
        """See `RolloutReplica.launch_servers`."""
        if self.world_size != 1:
            raise ValueError("rollouts by transformers run on one rank: set tensor_parallel to 1")
        node = await self.workers[0].__ray_call__.remote(lambda _: ray.get_runtime_context().get_node_id())
        modules = os.environ.get(MODULES, "").split(",")
        lighter = {MODULES: ",".join(module for module in modules if module != PLUGIN)}
        server = ray.remote(TransformersServer).options(
            runtime_env={"env_vars": lighter},
            scheduling_strategy=ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=False),
            name=_server_name(self.replica_rank), max_concurrency=self.max_concurrency,
        ).remote(self.config, self.model_config, self.replica_rank)  # fmt: skip
        self.servers = [server]
        self._server_handle, self._server_address = server, f"{NAME}-{self.replica_rank}"


class TransformersAdapter(base.BaseRollout):  # type: ignore[misc]
    """The trainer's end: hands the weights of its rank to the server of its rank."""

    async def resume(self, tags: list[str]) -> None:
        """Do nothing: the server released nothing."""

    async def release(self) -> None:
        """Do nothing: the server's model stays where it is."""

    async def update_weights(
        self, weights: Iterable[tuple[str, Tensor]], global_steps: int | None = None, **_unused: Any
    ) -> None:
        """See `BaseRollout.update_weights`."""
        server = ray.get_actor(_server_name(int(os.environ["RANK"])))
        copied = {name: tensor.detach().cpu() for name, tensor in weights}
        await server.update_weights.remote(copied, global_steps)


def _server_name(rank: int) -> str:
    return f"{NAME}_server_{rank}_0"


replica.RolloutReplicaRegistry.register(NAME, lambda: TransformersReplica)
base._ROLLOUT_REGISTRY[NAME, "async"] = f"{__name__}.{TransformersAdapter.__name__}"
