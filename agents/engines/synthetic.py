"""A seeded engine without a model: legal answers at random or by a rule, with modelled latency and faults.

What it answers is a function of (seed, the whole request), never of time, order or load: one view that
differs anywhere changes everything after it. When it answers is modelled by a queue in front of `slots` servers,
worked off by one thread.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from heapq import heappop, heappush
from time import monotonic
from typing import Literal, TypeAlias

import orjson
from msgspec.structs import replace
from pydantic import BaseModel

from agents.engines.legal import legal_text
from sim.answers import schema
from sim.quantities import distribution
from sim.streams import Streams
from sim.types import Choice, Completion, EngineFailure, Form, Format, Logprobs, Request, Text, Tokens, Usage

Rule: TypeAlias = Callable[[Request], str | None]
"""The text that answers a request, or None for a legal answer at random."""
Order: TypeAlias = Literal["priority", "submission", "shuffled"]
"""Who takes a free slot first: the most urgent, the oldest, or anyone (by `latency_seed`)."""

FAULTS = ("refused: the request breaks a content rule", "the prompt is longer than the context", "malformed reply")
GARBAGE: dict[type[Format], tuple[str | None, ...]] = {
    Choice: ("", "???", None, '{"answer":', "…", "\x00\x01"),
    Form: ("", "???", None, '{"act": ', "[]", "null", "42", "```json\n{\n```"),
    Text: ("", " \n\t", None, "\n\n\n"),
}
"""Texts that are no legal answer in any world."""


@dataclass(slots=True, eq=False)
class _Job:
    """One call on its way."""

    future: Future[Completion]
    completion: Completion
    submitted: float
    """Seconds of the monotonic clock."""
    service: float
    """Seconds it keeps a slot."""


class SyntheticEngine:
    """Answers from a hash of the request; takes the time its latency distribution says.

    `latency` is a distribution of wall time ("0s", "lognormal(200ms, 0.5)"); with a constant 0 the future is done when
    `submit` returns. `faults` and `garbage` are shares of requests that get a failed completion, or a text that is no
    legal answer. The call after the `dead_after`-th kills the engine.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        latency: str | int | float = "0s",
        slots: int = 64,
        faults: float = 0.0,
        garbage: float = 0.0,
        rule: Rule | str | None = None,
        latency_seed: int = 0,
        order: Order = "priority",
        dead_after: int | None = None,
    ) -> None:
        if slots < 1:
            raise ValueError(f"slots is {slots}; at least one is needed to answer anything")
        if faults < 0 or garbage < 0 or faults + garbage > 1:
            raise ValueError(f"faults ({faults}) and garbage ({garbage}) are shares that add up to at most 1")
        self._streams = Streams(seed)
        self._pace = Streams(latency_seed)
        self._latency = distribution(latency, 1)
        self._instant = self._latency.constant and self._latency.quantile(0.0) <= 0
        self._slots, self._faults, self._garbage, self._order = slots, faults, garbage, order
        self._rule = _resolved(rule) if isinstance(rule, str) else rule
        self._dead_after = dead_after
        self._failure = ""
        self._changed = threading.Condition(threading.Lock())
        self._waiting: list[tuple[float, int, _Job]] = []
        self._running: list[tuple[float, int, _Job]] = []
        self._thread: threading.Thread | None = None
        self.calls = 0
        """Requests submitted so far."""

    def submit(self, request: Request) -> Future[Completion]:
        """Start a call; the future is already done where no time is modelled."""
        future: Future[Completion] = Future()
        digest = identity(request)
        completion = self._completion(request, digest)
        orphans: list[_Job] = []
        with self._changed:
            self.calls += 1
            if self._dead_after is not None and self.calls > self._dead_after and not self._failure:
                self._failure = f"the synthetic engine died after {self._dead_after} calls"
                orphans = self._drained()
            failure = self._failure
            if not failure and not self._instant:
                self._enqueue(request.priority, _Job(future, completion, monotonic(), self._service(digest)))
        for orphan in orphans:
            _fail(orphan.future, failure)
        if failure:
            _fail(future, failure)
        elif self._instant:
            future.set_result(completion)
        return future

    def service_seconds(self, request: Request) -> float:
        """Seconds for which the request keeps a slot: what an offline schedule of the same calls needs to know."""
        return 0.0 if self._instant else self._service(identity(request))

    def score(self, requests: Sequence[Request], continuations: Sequence[Tokens]) -> Future[Sequence[Logprobs]]:
        """It has no tokens, so no log-probabilities: the future fails with NotImplementedError."""
        future: Future[Sequence[Logprobs]] = Future()
        future.set_exception(NotImplementedError("the synthetic engine has no tokens to score"))
        return future

    def close(self) -> None:
        """Cancel what is pending and end the thread; later calls fail."""
        with self._changed:
            self._failure = self._failure or "the synthetic engine is closed"
            orphans = self._drained()
            thread, self._thread = self._thread, None
        for job in orphans:
            job.future.cancel()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    # --- what is answered ---------------------------------------------------------------------

    def _completion(self, request: Request, digest: str) -> Completion:
        streams = self._streams.sub(digest)
        prompt = sum(len(message.text) for message in request.messages)
        luck = streams.draw("fate") if self._faults or self._garbage else 1.0
        error, text = "", None
        if luck < self._faults:
            error = streams.choice(FAULTS, "fault")
        elif luck < self._faults + self._garbage:
            text = streams.choice(GARBAGE[type(request.format)], "garbage")
        else:
            try:
                text = self._answer(request, streams)
            except Exception as broken:
                # A rule that trips over one request fails that request, as a model server would.
                error = f"the rule raised {type(broken).__name__}: {broken}"
        return Completion(
            text=text,
            finish="error" if error else "stop",
            error=error,
            usage=Usage(prompt=prompt // 4 + 1, completion=0 if text is None else len(text) // 4 + 1),
            policy=request.policy,
        )

    def _answer(self, request: Request, streams: Streams) -> str:
        ruled = self._rule(request) if self._rule is not None else None
        if ruled is not None:
            return ruled
        return legal_text(request.format, streams, 4 * (request.max_tokens or request.sampling.max_tokens))

    def _service(self, digest: str) -> float:
        return max(0.0, float(self._latency.quantile(self._pace.draw("service", digest)))) / 1000

    # --- when it is answered --------------------------------------------------------------------

    def _enqueue(self, priority: int, job: _Job) -> None:
        """Give the job a slot or a place in the queue; the lock is held."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="synthetic-engine", daemon=True)
            self._thread.start()
        number = self.calls
        if len(self._running) < self._slots:
            self._begin(job, job.submitted, number)
            if self._running[0][2] is job:  # the thread sleeps until a later one
                self._changed.notify()
            return
        rank: float = priority
        if self._order != "priority":
            rank = 0.0 if self._order == "submission" else self._pace.draw("order", number)
        heappush(self._waiting, (rank, number, job))

    def _begin(self, job: _Job, at: float, number: int) -> None:
        heappush(self._running, (at + job.service, number, job))

    def _serve(self) -> None:
        """Deliver each job at its finish time until the engine closes or dies."""
        while True:
            with self._changed:
                while not self._failure and not self._due():
                    self._changed.wait(self._running[0][0] - monotonic() if self._running else None)
                if self._failure:
                    return
                finished = self._finished()
            for finish, job in finished:
                if job.future.set_running_or_notify_cancel():
                    job.future.set_result(replace(job.completion, latency=finish - job.submitted))

    def _due(self) -> bool:
        return bool(self._running) and self._running[0][0] <= monotonic()

    def _finished(self) -> list[tuple[float, _Job]]:
        """Take out what is finished and start what waits, at the modelled moment rather than at the thread's own."""
        finished = []
        while self._due():
            finish, _, job = heappop(self._running)
            finished.append((finish, job))
            while self._waiting and len(self._running) < self._slots:
                _, number, following = heappop(self._waiting)
                if not following.future.cancelled():
                    self._begin(following, max(finish, following.submitted), number)
        return finished

    def _drained(self) -> list[_Job]:
        """Take out everything pending and let the thread end; the lock is held."""
        jobs = [job for _, _, job in (*self._running, *self._waiting)]
        self._running.clear()
        self._waiting.clear()
        self._changed.notify()
        return jobs


def _fail(future: Future[Completion], failure: str) -> None:
    if future.set_running_or_notify_cancel():
        future.set_exception(EngineFailure(failure))


def identity(request: Request) -> str:
    """A hash of everything of the request that a model's answer may depend on, as 32 hexadecimal digits."""
    sampling = request.sampling
    head = (
        _shape(request.format), request.purpose, request.model, request.max_tokens, request.seed, request.policy,
        sampling.temperature, sampling.top_p, sampling.max_tokens,
        [(message.role, len(message.text)) for message in request.messages],
    )  # fmt: skip
    body = "".join([message.text for message in request.messages])
    return blake2b(f"{head!r}{body}".encode(errors="surrogatepass"), digest_size=16).hexdigest()


def _shape(form: Format) -> object:
    match form:
        case Choice():
            return form.options
        case Text():
            return form.max_chars
        case Form():
            narrow = {key: dict(words) for key, words in form.narrow.items()}
            return _models(form.models), orjson.dumps(narrow, option=orjson.OPT_SORT_KEYS)


@lru_cache(maxsize=256)
def _models(models: tuple[type[BaseModel], ...]) -> bytes:
    """The schema of a form's models, by content, so that the name of their module does not matter."""
    return orjson.dumps(schema(Form(models=models)), option=orjson.OPT_SORT_KEYS)


def _resolved(path: str) -> Rule:
    """The callable named `module:name`. Raises ValueError where there is none."""
    module, _, name = path.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as missing:
        raise ValueError(f"rule {path!r} names no callable `module:name`: {missing}") from missing
    if not callable(found):
        raise ValueError(f"rule {path!r} is not callable")
    rule: Rule = found
    return rule
