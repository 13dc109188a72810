"""vLLM in this process: an `AsyncLLM` on a thread and event loop of its own, on a CPU or a GPU from the same code.

Left out: several machines and tensor parallelism (serve the model and use the `openai` engine). At temperature 0 the
log-probabilities returned are those at temperature 1 under the same mask. Options that were not sampled have one where
vLLM tells it on the way to the one that was: not where several hang on one branch that was not taken, nor where more
than 20 tokens could follow and theirs is none of the likeliest 20, nor of tokens sampled in one batch with a score.
"""

from __future__ import annotations

import asyncio
import atexit
import itertools
import math
import time
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from agents.engines import vllm_process as process
from agents.engines.encoding import Encoder, Refused
from agents.engines.lexicon import Lexicon
from sim.answers import schema
from sim.types import (
    Choice,
    Completion,
    EngineFailure,
    Form,
    Format,
    Logprobs,
    OptionLogprobs,
    Request,
    Text,
    Tokens,
    Usage,
)

T = TypeVar("T")

RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""Largest ranks of adapters that vLLM can be started with."""


@dataclass(eq=False)
class _Adapter:
    """A LoRA adapter that is served, and how many open calls name it."""

    folder: str
    number: int
    """vLLM's id; never used twice, since vLLM doesn't read a known id again."""
    open: int = 0
    removed: bool = False


class VLLMEngine:
    """Answers from a model served by vLLM; blocks until the model is loaded (14–60 s). Raises EngineFailure.

    `model`: "embedded", a folder or a hub name. `adapters`: LoRA folders by policy name; `max_adapters`: places for
    them and for those added later (as many as `adapters` where not given). `max_lora_rank`: the largest rank of an
    adapter; `lora_modules`: the layers that it may change, by the last part of their names (all where not given); on a
    CPU the time of a call grows with both. `max_model_len`: tokens of prompt and answer together. `seed`: of the
    engine; each request brings its own.
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
        max_adapters: int | None = None,
        max_lora_rank: int = 32,
        lora_modules: Sequence[str] | None = None,
        gpu_memory_utilization: float = 0.85,
    ) -> None:
        settings: dict[str, Any] = {
            "dtype": dtype,
            "max_model_len": max_model_len,
            "max_num_seqs": max_num_seqs,
            "seed": seed,
            "gpu_memory_utilization": gpu_memory_utilization,
        }
        self._places = len(adapters or {}) if max_adapters is None else max_adapters
        if len(adapters or {}) > self._places:
            raise EngineFailure(f"{len(adapters or {})} adapters for {self._places} places; raise max_adapters")
        if self._places:
            # One place more than adapters: on a CPU, vLLM gives base requests in a mixed batch the last place's
            # adapter, so it must stay empty.
            settings |= {"enable_lora": True, "max_loras": self._places + 1, "max_lora_rank": _rank(max_lora_rank)}
            settings["lora_target_modules"] = list(lora_modules) if lora_modules else None
        self._modules = frozenset(lora_modules or ())
        for folder in (adapters or {}).values():
            if refusal := self._unfit(folder):
                raise EngineFailure(refusal)
        self._adapter_numbers = itertools.count(1)
        self._adapters = {
            name: _Adapter(folder, next(self._adapter_numbers)) for name, folder in (adapters or {}).items()
        }
        self._limit = max_model_len
        self._numbers = itertools.count()
        self._served = process.Served(model, settings)
        self._encoder = Encoder(self._served.tokenizer, model, max_model_len)
        self.mask = self._encoder.mask
        """The choice mask of a tuple of options over this model's tokens."""
        atexit.register(self.close)

    @cached_property
    def _lexicon(self) -> Lexicon:
        return Lexicon(self._served.tokenizer, self._served.vocabulary, "cpu")

    def banned(self, bounds: tuple[int, int], ids: Tokens) -> tuple[Tokens, ...]:
        """The tokens that could not come at each place of a free text of at most so many characters and tokens."""
        return self._lexicon.along(ids, *bounds, self._encoder.end)

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
            async with self._held(request.policy for request in requests):
                return await asyncio.gather(*(self._score(request, ids) for request, ids in pairs))

        return self._start(all_of())

    def add_policy(self, name: str, folder: str | Path) -> None:
        """Serve the LoRA adapter of a folder under a name that is not in use; blocks until vLLM has read it.

        Raises ValueError with one line where the folder, the name or the number of places won't do.
        """

        async def add() -> str:
            try:
                await self._add(name, str(folder))
            except Refused as refusal:
                return str(refusal)
            return ""

        if refusal := self._start(add()).result():
            raise ValueError(refusal)

    def remove_policy(self, name: str) -> None:
        """Take no more calls for a policy; vLLM drops it once its open ones are answered. Raises ValueError."""

        async def remove() -> bool:
            adapter = self._adapters.get(name)
            if adapter is None or adapter.removed:
                return False
            adapter.removed = True
            await self._drop_unused(name)
            return True

        if not self._start(remove()).result():
            raise ValueError(f"there is no policy {name!r}; loaded: {self._names()}")

    def close(self) -> None:
        """Stop the model's processes and threads; calls still open fail with EngineFailure. Idempotent."""
        atexit.unregister(self.close)
        self._served.close()

    def _start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return self._served.start(work)

    async def _answer(self, request: Request, began: float) -> Completion:
        try:
            async with self._held([request.policy]):
                prompt = self._encoder.prompt(request.messages)
                params = self._sampling(request, len(prompt))
                output = await self._generate(request, prompt, params)
        except Refused as refusal:
            return Completion(text=None, finish="error", error=str(refusal), latency=time.monotonic() - began)
        answer = output.outputs[0]
        ids = tuple(answer.token_ids)
        chosen, options = self._chosen(request.format, ids, answer.logprobs)
        return Completion(
            text=answer.text if chosen is None else chosen,
            finish="stop" if answer.finish_reason == "stop" else "length",
            prompt_ids=prompt,
            ids=ids,
            logprobs=tuple(at[token].logprob for at, token in zip(answer.logprobs, ids, strict=True)),
            distribution="processed",
            option_logprobs=options,
            usage=Usage(prompt=len(prompt), cached=output.num_cached_tokens or 0, completion=len(ids)),
            latency=time.monotonic() - began,
            policy=request.policy,
        )

    def _chosen(
        self, form: Format, ids: Tokens, told: Sequence[Mapping[int, Any]]
    ) -> tuple[str | None, OptionLogprobs]:
        """The option that was sampled, and log P of all of them as far as vLLM told of the places on its path."""
        if not isinstance(form, Choice):
            return None, ()
        mask = self.mask(form.options)
        known = {
            ids[:n]: {token: one.logprob for token, one in at.items() if math.isfinite(one.logprob)}
            for n, at in enumerate(told)
        }
        return mask.option(ids), mask.option_logprobs(known)

    async def _generate(self, request: Request, prompt: Sequence[int], params: Any) -> Any:
        adapter = self._lora(request.policy) if request.policy else None
        number = str(next(self._numbers))
        return await self._served.generate(list(prompt), params, number, adapter, request.priority)

    def _sampling(self, request: Request, prompt: int) -> Any:
        """vLLM's parameters: how tokens are drawn, the constraint of the format, the bound on the answer."""
        sampling = request.sampling
        room = self._limit - prompt
        limit = min(request.max_tokens or sampling.max_tokens, room)
        particular: dict[str, Any] = {"logprobs": 0}
        if isinstance(request.format, Form):
            particular["structured_outputs"] = process.json_constraint(schema(request.format))
        else:
            mask, limit = self._answer_mask(request.format, limit, room)
            particular["extra_args"] = {process.KEY: mask}
        if isinstance(request.format, Choice):
            told = min(self.mask(request.format.options).widest, process.LOGPROBS)
            particular |= {"logprobs": told, "detokenize": False}  # else all that are told of would be decoded too
        return process.sampling_params(
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            seed=request.seed,
            max_tokens=limit,
            **particular,
        )

    def _answer_mask(self, form: Choice | Text, limit: int, room: int) -> tuple[dict[str, Any], int]:
        """What the workers need to know of the answer, and the most tokens it can take."""
        if isinstance(form, Text):
            limit = self._encoder.text_tokens(form, limit, room)
            return {"text": [form.max_chars, limit, self._encoder.end]}, limit
        choices = self._encoder.choices(form.options, room)
        return {"choices": [list(sequence) for sequence in choices.sequences]}, choices.longest

    async def _score(self, request: Request, ids: Tokens) -> Logprobs:
        prompt = self._encoder.prompt(request.messages)
        if isinstance(request.format, Form):
            return await self._score_raw(request, prompt, ids)
        steps = (self._conditional(request, prompt, ids, position) for position in range(len(ids)))
        return tuple(await asyncio.gather(*steps))

    async def _conditional(self, request: Request, prompt: Tokens, ids: Tokens, position: int) -> float:
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

    async def _score_raw(self, request: Request, prompt: Tokens, ids: Tokens) -> Logprobs:
        params = process.sampling_params(temperature=1.0, max_tokens=1, prompt_logprobs=0)
        output = await self._generate(request, [*prompt, *ids], params)
        rows = output.prompt_logprobs[len(prompt) :]
        return tuple(float(row[token].logprob) for row, token in zip(rows, ids, strict=True))

    # --- adapters ------------------------------------------------------------------------------------

    def _names(self) -> list[str]:
        return sorted(name for name, adapter in self._adapters.items() if not adapter.removed)

    def _lora(self, name: str) -> Any:
        return process.adapter(name, self._adapters[name].number, self._adapters[name].folder)

    def _unfit(self, folder: str) -> str:
        """Why the adapter of a folder cannot be served, or nothing. vLLM would leave layers out without a word."""
        file = Path(folder) / "adapter_model.safetensors"
        if not file.is_file():
            return f"{folder} holds no adapter_model.safetensors; pickled weights are never loaded"
        try:
            changed = process.changed_modules(file)
        except Exception as error:
            return f"{file} cannot be read: {' '.join(str(error).split())}"[:300]
        if self._modules and (more := sorted(changed - self._modules)):
            return f"{folder} changes {', '.join(more)}; served are {', '.join(sorted(self._modules))} (lora_modules)"
        return ""

    async def _add(self, name: str, folder: str) -> None:
        if not name or name in self._adapters:
            raise Refused(f"there is a policy {name!r} already")
        if len(self._adapters) >= self._places:
            raise Refused(f"no place for policy {name!r} beside {sorted(self._adapters)}; raise max_adapters")
        if refusal := self._unfit(folder):
            raise Refused(refusal)
        self._adapters[name] = _Adapter(folder, next(self._adapter_numbers))
        try:
            await self._served.load(self._lora(name))
        except BaseException:
            del self._adapters[name]
            raise

    @asynccontextmanager
    async def _held(self, policies: Iterable[str]) -> AsyncIterator[None]:
        """Keep policies in vLLM until the work is done, even if they are removed meanwhile. Raises EngineFailure."""
        names = set(policies) - {""}
        for name in names:
            if name not in self._names():
                raise EngineFailure(f"policy {name!r} is not loaded; loaded: {self._names()}")
        for name in names:
            self._adapters[name].open += 1
        try:
            yield
        finally:
            for name in names:
                self._adapters[name].open -= 1
                await self._drop_unused(name)

    async def _drop_unused(self, name: str) -> None:
        adapter = self._adapters[name]
        if adapter.removed and not adapter.open:
            await self._served.unload(adapter.number)
            del self._adapters[name]


def _rank(least: int) -> int:
    """The smallest rank that vLLM can be started with for adapters of this one. Raises EngineFailure."""
    found = next((rank for rank in RANKS if rank >= least), None)
    if found is None:
        raise EngineFailure(f"vLLM serves adapters up to rank {RANKS[-1]}, not {least}")
    return found
