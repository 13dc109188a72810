"""Model calls: from a mind's request to a recorded completion.

A request gets its key, seed, sampling, policy and priority here. If the record (or a fork's parent)
already holds a completion for an equal request under the same key, that one is taken; otherwise the
request goes to its engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from hashlib import blake2b
from math import inf
from queue import SimpleQueue
from typing import Any, Literal, NamedTuple, Protocol

from msgspec.structs import replace

from sim.answers import schema
from sim.blobs import decode_logprobs, decode_options, encode_logprobs, encode_options, encode_tokens
from sim.kernel import Decision, Unaskable, WorldError
from sim.log import Divergence, Row, dumps
from sim.types import (
    DEFAULT_SAMPLING,
    HUMAN,
    CallKey,
    Choice,
    Completion,
    Engine,
    EngineFailure,
    Form,
    Format,
    Request,
    Sampling,
)

Source = Literal["engine", "parent", "repeat", "record"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """An entry of the scenario's `models:`, ready to speak."""

    engine: Engine
    model: str
    """Name of the weights."""
    sampling: Sampling = DEFAULT_SAMPLING
    policy: str = ""
    """Adapter `name@v`, empty for the base model."""
    record_tokens: bool = False
    """Whether prompt token ids are recorded too."""
    person: bool = False
    """Whether a person answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A record to take completions from."""

    lookup: Callable[[CallKey], tuple[bytes, Completion] | None]
    """Request digest and completion under a key."""
    request_text: Callable[[CallKey], str]
    """The recorded request in words, to show beside one that differs."""
    source: Source = "record"
    strict_before: Callable[[int], float] = lambda _table: inf
    """By table: a request of an earlier tick must equal the recorded one; a later one that differs goes to the engine.
    """
    complete: bool = False
    """Nothing but the record answers: a call that it lacks is never answered (verify)."""


class TextStore(Protocol):
    """Where content-addressed texts and call rows go."""

    def text(self, text: str) -> str:
        """Keep a text; its hash in hex."""

    def put(self, table: str, row: Row) -> None:
        """Keep a row."""

    def flush(self) -> None:
        """Commit all that was put."""


class Arrival(NamedTuple):
    """A call that has been answered, on its way back to the kernel thread."""

    decision: Decision
    place: int
    """Which of the requests that were yielded together."""
    request: Request
    digest: bytes
    source: Source
    future: Future[Completion]


def format_json(form: Format) -> Any:
    """An answer format as JSON, equal for equal formats."""
    if isinstance(form, Choice):
        return {"choice": list(form.options)}
    if isinstance(form, Form):
        return {"form": schema(form)}
    return {"text": form.max_chars}


def digest(request: Request, model: str) -> bytes:
    """What makes two requests equal: messages, format, sampling, seed, policy and weights."""
    sampling = request.sampling
    content = [
        [[message.role, message.text] for message in request.messages],
        format_json(request.format),
        [sampling.temperature, sampling.top_p, sampling.max_tokens],
        request.seed,
        request.policy,
        model,
    ]
    return blake2b(dumps(content).encode(), digest_size=16).digest()


class Calls:
    """Starts calls, and keeps what comes back. Everything but the engines' callbacks runs on the kernel thread."""

    def __init__(
        self,
        voices: Mapping[str, Voice],
        *,
        store: TextStore | None = None,
        records: Sequence[Recorded] = (),
        one_table: bool = True,
        replaying: Callable[[int], bool] = lambda _table: False,
        eras: Sequence[tuple[int, Mapping[str, Voice]]] = (),
    ) -> None:
        self.inbox: SimpleQueue[Arrival] = SimpleQueue()
        self.in_flight = 0
        """Calls that an engine has and has not answered."""
        self.people = 0
        """Those of them that wait for a person."""
        self.submitted = 0
        self.prompt_tokens = 0
        self.completion_tokens = 0
        self.cached_tokens = 0
        self.spent = 0
        """Tokens, prompts included, of calls that an engine answered."""
        self.reused = 0
        """Calls answered by the record or the parent."""
        self.failed = 0
        self.cut = 0
        """Answers that ended at the length limit."""
        self._voices = voices
        self._store = store
        self._records = records
        self._one_table = one_table
        self._replaying = replaying
        self._eras = eras

    def submit(self, decision: Decision, requests: Sequence[Request]) -> None:
        """Start the calls that a mind waits for: all of them or, raising Unaskable, none."""
        ready = [self._ready(decision, call, plain) for call, plain in enumerate(requests, decision.calls)]
        for index, (request, equal, voice) in enumerate(ready):
            decision.calls += 1
            decision.digest = blake2b((decision.digest or b"") + equal, digest_size=16).digest()
            source, future = self._answer(request, equal, voice)
            future.add_done_callback(self._callback(decision, index, request, equal, source))

    def _ready(self, decision: Decision, call: int, plain: Request) -> tuple[Request, bytes, Voice]:
        """A request as it is sent, its digest, and who speaks."""
        if not isinstance(plain, Request):
            raise Unaskable(f"it asks for {type(plain).__name__}, which is no Request")
        voices = self._voices_at(decision.seen)
        if plain.model not in voices:
            where = f"table {decision.table.index}, tick {decision.table.now}"
            raise WorldError(
                f"{where}: {decision.player.id} asks for model {plain.model!r}; models: {', '.join(voices)}"
            )
        voice = voices[plain.model]
        try:
            request = self._complete(decision, call, plain, voice)
            return request, digest(request, voice.model), voice
        except (TypeError, ValueError, AttributeError) as error:
            raise Unaskable(f"a request cannot be read: {error}") from error

    def _voices_at(self, tick: int) -> Mapping[str, Voice]:
        """Who speaks for turns seen at a tick: a fork may have changed the models since."""
        return next((voices for before, voices in self._eras if tick < before), self._voices)

    def _complete(self, decision: Decision, call: int, request: Request, voice: Voice) -> Request:
        """The request with everything a mind does not choose."""
        key = CallKey(decision.table.index, decision.player.id, decision.seen, decision.nth, call)
        self.submitted += 1
        sampling = voice.sampling
        if request.max_tokens is not None:
            sampling = replace(sampling, max_tokens=request.max_tokens)
        return replace(
            request,
            purpose=HUMAN if voice.person else request.purpose,
            sampling=sampling,
            seed=decision.seed(key.call),
            policy=voice.policy,
            priority=decision.due if self._one_table else self.submitted,
            key=key,
        )

    def _answer(self, request: Request, equal: bytes, voice: Voice) -> tuple[Source, Future[Completion]]:
        """The recorded completion of an equal request, else the engine's."""
        for record in self._records:
            there = record.lookup(request.key)
            if there is None:
                if record.complete:
                    return record.source, Future()
                continue
            if there[0] == equal:
                self.reused += 1
                done: Future[Completion] = Future()
                done.set_result(there[1])
                return record.source, done
            if request.key.tick < record.strict_before(request.key.table):
                raise Divergence(_differ(request, record.request_text(request.key)))
            break
        source: Source = "repeat" if self._replaying(request.key.table) else "engine"
        try:
            future = voice.engine.submit(request)
        except EngineFailure:
            raise
        except Exception as error:
            raise _broken(request, error) from error
        self.in_flight += 1
        self.people += request.purpose == HUMAN
        return source, future

    def _callback(
        self, decision: Decision, index: int, request: Request, equal: bytes, source: Source
    ) -> Callable[[Future[Completion]], None]:
        put = self.inbox.put

        def arrived(future: Future[Completion]) -> None:
            put(Arrival(decision, index, request, equal, source, future))

        return arrived

    def receive(self, arrival: Arrival) -> Completion:
        """Count and record what arrived. Raises EngineFailure where no completion came of a call."""
        live = arrival.source in ("engine", "repeat")
        self.in_flight -= live
        human = arrival.request.purpose == HUMAN
        self.people -= live and human
        completion = _completion(arrival)
        if live:
            completion = self._recordable(arrival.request, completion)
        usage = completion.usage
        self.spent += live * (usage.prompt + usage.completion)
        self.prompt_tokens += usage.prompt
        self.cached_tokens += usage.cached
        self.completion_tokens += usage.completion
        self.failed += completion.finish == "error"
        self.cut += completion.finish == "length"
        if self._store is not None and arrival.source != "record":
            self._store.put("calls", self._row(arrival, completion, self._store))
            if human:
                self._store.flush()
        return completion

    def _recordable(self, request: Request, completion: Completion) -> Completion:
        """What the record can hold of a completion: a mind sees the same in a replay."""
        voice = self._voices_at(request.key.tick)[request.model]
        text = completion.text
        return replace(
            completion,
            text=None if text is None else _unbroken(text),
            error=_unbroken(completion.error),
            prompt_ids=completion.prompt_ids if voice.record_tokens else (),
            logprobs=decode_logprobs(encode_logprobs(completion.logprobs)),
            option_logprobs=decode_options(encode_options(completion.option_logprobs)),
        )

    def _row(self, arrival: Arrival, completion: Completion, store: TextStore) -> Row:
        request = arrival.request
        form = format_json(request.format)
        if "form" in form:
            form = {"form": store.text(dumps(form["form"]))}
        sampling = request.sampling
        return (
            *request.key,
            request.purpose,
            request.model,
            request.policy,
            arrival.digest,
            dumps([[message.role, store.text(message.text)] for message in request.messages]),
            dumps(form),
            dumps({"temperature": sampling.temperature, "top_p": sampling.top_p, "max_tokens": sampling.max_tokens}),
            request.seed,
            completion.text,
            completion.finish,
            completion.error,
            encode_tokens(completion.prompt_ids),
            encode_tokens(completion.ids),
            encode_logprobs(completion.logprobs),
            completion.distribution,
            encode_options(completion.option_logprobs),
            completion.usage.prompt,
            completion.usage.cached,
            completion.usage.completion,
            completion.latency,
            completion.policy,
            arrival.source,
        )


def _completion(arrival: Arrival) -> Completion:
    """What came of a call; whatever else came than a completion or an EngineFailure, the engine is broken."""
    try:
        completion = arrival.future.result()
    except EngineFailure:
        raise
    except Exception as error:
        raise _broken(arrival.request, error) from error
    if not isinstance(completion, Completion):
        raise _broken(arrival.request, TypeError(f"it answered {type(completion).__name__}, not a Completion"))
    return completion


def _broken(request: Request, error: Exception) -> EngineFailure:
    return EngineFailure(f"the engine of model {request.model!r} broke: {type(error).__name__}: {error}")


def _unbroken(text: str) -> str:
    """The text with halves of surrogate pairs, which no record can hold, as question marks."""
    return text.encode(errors="replace").decode()


def _differ(request: Request, recorded: str) -> str:
    key = request.key
    asked = "\n".join(f"[{message.role}] {message.text}" for message in request.messages)
    return (
        f"table {key.table}, agent {key.agent}, tick {key.tick}, decision {key.nth}, call {key.call}: "
        f"the request differs from the recorded one\n--- recorded\n{recorded}\n--- now\n{asked}\n"
        f"format {dumps(format_json(request.format))}, seed {request.seed}, policy {request.policy!r}"
    )
