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
from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig, LogitsProcessor, LogitsProcessorList
from verl.plugin.platform import get_platform
from verl.workers.rollout import base, replica

from acpo.streams import stream

NAME = "transformers"
SECONDS_TO_GATHER = 0.05


@dataclass(frozen=True)
class Request:
    """One response to make."""

    prompt: tuple[int, ...]
    temperature: float
    limit: int
    stream: tuple[str | int, ...]


class InverseSampler(LogitsProcessor):  # type: ignore[misc]
    """Chooses each row's next token by the row's own uniform numbers, and keeps the log-probability that it had."""

    def __init__(self, temperature: Tensor, draws: Tensor):
        """Take `temperature` (rows,) and uniform `draws` (rows, longest response)."""
        self._temperature, self._draws = temperature, draws
        self.log_probs: list[Tensor] = []

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:  # noqa: ARG002
        """Return scores (rows, vocabulary) that leave only the chosen token."""
        log_probs = torch.log_softmax(scores.float() / self._temperature[:, None], -1)
        cumulative = log_probs.double().exp().cumsum(-1)
        draw = self._draws[:, len(self.log_probs), None] * cumulative[:, -1:]
        chosen = torch.searchsorted(cumulative, draw, right=True).clamp_max(scores.shape[1] - 1)
        self.log_probs.append(log_probs.gather(1, chosen)[:, 0])
        return torch.full_like(scores, -torch.inf).scatter(1, chosen, 0.0)


@torch.no_grad()
def generate(
    model: Any, requests: list[Request], end_tokens: set[int], padding: int
) -> list[tuple[list[int], list[float]]]:
    """Make the responses of a batch.

    Args:
        model: A causal language model of transformers.
        requests: What to answer.
        end_tokens: Tokens that end a response; the one that does is part of it.
        padding: Token that fills up shorter rows.

    Returns:
        Tokens and their log-probabilities at the request's temperature, for each request.
    """
    device, width = model.device, max(len(request.prompt) for request in requests)
    limit = max(request.limit for request in requests)
    prompts = [[padding] * (width - len(request.prompt)) + list(request.prompt) for request in requests]
    mask = [[0] * (width - len(request.prompt)) + [1] * len(request.prompt) for request in requests]
    draws = np.stack([stream(*request.stream).random(limit) for request in requests])
    sampler = InverseSampler(
        torch.tensor([request.temperature for request in requests], device=device), torch.tensor(draws, device=device)
    )
    settings = GenerationConfig(
        do_sample=False, max_new_tokens=limit, eos_token_id=sorted(end_tokens) or None, pad_token_id=padding
    )
    tokens = model.generate(
        input_ids=torch.tensor(prompts, device=device), attention_mask=torch.tensor(mask, device=device),
        generation_config=settings, logits_processor=LogitsProcessorList([sampler]),
    )[:, width:].tolist()  # fmt: skip
    log_probs = torch.stack(sampler.log_probs, 1).tolist()
    made = []
    for row, request in enumerate(requests):
        ends = [place + 1 for place, token in enumerate(tokens[row]) if token in end_tokens]
        length = min([*ends, request.limit, len(tokens[row])])
        made.append((tokens[row][:length], log_probs[row][:length]))
    return made


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
        self._end_tokens = set(ends) if isinstance(ends, list) else {ends} - {None}
        self._padding = settings.pad_token_id or 0
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
                answers = await asyncio.to_thread(generate, self._model, requests, self._end_tokens, self._padding)
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
        server = ray.remote(TransformersServer).options(
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
