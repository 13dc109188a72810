"""vLLM in this process: an `AsyncLLM` on a thread and event loop of its own, on a CPU or a GPU from the same code.

Left out: several machines and tensor parallelism (serve the model and use the `openai` engine). At temperature 0 the
log-probabilities returned are those at temperature 1 under the same mask.
"""

from __future__ import annotations

import asyncio
import atexit
import itertools
import re
import time
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import Future
from functools import lru_cache
from typing import Any, TypeVar

from agents.engines import vllm_process as process
from agents.engines.choices import ChoiceMask
from sim.answers import schema
from sim.types import Choice, Completion, EngineFailure, Form, Logprobs, Request, Text, Tokens, Usage

T = TypeVar("T")


class VLLMEngine:
    """Answers from a model served by vLLM; blocks until the model is loaded (14–60 s). Raises EngineFailure.

    `model`: "embedded", a folder or a hub name. `adapters`: LoRA folders by policy name. `max_model_len`: tokens of
    prompt and answer together. `seed`: of the engine; each request brings its own.
    """

    def __init__(
        self,
        model: str = "embedded",
        *,
        dtype: str = "auto",
        max_model_len: int = 4096,
        max_num_seqs: int = 64,
        seed: int = 0,
        adapters: Mapping[str, str] | None = None,
        max_lora_rank: int = 32,
        gpu_memory_utilization: float = 0.85,
    ) -> None:
        settings: dict[str, Any] = {
            "dtype": dtype,
            "max_model_len": max_model_len,
            "max_num_seqs": max_num_seqs,
            "seed": seed,
            "gpu_memory_utilization": gpu_memory_utilization,
        }
        if adapters:
            # One place more than adapters: on a CPU, vLLM gives base requests in a mixed batch the last place's
            # adapter, so it must stay empty.
            settings |= {"enable_lora": True, "max_loras": len(adapters) + 1, "max_lora_rank": max_lora_rank}
        self._adapters = dict(adapters or {})
        self._limit = max_model_len
        self._numbers = itertools.count()
        self._served = process.Served(model, settings)
        self._tokenizer = self._served.tokenizer
        self._end: int = self._tokenizer.eos_token_id
        marks = [str(mark) for mark in self._tokenizer.added_tokens_decoder.values() if mark.special]
        self._mark = re.compile("|".join(map(re.escape, sorted(marks, key=len, reverse=True))) or r"(?!)")
        self.mask = lru_cache(4096)(self._build_mask)
        atexit.register(self.close)

    def submit(self, request: Request) -> Future[Completion]:
        """Start a call at once, from any thread. A request that cannot be answered is a completion with `error`."""
        return self._start(self._answer(request, time.monotonic()))

    def score(self, requests: Sequence[Request], continuations: Sequence[Tokens]) -> Future[Sequence[Logprobs]]:
        """Log-probabilities of given answers (ids with end-of-turn), one per token.

        Choice and Text: of the masked and tempered distribution that `submit` samples from, −inf where the answer
        leaves the mask. Form: of the model's own distribution at temperature 1.
        """

        async def all_of() -> Sequence[Logprobs]:
            pairs = zip(requests, continuations, strict=True)
            return await asyncio.gather(*(self._score(request, ids) for request, ids in pairs))

        return self._start(all_of())

    def close(self) -> None:
        """Stop the model's processes and threads; calls still open fail with EngineFailure. Idempotent."""
        atexit.unregister(self.close)
        self._served.close()

    def _start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return self._served.start(work)

    async def _answer(self, request: Request, began: float) -> Completion:
        try:
            prompt = self._prompt(request)
            params = self._sampling(request, len(prompt))
            output = await self._generate(request, prompt, params)
        except process.Refused as refusal:
            return Completion(text=None, finish="error", error=str(refusal), latency=time.monotonic() - began)
        answer = output.outputs[0]
        ids = tuple(answer.token_ids)
        chosen = self.mask(request.format.options).option(ids) if isinstance(request.format, Choice) else None
        return Completion(
            text=answer.text if chosen is None else chosen,
            finish="stop" if answer.finish_reason == "stop" else "length",
            prompt_ids=tuple(prompt),
            ids=ids,
            logprobs=tuple(at[token].logprob for at, token in zip(answer.logprobs, ids, strict=True)),
            distribution="processed",
            usage=Usage(prompt=len(prompt), cached=output.num_cached_tokens or 0, completion=len(ids)),
            latency=time.monotonic() - began,
            policy=request.policy,
        )

    async def _generate(self, request: Request, prompt: Sequence[int], params: Any) -> Any:
        adapter = self._adapter(request.policy)
        number = str(next(self._numbers))
        return await self._served.generate(list(prompt), params, number, adapter, request.priority)

    def _prompt(self, request: Request) -> list[int]:
        """The chat as token ids. Texts that spell a special token are broken up: nobody but the engine takes turns."""
        chat = [{"role": m.role, "content": self._mark.sub(_broken, m.text)} for m in request.messages]
        try:
            ids: list[int] = self._tokenizer.apply_chat_template(
                chat, add_generation_prompt=True, tokenize=True, return_dict=False
            )
        except Exception as error:
            raise EngineFailure(f"the chat template of {self._served.model} refused the messages: {error}") from error
        if len(ids) >= self._limit:
            raise process.Refused(f"a prompt of {len(ids)} tokens leaves no room in a context of {self._limit}")
        return ids

    def _sampling(self, request: Request, prompt: int) -> Any:
        """vLLM's parameters: how tokens are drawn, the constraint of the format, the bound on the answer."""
        sampling = request.sampling
        room = self._limit - prompt
        limit = min(request.max_tokens or sampling.max_tokens, room)
        constraint: dict[str, Any] = {}
        if isinstance(request.format, Form):
            constraint = {"structured_outputs": process.json_constraint(schema(request.format))}
        else:
            mask, limit = self._answer_mask(request.format, limit, room)
            constraint = {"extra_args": {process.KEY: mask}}
        return process.sampling_params(
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            seed=request.seed,
            max_tokens=limit,
            logprobs=0,
            **constraint,
        )

    def _answer_mask(self, form: Choice | Text, limit: int, room: int) -> tuple[dict[str, Any], int]:
        """What the workers need to know of the answer, and the most tokens it can take."""
        if isinstance(form, Text):
            if room < 2 or form.max_chars < 1:
                raise process.Refused(f"no room for a text of {form.max_chars} characters in {room} tokens")
            limit = max(limit, 2)
            return {"text": [form.max_chars, limit, self._end]}, limit
        try:
            choices = self.mask(form.options)
        except ValueError as error:
            raise process.Refused(str(error)) from error
        if choices.longest > room:
            raise process.Refused(f"the longest option takes {choices.longest} tokens, the context has room for {room}")
        return {"choices": [list(sequence) for sequence in choices.sequences]}, choices.longest

    async def _score(self, request: Request, ids: Tokens) -> Logprobs:
        prompt = self._prompt(request)
        if isinstance(request.format, Form):
            return await self._score_raw(request, prompt, ids)
        steps = (self._conditional(request, prompt, ids, position) for position in range(len(ids)))
        return tuple(await asyncio.gather(*steps))

    async def _conditional(self, request: Request, prompt: list[int], ids: Tokens, position: int) -> float:
        """Log-probability of one token given those before it, as the sampler would draw it."""
        prefix, token = ids[:position], ids[position]
        if isinstance(request.format, Choice):
            allowed = self.mask(request.format.options).allowed(prefix)
            if token not in allowed:
                return float("-inf")
            if len(allowed) == 1:
                return 0.0
        params = self._sampling(request, len(prompt))
        params.max_tokens, params.logprobs, params.logprob_token_ids = 1, None, [token]
        params.extra_args[process.KEY]["prefix"] = list(prefix)
        output = await self._generate(request, [*prompt, *prefix], params)
        return float(output.outputs[0].logprobs[0][token].logprob)

    async def _score_raw(self, request: Request, prompt: list[int], ids: Tokens) -> Logprobs:
        params = process.sampling_params(temperature=1.0, max_tokens=1, prompt_logprobs=0)
        output = await self._generate(request, [*prompt, *ids], params)
        rows = output.prompt_logprobs[len(prompt) :]
        return tuple(float(row[token].logprob) for row, token in zip(rows, ids, strict=True))

    def _adapter(self, policy: str) -> Any:
        if not policy:
            return None
        if policy not in self._adapters:
            raise EngineFailure(f"policy {policy!r} is not loaded; loaded: {sorted(self._adapters)}")
        number = list(self._adapters).index(policy) + 1
        return process.adapter(policy, number, self._adapters[policy])

    def _build_mask(self, options: tuple[str, ...]) -> ChoiceMask:
        """The options as token sequences of this model. Raises ValueError."""
        return ChoiceMask(options, self._canonical, self._end)

    def _canonical(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(self._mark.sub(_broken, text), add_special_tokens=False)
        return ids


def _broken(mark: re.Match[str]) -> str:
    """A special token's text with a space in it, so that it is read as text."""
    return f"{mark[0][:1]} {mark[0][1:]}"
