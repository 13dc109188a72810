"""A small model in this process on plain torch, on a CPU or a GPU: exact answers to few distinct prompts.

What a request gets depends on the request, the policy's weights, the machine and the number of threads only, not on
what else waits or in which order it came: every distinct prompt goes through the model alone. Requests equal but for
their seeds share that pass; a choice takes one for the whole trie of its options, and costs nothing more until the
policy changes. With `rows` above 1 texts are decoded together, faster, and equal to rounding only.

Left out: JSON constraints (such requests fail, each by itself) and many prompts in one pass (that is vLLM's strength).
At temperature 0 the log-probabilities returned are those at temperature 1 under the same mask.
"""

from __future__ import annotations

import itertools
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import torch
from transformers import AutoTokenizer

from agents.engines.bounds import START, Progress, walk
from agents.engines.choices import ChoiceMask
from agents.engines.drawing import Fork, Law, along, choose, forks_of, law, of_options
from agents.engines.embedded import EmbeddedModelError, embedded_model
from agents.engines.encoding import Encoder, Refused
from agents.engines.lexicon import Lexicon
from agents.engines.reading import Policy, Reader, Reading, stacked
from agents.engines.weights import Adapted, WeightsError, is_adapter, load_model
from sim.types import (
    Choice,
    Completion,
    EngineFailure,
    Form,
    Logprobs,
    OptionLogprobs,
    Request,
    Sampling,
    Text,
    Tokens,
    Usage,
)

T = TypeVar("T")

NO_FORMS = "the torch engine has no JSON constraint"
_FORKS_KEPT = 4096
"""Choices (of one policy, prompt and list of options) whose logits are kept."""


@dataclass(eq=False)
class _Job:
    """One call on its way."""

    request: Request
    policy: Policy
    began: float
    """Seconds of the monotonic clock."""
    future: Future[Completion] = field(default_factory=Future)
    prompt: Tokens = ()
    limit: int = 0
    """Most tokens of a text."""


@dataclass(eq=False)
class _Writing:
    """A text under way."""

    job: _Job
    cached: int
    """Prompt tokens that were not read for it."""
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    progress: Progress = START
    done: bool = False


_Item: TypeAlias = _Job | Callable[[], None] | None
_Groups: TypeAlias = dict[tuple[Any, ...], list[_Job]]
"""Waiting calls, together with those they share their passes with."""


class TorchEngine:
    """Answers from a model in this process; blocks until it is loaded. Raises EngineFailure.

    `model`: "embedded", a folder or a hub name. `dtype`: a torch type, or "auto" (the model's own; float32 on a CPU).
    `max_model_len`: tokens of prompt and answer together. `threads`: of torch on the CPU, set for the whole process.
    `adapters`: folders by policy name, each with a LoRA adapter or a whole model of the same vocabulary. `block`:
    tokens of which keys and values are kept together, `kept_tokens` in all. `rows`: texts decoded together.
    """

    def __init__(
        self,
        model: str = "embedded",
        *,
        dtype: str = "auto",
        device: str = "auto",
        max_model_len: int = 4096,
        threads: int | None = None,
        adapters: Mapping[str, str] | None = None,
        block: int = 64,
        kept_tokens: int = 8192,
        rows: int = 1,
    ) -> None:
        self._limit, self._threads, self._rows = max_model_len, threads, rows
        self._device = torch.device(_device(device))
        self._dtype = _dtype(dtype, self._device)
        self._serials = itertools.count()
        self._failure = ""
        self._lock = threading.Lock()
        try:
            folder = embedded_model() if model == "embedded" else model
            base = load_model(folder, self._dtype, self._device)
            tokenizer = AutoTokenizer.from_pretrained(folder)
            self._encoder = Encoder(tokenizer, model, max_model_len)
            self._tokenizer, self._vocabulary = tokenizer, base.config.vocab_size
            self._adapted = Adapted(base)
            self._reader = Reader(self._adapted, self._device, block, kept_tokens)
            self._policies = {"": Policy("", base)}
            for name, place in (adapters or {}).items():
                self._load(name, place)
        except (EmbeddedModelError, OSError, ValueError) as error:
            raise EngineFailure(f"torch cannot serve {model}: {error}") from error
        self.mask = self._encoder.mask
        """The choice mask of a tuple of options over this model's tokens."""
        self._forks: OrderedDict[tuple[Policy, Tokens, tuple[Tokens, ...]], dict[Tokens, Fork]] = OrderedDict()
        self._last: tuple[Policy, Tokens, Reading] | None = None
        self._queue: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="agora-torch", daemon=True)
        self._thread.start()

    @cached_property
    def _lexicon(self) -> Lexicon:
        """What free text needs; made when some is asked for."""
        return Lexicon(self._tokenizer, self._vocabulary, torch.device("cpu"))

    def banned(self, bounds: tuple[int, int], ids: Tokens) -> tuple[Tokens, ...]:
        """The tokens that could not come at each place of a free text of at most so many characters and tokens."""
        return self._lexicon.along(ids, *bounds, self._encoder.end)

    @property
    def forwards(self) -> int:
        """Passes through the model so far."""
        return self._reader.forwards

    def submit(self, request: Request) -> Future[Completion]:
        """Start a call, from any thread. A request that cannot be answered is a completion with `error`."""
        began = time.monotonic()
        try:
            with self._lock:
                (policy,) = self._taken([request.policy])
                job = _Job(request, policy, began)
                self._queue.put(job)
        except EngineFailure as failure:
            return _failed(failure)
        return job.future

    def score(self, requests: Sequence[Request], continuations: Sequence[Tokens]) -> Future[Sequence[Logprobs]]:
        """Log-probabilities of given answers (ids with end-of-turn), one per token.

        Choice and Text: of the masked and tempered distribution that `submit` samples from, −inf where the answer
        leaves the mask. Form: of the model's own distribution at temperature 1. The future fails with Refused where a
        request could not be answered.
        """
        pairs = list(zip(requests, continuations, strict=True))
        try:
            with self._lock:
                policies = self._taken([request.policy for request in requests])
        except EngineFailure as failure:
            return _failed(failure)

        def work() -> Sequence[Logprobs]:
            try:
                return [self._score(*pair, policy) for pair, policy in zip(pairs, policies, strict=True)]
            finally:
                self._release(policies)

        return self._start(work)

    def add_policy(self, name: str, folder: str | Path) -> None:
        """Serve the LoRA adapter (or whole model) of a folder under a name that is not in use; blocks until it can.

        Raises WeightsError where the folder or the name won't do, EngineFailure where the engine is closed.
        """
        self._start(lambda: self._load(name, folder)).result()

    def remove_policy(self, name: str) -> None:
        """Take no more calls for a policy; it is freed once its open ones are answered. Raises WeightsError."""
        with self._lock:
            if not name or name not in self._policies:
                raise WeightsError(f"there is no policy {name!r}; loaded: {self._names()}")
            policy = self._policies.pop(name)
            policy.removed = True
            idle = not policy.open
        if idle:
            self._start(lambda: self._free(policy))

    def close(self) -> None:
        """Stop after the pass under way and free the model; open calls fail with EngineFailure. Idempotent."""
        with self._lock:
            self._failure = self._failure or "the engine is closed"
        self._queue.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join()
        for policy in self._policies.values():
            self._reader.forget(policy)
        self._policies.clear()
        self._forks.clear()
        self._last = None
        self._adapted.close()

    # --- policies -----------------------------------------------------------------------------------

    def _names(self) -> list[str]:
        return sorted(filter(None, self._policies))

    def _taken(self, names: Sequence[str]) -> list[Policy]:
        """The policies, each with one more open call. Needs the lock. Raises EngineFailure."""
        if self._failure:
            raise EngineFailure(self._failure)
        if missing := [name for name in names if name not in self._policies]:
            raise EngineFailure(f"policy {missing[0]!r} is not loaded; loaded: {self._names()}")
        taken = [self._policies[name] for name in names]
        for policy in taken:
            policy.open += 1
        return taken

    def _release(self, policies: Sequence[Policy]) -> None:
        """End one open call of each."""
        for policy in policies:
            with self._lock:
                policy.open -= 1
                over = policy.removed and not policy.open
            if over:
                self._free(policy)

    def _load(self, name: str, folder: str | Path) -> None:
        if name in self._policies:
            raise WeightsError(f"there is a policy {name!r} already")
        base = self._policies[""].module
        if is_adapter(folder):
            # The name may come back while a removed policy of that name still answers.
            adapter = f"{name} {next(self._serials)}"
            self._adapted.load(adapter, folder)
            policy = Policy(name, base, adapter)
        else:
            policy = Policy(name, load_model(folder, self._dtype, self._device))
            ours, its = base.config.vocab_size, policy.module.config.vocab_size
            if ours != its:
                raise WeightsError(f"the model {folder} has {its} tokens, the base model {ours}")
        with self._lock:
            self._policies[name] = policy

    def _free(self, policy: Policy) -> None:
        self._reader.forget(policy)
        for key in [key for key in self._forks if key[0] is policy]:
            del self._forks[key]
        if self._last and self._last[0] is policy:
            self._last = None
        if policy.adapter:
            self._adapted.remove(policy.adapter)

    # --- the thread ---------------------------------------------------------------------------------

    def _start(self, work: Callable[[], T]) -> Future[T]:
        """Do something on the engine's thread, after what was asked before."""
        future: Future[T] = Future()

        def task() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                if self._failure:
                    raise EngineFailure(self._failure)
                result = work()
            except Exception as error:
                future.set_exception(_known(error))
            else:
                future.set_result(result)

        with self._lock:
            if self._failure:
                return _failed(EngineFailure(self._failure))
            self._queue.put(task)
        return future

    def _run(self) -> None:
        if self._threads:
            torch.set_num_threads(self._threads)
        groups: _Groups = {}
        with torch.no_grad():
            while not self._failure:
                if not groups:
                    self._take(self._queue.get(), groups)
                while not self._queue.empty():
                    self._take(self._queue.get(), groups)
                if groups and not self._failure:
                    self._answer_most_urgent(groups)
        while not self._queue.empty():
            self._take(self._queue.get(), groups)
        for job in itertools.chain(*groups.values()):
            self._fail(job, EngineFailure(self._failure))

    def _take(self, item: _Item, groups: _Groups) -> None:
        if isinstance(item, _Job):
            try:
                key = self._key(item)
            except Exception as error:
                self._fail(item, _known(error))
            else:
                groups.setdefault(key, []).append(item)
        elif item is not None:
            item()

    def _key(self, job: _Job) -> tuple[Any, ...]:
        """What requests that share their passes have in common. Raises Refused."""
        form = job.request.format
        job.prompt = self._encoder.prompt(job.request.messages)
        room = self._limit - len(job.prompt)
        if isinstance(form, Choice):
            self._encoder.choices(form.options, room)
            return job.policy, job.prompt, form.options
        if isinstance(form, Form):
            raise Refused(NO_FORMS)
        job.limit = self._text_tokens(job.request, room)
        return job.policy, job.prompt if self._rows == 1 else ()

    def _text_tokens(self, request: Request, room: int) -> int:
        assert isinstance(request.format, Text)
        return self._encoder.text_tokens(request.format, request.max_tokens or request.sampling.max_tokens, room)

    def _answer_most_urgent(self, groups: _Groups) -> None:
        """All of a choice, or as many texts as go together."""
        key = min(groups, key=lambda one: min(job.request.priority for job in groups[one]))
        jobs = sorted(groups.pop(key), key=lambda job: job.request.priority)
        is_text = isinstance(jobs[0].request.format, Text)
        if is_text and len(jobs) > self._rows:
            groups[key] = jobs[self._rows :]
            jobs = jobs[: self._rows]
        jobs = [job for job in jobs if self._begins(job)]
        try:
            if jobs and is_text:
                self._write(jobs)
            elif jobs:
                self._choose(jobs)
        except Exception as error:
            for job in jobs:
                if not job.future.done():
                    self._release([job.policy])
                    job.future.set_exception(_known(error))

    def _begins(self, job: _Job) -> bool:
        """Whether nobody has cancelled the call; from here on nobody can."""
        if job.future.set_running_or_notify_cancel():
            return True
        self._release([job.policy])
        return False

    def _fail(self, job: _Job, error: Exception) -> None:
        """End a call that never began: with a completion where the request is at fault."""
        if not self._begins(job):
            return
        self._release([job.policy])
        if isinstance(error, Refused):
            latency = time.monotonic() - job.began
            job.future.set_result(Completion(text=None, finish="error", error=str(error), latency=latency))
        else:
            job.future.set_exception(error)

    def _answered(
        self, job: _Job, text: str | None, ids: Tokens, logprobs: Logprobs, cached: int, options: OptionLogprobs = ()
    ) -> None:
        completion = Completion(
            text=text,
            prompt_ids=job.prompt,
            ids=ids,
            logprobs=logprobs,
            distribution="processed",
            option_logprobs=options,
            usage=Usage(prompt=len(job.prompt), cached=cached, completion=len(ids)),
            latency=time.monotonic() - job.began,
            policy=job.policy.name,
        )
        # The policy is released first: who has waited for its last answer may remove it and its folder.
        self._release([job.policy])
        job.future.set_result(completion)

    # --- choices ------------------------------------------------------------------------------------

    def _choose(self, jobs: Sequence[_Job]) -> None:
        """Answer jobs that differ in seed and sampling only."""
        first = jobs[0]
        assert isinstance(first.request.format, Choice)
        mask = self.mask(first.request.format.options)
        forks, cached = self._forks_of(first.policy, first.prompt, mask)
        ready: dict[tuple[float, float], tuple[dict[Tokens, Law], OptionLogprobs]] = {}
        for job in jobs:
            sampling = job.request.sampling
            how = (sampling.temperature, sampling.top_p)
            if how not in ready:
                laws = _laws(forks, sampling)
                ready[how] = laws, of_options(mask, laws)
            laws, options = ready[how]
            ids = choose(mask, laws, job.request.seed)
            self._answered(job, mask.option(ids), ids, along(mask, laws, ids), cached, options)
            cached = len(job.prompt)

    def _forks_of(self, policy: Policy, prompt: Tokens, mask: ChoiceMask) -> tuple[dict[Tokens, Fork], int]:
        """The logits at every fork of the options' trie, from one pass, and how many prompt tokens it didn't read."""
        key = (policy, prompt, mask.sequences)
        if key in self._forks:
            self._forks.move_to_end(key)
            return self._forks[key], len(prompt)
        prefixes = forks_of(mask)
        if not prefixes:
            return {}, len(prompt)
        # What stands on the way to a fork, parents first.
        nodes = sorted(
            {prefix[:n] for prefix in prefixes for n in range(1, len(prefix) + 1)}, key=lambda p: (len(p), p)
        )
        place = {prefix: i for i, prefix in enumerate(nodes)}
        parents = [place.get(prefix[:-1], -1) for prefix in nodes]
        reading = self._reader.read(policy, prompt, [prefix[-1] for prefix in nodes], parents)
        self._forks[key] = forks = {}
        for prefix in prefixes:
            allowed = mask.allowed(prefix)
            at = place[prefix] + 1 if prefix else 0
            forks[prefix] = Fork(allowed, reading.logits_nv[at, list(allowed)].double())
        if len(self._forks) > _FORKS_KEPT:
            self._forks.popitem(last=False)
        return forks, reading.cached

    # --- texts --------------------------------------------------------------------------------------

    def _write(self, jobs: Sequence[_Job]) -> None:
        """Decode texts of one policy together, their prompts read one by one."""
        policy = jobs[0].policy
        readings = [self._read(policy, job.prompt) for job in jobs]
        rows = [_Writing(job, reading.cached) for job, reading in zip(jobs, readings, strict=True)]
        cache, seen_bt = stacked([reading.layers for reading in readings])
        logits_bv = torch.stack([reading.logits_nv[-1] for reading in readings])
        while True:
            for row, logits_v in zip(rows, logits_bv.cpu(), strict=True):
                if not row.done:
                    self._next_token(row, logits_v)
            if all(row.done for row in rows):
                return
            if self._failure:
                raise EngineFailure(self._failure)
            # A row that is done repeats its last token; nobody reads what comes of it.
            last_b1 = torch.tensor([[row.ids[-1]] for row in rows], device=self._device)
            position_b1 = seen_bt.sum(1, keepdim=True)
            seen_bt = torch.cat([seen_bt, torch.ones_like(position_b1)], dim=1)
            logits_bv = self._reader.forward(policy, last_b1, cache, seen_bt, position_b1)[:, -1]

    def _read(self, policy: Policy, prompt: Tokens) -> Reading:
        """The prompt, read once for texts that follow each other."""
        if self._last and self._last[:2] == (policy, prompt):
            return self._last[2]._replace(cached=len(prompt))
        reading = self._reader.read(policy, prompt)
        self._last = (policy, prompt, reading)
        return reading

    def _next_token(self, row: _Writing, logits_v: torch.Tensor) -> None:
        request = row.job.request
        now = self._text_law(request, logits_v, row.progress, row.job.limit)
        token = now.draw(request.seed, len(row.ids))
        row.ids.append(token)
        row.logprobs.append(float(now.logprobs_k[token]))
        row.progress = walk(self._lexicon.pieces, [token], row.progress)
        if token == self._encoder.end:
            row.done = True
            text = self._encoder.decode(row.ids[:-1])
            self._answered(row.job, text, tuple(row.ids), tuple(row.logprobs), row.cached)

    def _text_law(self, request: Request, logits_v: torch.Tensor, progress: Progress, limit: int) -> Law:
        assert isinstance(request.format, Text)
        banned_v = self._lexicon.mask(progress, request.format.max_chars, limit, self._encoder.end)
        masked_v = logits_v.double().masked_fill(banned_v, -torch.inf)
        return law(masked_v, request.sampling.temperature, request.sampling.top_p)

    # --- scores -------------------------------------------------------------------------------------

    def _score(self, request: Request, ids: Tokens, policy: Policy) -> Logprobs:
        prompt = self._encoder.prompt(request.messages)
        room = self._limit - len(prompt)
        if isinstance(request.format, Choice):
            mask = self._encoder.choices(request.format.options, room)
            forks, _ = self._forks_of(policy, prompt, mask)
            return along(mask, _laws(forks, request.sampling), ids)
        # A chain: the logits at the prompt's end and at each token are those of the next.
        logits_tv = self._reader.read(policy, prompt, ids[:-1], range(-1, len(ids) - 2)).logits_nv
        if isinstance(request.format, Form):
            logprobs_tv = logits_tv.double().log_softmax(-1)
            return tuple(float(row_v[token]) for row_v, token in zip(logprobs_tv, ids, strict=True))
        limit, progress, found = self._text_tokens(request, room), START, []
        for logits_v, token in zip(logits_tv, ids, strict=True):
            found.append(float(self._text_law(request, logits_v, progress, limit).logprobs_k[token]))
            progress = walk(self._lexicon.pieces, [token], progress)
        return tuple(found)


def _laws(forks: Mapping[Tokens, Fork], sampling: Sampling) -> dict[Tokens, Law]:
    return {prefix: law(fork.logits_k, sampling.temperature, sampling.top_p) for prefix, fork in forks.items()}


def _failed(error: Exception) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_exception(error)
    return future


def _known(error: Exception) -> Exception:
    """What a caller may see: an error that is told, or else a failure of the engine."""
    if isinstance(error, EngineFailure | Refused | WeightsError):
        return error
    return EngineFailure(f"the torch engine failed: {type(error).__name__}: {' '.join(str(error).split())}"[:300])


def _device(name: str) -> str:
    return ("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name


def _dtype(name: str, device: torch.device) -> torch.dtype | str:
    if name == "auto":
        return torch.float32 if device.type == "cpu" else "auto"
    found = getattr(torch, name, None)
    if not isinstance(found, torch.dtype):
        raise EngineFailure(f"torch has no dtype {name!r}")
    return found
