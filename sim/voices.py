"""Engines for the entries of `models:`: built when first needed, shared where they are the same."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sim.calls import Voice
from sim.loading import load
from sim.log import dumps
from sim.policies import adapters
from sim.scenarios.resolve import resolve
from sim.scenarios.scenario_schema import ModelSettings
from sim.types import JSON, Completion, Engine, EngineFailure, Logprobs, Request, Tokens


class LateEngine:
    """An engine that is built at its first call: a replay that needs no model starts none."""

    def __init__(self, name: str, build: Callable[[], Engine]) -> None:
        self.name = name
        self._build = build
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        self._begun = False
        self._over = threading.Event()
        """Set once it is built or never will be."""
        self._failure = ""
        """Why it could not be built, which is not tried again: all who share it wait for it once."""
        self._closed = False

    def start(self) -> Engine:
        """The engine, built now if it is not yet. Raises EngineFailure where it cannot be."""
        with self._lock:
            if self._closed:
                raise EngineFailure(f"the engine {self.name} is closed")
            if not self._begun:  # in a thread of its own: nothing stops the loading of a model but the waiting for it
                self._begun = True
                load(self._start)
        self._over.wait()
        if self._engine is None:
            raise EngineFailure(self._failure)
        return self._engine

    def _start(self) -> None:
        engine, failure = None, ""
        try:
            engine = self._build()
        except BaseException as error:
            failure = self._why(error)
        with self._lock:
            if not self._over.is_set():
                self._engine, self._failure = engine, failure
                self._over.set()
                return
        if engine is not None:  # nobody waits for it any more
            engine.close()

    @property
    def starting(self) -> bool:
        """Whether it is being built."""
        return self._begun and not self._over.is_set()

    def give_up(self) -> None:
        """Where it is still being built, wait for it no more."""
        with self._lock:
            if self.starting:
                self._failure = f"the engine {self.name} was not waited for"
                self._over.set()

    def _why(self, error: BaseException) -> str:
        if isinstance(error, EngineFailure):
            return str(error)
        if isinstance(error, ImportError):
            return f"the engine {self.name} is not installed: {error}"
        return f"the engine {self.name} does not start: {error}"

    def submit(self, request: Request) -> Future[Completion]:
        """As the engine does."""
        return (self._engine or self.start()).submit(request)

    def score(self, requests: Sequence[Request], continuations: Sequence[Tokens]) -> Future[Sequence[Logprobs]]:
        """As the engine does."""
        return self.start().score(requests, continuations)

    @property
    def built(self) -> Engine | None:
        """The engine, if it is there yet."""
        return self._engine

    def status(self) -> str:
        """What the engine says of itself: nothing, or why it is slow."""
        status = getattr(self._engine, "status", None)
        return str(status()) if status else ""

    def close(self) -> None:
        """Close the engine if it was built, or as soon as it is."""
        with self._lock:
            self._closed = True
        self.give_up()
        if self._engine is not None:
            self._engine.close()


class Pool:
    """The engines of one run. Entries with equal engine, model and settings share one; `given` ones, by the name of
    the entry, are somebody else's and stay open. `offered`: settings for engines that take them, unless the scenario
    gives its own."""

    def __init__(
        self,
        base: Path,
        given: Mapping[str, Engine] = MappingProxyType({}),
        offered: Mapping[str, JSON] = MappingProxyType({}),
    ) -> None:
        self.engines: dict[str, LateEngine] = {}
        self._base = base
        self._given = given
        self._offered = offered

    def voices(self, models: Mapping[str, ModelSettings]) -> dict[str, Voice]:
        """What each entry speaks with."""
        return {
            name: Voice(
                engine=self._given.get(name) or self.engine(settings),
                model=settings.model,
                sampling=settings.sampling,
                policy=settings.policy,
                record_tokens=settings.record_tokens,
                person=settings.person,
            )
            for name, settings in models.items()
        }

    def engine(self, settings: ModelSettings) -> LateEngine:
        """The engine of an entry, built at its first call."""
        key = dumps([settings.engine_path, settings.model, settings.context, settings.settings])
        if key not in self.engines:
            name = f"{settings.engine} {settings.model}".strip()
            self.engines[key] = LateEngine(name, lambda: self._built(settings))
        return self.engines[key]

    def _built(self, settings: ModelSettings) -> Engine:
        make: Any = resolve(settings.engine_path, self._base)
        taken = inspect.signature(make).parameters
        offered = {"model": settings.model, "max_model_len": settings.context, **self._offered}
        own = dict(settings.settings)
        if places := adapters(settings, self._base):
            own["adapters"] = {label: str(folder) for label, folder in places.items()}
        engine: Engine = make(**{k: v for k, v in offered.items() if k in taken} | own)
        return engine

    @property
    def built(self) -> list[Engine]:
        """The engines that are there yet, given ones among them."""
        return [*self._given.values(), *(one.built for one in self.engines.values() if one.built is not None)]

    def close(self) -> None:
        """Close all, also where one of them raises."""
        with ExitStack() as stack:
            for engine in self.engines.values():
                stack.callback(engine.close)
