"""An engine behind a network: queue, concurrency, retries and the judgement of what has failed, on a thread and loop.

Slowness is never taken for failure, and only "too many requests" lowers the number of calls under way. A request that
is refused is a failed completion; an endpoint that is dead, unpaid or locked fails every pending call with
`EngineFailure`, so that the run pauses. How one exchange is made is the business of the class below this one.
"""

from __future__ import annotations

import asyncio
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import Any

import orjson

from agents.engines import chat
from agents.engines.chat import Abilities, Constraint, Reply
from agents.engines.health import LONGEST_WAIT, Health
from agents.engines.limiter import Limiter
from agents.engines.probe import greeting, probe
from sim.types import Completion, EngineFailure, Logprobs, Request, Text, Tokens

_ABOUT_FORMAT = ("schema", "response_format", "structured", "grammar", "guided")


@dataclass(slots=True, eq=False)
class _Job:
    """One call on its way."""

    request: Request
    future: Future[Completion]
    number: int
    """Order of submission."""
    submitted: float
    failures: int = 0
    """Attempts that met a transient error."""
    limited: int = 0
    """Attempts refused for their rate."""


class RemoteEngine(ABC):
    """Sends model calls to an endpoint, most urgent first. Settings: see `OpenAIEngine`."""

    def __init__(
        self,
        model: str,
        *,
        limiter: Limiter,
        health: Health,
        attempts: int,
        quiet: float,
        thinking: int,
        report: Callable[[str], None] | None,
    ) -> None:
        self.model, self.limiter = model, limiter
        self.abilities: Abilities | None = None
        """What the probe found; None before the first call."""
        self._health, self._attempts, self._quiet = health, attempts, quiet
        self._thinking, self._report = thinking, report
        self._lock = threading.Lock()
        self._failure = ""
        self._pending: dict[int, _Job] = {}
        self._submitted = 0
        self._last_done = time.monotonic()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        # All below belongs to the loop's thread.
        self._ended = asyncio.Event()
        self._queue: list[tuple[int, int, _Job]] = []
        self._active = 0
        self._alarm = 0.0
        """When the queue is looked at again after a wait."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._learning = False
        self._pulse: asyncio.Task[bool] | None = None
        self._loose: set[bytes] = set()
        """Schemas that this endpoint refused; they are described in words since."""

    @abstractmethod
    async def _exchange(self, body: dict[str, Any]) -> Reply:
        """One request to the endpoint and its reply, whatever it is."""

    @abstractmethod
    async def _disconnect(self) -> None:
        """Drop all connections."""

    # --- any thread -----------------------------------------------------------------------------

    def submit(self, request: Request) -> Future[Completion]:
        """Queue a call; it is sent as soon as the endpoint has room for it."""
        future: Future[Completion] = Future()
        if chat.bound(request) < 1:
            future.set_result(_failed(request, f"no room for an answer: max_tokens is {chat.bound(request)}"))
            return future
        with self._lock:
            if self._failure:
                future.set_exception(EngineFailure(self._failure))
                return future
            job = _Job(request, future, self._submitted, time.monotonic())
            self._submitted += 1
            if not self._pending:
                self._last_done = job.submitted
            self._pending[job.number] = job
            self._running_loop().call_soon_threadsafe(self._enqueue, job)
        return future

    def score(self, requests: Sequence[Request], continuations: Sequence[Tokens]) -> Future[Sequence[Logprobs]]:
        """Chat endpoints score no given text: the future fails with NotImplementedError."""
        future: Future[Sequence[Logprobs]] = Future()
        future.set_exception(NotImplementedError("a chat-completions endpoint cannot score a given continuation"))
        return future

    def status(self) -> str:
        """How it goes, in one line for people."""
        if self._failure:
            return f"{self.model}: {self._failure}"
        waiting = max(0, len(self._pending) - self._active)
        parts = [f"{self._active} calls under way (limit {self.limiter.limit})", f"{waiting} waiting"]
        if self._silence() >= self._quiet:
            parts.append(f"no completed call for {self._silence():.0f} s")
        if (held := self.limiter.held(time.monotonic())) > 0:
            parts.append(f"asked to wait {held:.0f} s")
        if self._health.trouble:
            parts.append(f"last trouble: {self._health.trouble}")
        return f"{self.model}: {', '.join(parts)}"

    def close(self) -> None:
        """Cancel what is pending, drop connections and end the thread; later calls fail."""
        with self._lock:
            self._failure = self._failure or "the engine is closed"
            jobs = list(self._pending.values())
            self._pending.clear()
            thread, self._thread = self._thread, None
            if thread is not None and self._loop is not None:
                self._loop.call_soon_threadsafe(self._ended.set)
        for job in jobs:
            job.future.cancel()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _silence(self) -> float:
        """Seconds since a call was completed, while some are pending."""
        return time.monotonic() - self._last_done if self._pending else 0.0

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        """The loop, started with the first call; the lock is held."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._live, args=(self._loop,), name="remote-engine", daemon=True)
            self._thread.start()
        return self._loop

    # --- the loop's thread: what is sent when -----------------------------------------------------

    def _live(self, loop: asyncio.AbstractEventLoop) -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        watch = asyncio.create_task(self._watch())
        await self._ended.wait()
        tasks = [watch, *self._tasks, *filter(None, [self._pulse])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._disconnect()

    async def _watch(self) -> None:
        """Say so when nothing is completed for long; slowness has no other consequence."""
        while True:
            await asyncio.sleep(self._quiet)
            if self._report is not None and self._silence() >= self._quiet:
                self._report(self.status())

    def _enqueue(self, job: _Job) -> None:
        heappush(self._queue, (job.request.priority, job.number, job))
        self._pump()

    def _pump(self) -> None:
        """Send the most urgent calls as far as the limit allows."""
        if self._failure:
            return
        if self.abilities is None:
            if not self._learning:
                self._learning = True
                self._spawn(self._learn())
            return
        now = time.monotonic()
        if (held := self.limiter.held(now)) > 0:
            if self._queue and self._alarm <= now:
                self._alarm = now + held
                asyncio.get_running_loop().call_later(held, self._pump)
            return
        while self._queue and self._active < self.limiter.limit:
            _, _, job = heappop(self._queue)
            if job.future.cancelled():
                self._pending.pop(job.number, None)
            else:
                self._active += 1
                self._spawn(self._attempt(job, self.abilities))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _attempt(self, job: _Job, can: Abilities) -> None:
        """Send a call once and act on what comes back."""
        sent = time.monotonic()
        try:
            constraint = self._constraint(job.request, can)
            reply = await self._exchange(chat.body(job.request, self.model, can, constraint))
            await self._judge(job, reply, constraint, sent)
        except EngineFailure as failure:
            self._die(str(failure))
        except Exception as broken:
            # One request must never take the others with it, nor leave its mind waiting for ever.
            self._settle(job, _failed(job.request, f"{type(broken).__name__}: {broken}"))
        finally:
            self._active -= 1
            self._pump()

    def _constraint(self, request: Request, can: Abilities) -> Constraint:
        """How the answer format is enforced for this request."""
        if can.constraint == "json_schema" and not isinstance(request.format, Text):
            return "text" if orjson.dumps(chat.shape(request.format)) in self._loose else "json_schema"
        return can.constraint

    # --- the loop's thread: what comes back -------------------------------------------------------

    async def _judge(self, job: _Job, reply: Reply, constraint: Constraint, sent: float) -> None:
        """Settle the call, or queue it again. Raises EngineFailure where the endpoint is of no use."""
        if reply.verdict in ("ok", "refused", "limited"):
            self._health.lively()
        match reply.verdict:
            case "ok":
                self.limiter.succeeded(waiting=bool(self._queue))
                latency = time.monotonic() - job.submitted
                self._settle(job, chat.completion(reply.data, job.request, constraint, latency))
            case "limited":
                job.limited += 1
                self._hold(reply, sent, job.limited)
                self._enqueue(job)
            case "refused":
                self._refused(job, reply, constraint)
            case "unusable":
                raise EngineFailure(reply.error)
            case "transient" | "forbidden":
                await self._doubt(job, reply)

    def _refused(self, job: _Job, reply: Reply, constraint: Constraint) -> None:
        """Ask again in words if it was the schema that was refused; else the request has failed."""
        form = job.request.format
        about_format = any(word in reply.error.lower() for word in _ABOUT_FORMAT)
        if constraint == "json_schema" and about_format and not isinstance(form, Text):
            self._loose.add(orjson.dumps(chat.shape(form)))
            self._enqueue(job)
        else:
            self._settle(job, _failed(job.request, reply.error))

    async def _doubt(self, job: _Job, reply: Reply) -> None:
        """Try again later, unless a tiny request shows that it is this one, or the endpoint, which is at fault."""
        job.failures += 1
        health, forbidden = self._health, reply.verdict == "forbidden"
        health.troubled(reply.error, time.monotonic())
        hopeless = forbidden or job.failures >= self._attempts
        if hopeless or health.dead(time.monotonic()):
            alive = await self._alive()
            if alive and hopeless:
                self._settle(job, _failed(job.request, reply.error))
                return
            if not alive and (forbidden or health.dead(time.monotonic())):
                raise EngineFailure(reply.error)
        asyncio.get_running_loop().call_later(health.delay(job.failures, reply.wait), self._enqueue, job)

    def _hold(self, reply: Reply, sent: float, times: int) -> float:
        """Slow down after "too many requests". Returns the seconds to wait."""
        wait = self._health.delay(times) if reply.wait is None else reply.wait
        if wait > LONGEST_WAIT:
            raise EngineFailure(f"asked to wait {wait:.0f} s: {reply.error}")
        self.limiter.refused(sent, time.monotonic(), wait)
        return wait

    async def _alive(self) -> bool:
        """Whether the endpoint answers a tiny request; calls that wonder at the same time share one."""
        if self._pulse is None or self._pulse.done():
            self._pulse = asyncio.create_task(self._beat())
        return await asyncio.shield(self._pulse)

    async def _beat(self) -> bool:
        limit = "max_tokens" if self.abilities is None else self.abilities.bound
        reply = await self._exchange(greeting(self.model, limit))
        if reply.verdict in ("ok", "limited", "refused"):
            self._health.lively()
        return reply.verdict == "ok"

    def _settle(self, job: _Job, completion: Completion) -> None:
        with self._lock:
            known = self._pending.pop(job.number, None)
            self._last_done = time.monotonic()
        if known is not None and job.future.set_running_or_notify_cancel():
            job.future.set_result(completion)

    def _die(self, why: str) -> None:
        """Fail everything pending, so that the run pauses."""
        with self._lock:
            self._failure = self._failure or f"{self.model} is out of service: {why}"
            jobs = list(self._pending.values())
            self._pending.clear()
        self._queue.clear()
        for task in self._tasks - {asyncio.current_task()}:
            task.cancel()
        for job in jobs:
            if job.future.set_running_or_notify_cancel():
                job.future.set_exception(EngineFailure(self._failure))

    async def _learn(self) -> None:
        """Probe the endpoint, then let the calls go."""
        try:
            found = await probe(self._ask, self.model)
        except Exception as failure:
            self._die(str(failure))
            return
        self.abilities = found if found.thinks == "no" else replace(found, room=self._thinking)
        self._pump()

    async def _ask(self, body: dict[str, Any]) -> Reply:
        """Exchange until the request is answered or refused. Raises EngineFailure."""
        times = 0
        while True:
            times, sent = times + 1, time.monotonic()
            reply = await self._exchange(body)
            if reply.verdict in ("ok", "refused"):
                self._health.lively()
                return reply
            if reply.verdict == "limited":
                self._health.lively()
                await asyncio.sleep(self._hold(reply, sent, times))
                continue
            self._health.troubled(reply.error, time.monotonic())
            if reply.verdict != "transient" or self._health.dead(time.monotonic()):
                raise EngineFailure(reply.error)
            await asyncio.sleep(self._health.delay(times, reply.wait))


def _failed(request: Request, error: str) -> Completion:
    return Completion(text=None, finish="error", error=error, policy=request.policy)
