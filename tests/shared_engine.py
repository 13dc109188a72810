"""An engine for scenario files that is the tests' own: one vLLM serves all of them."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future

from sim.types import Completion, Engine, Logprobs, Request, Tokens

running: list[Engine] = []
"""The engine behind it; a test puts it here."""


class SharedEngine:
    """Hands everything on to the running engine, which outlives the run."""

    def __init__(self, model: str = "") -> None:
        self._engine = running[-1]

    def submit(self, request: Request) -> Future[Completion]:
        return self._engine.submit(request)

    def score(self, requests: Sequence[Request], continuations: Sequence[Tokens]) -> Future[Sequence[Logprobs]]:
        return self._engine.score(requests, continuations)

    def close(self) -> None:
        """The engine stays."""
