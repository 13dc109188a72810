"""An engine with tokens, log-probabilities and policies but no model: one letter a token, answers from another thread.

Its options are as likely as their place says, so that trees find moments of doubt; answers are functions of the
request, and come late and in whatever order `pace` draws.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from functools import cache
from itertools import pairwise
from math import log

from agents.engines.choices import ChoiceMask
from sim.streams import Streams
from sim.types import Choice, Completion, Logprobs, Request, Text, Tokens, Usage

END = 0
WORDS = ("so it went", "I shall bet", "who knows")
"""Its free texts."""


def encode(text: str) -> Tokens:
    return tuple(map(ord, text))


class Speaking:
    """Use as any engine; `pace` is the seed of when answers come."""

    def __init__(self, pace: int = 0) -> None:
        self._pace, self._calls = Streams(pace), 0
        self.mask = cache(lambda options: ChoiceMask(options, encode, END))

    def submit(self, request: Request) -> Future[Completion]:
        """Answered by a thread of its own."""
        self._calls += 1
        future: Future[Completion] = Future()
        late = self._pace.draw("late", self._calls) / 200
        threading.Timer(late, self._answer, (request, future)).start()
        return future

    def score(self, requests: Sequence[Request], continuations: Sequence[Tokens]) -> Future[Sequence[Logprobs]]:
        """At once."""
        future: Future[Sequence[Logprobs]] = Future()
        future.set_result([self._logprobs(*pair) for pair in zip(requests, continuations, strict=True)])
        return future

    def close(self) -> None:
        """Nothing is open."""

    def _answer(self, request: Request, future: Future[Completion]) -> None:
        if future.set_running_or_notify_cancel():
            future.set_result(self._said(request))

    def _said(self, request: Request) -> Completion:
        luck = Streams(request.seed)
        if isinstance(request.format, Choice):
            options = request.format.options
            drawn, shares = luck.draw("option"), self._shares(len(options))
            place = next((n for n in range(len(options)) if drawn < sum(shares[: n + 1])), len(options) - 1)
            text, ids = options[place], self.mask(options).sequences[place]
        else:
            assert isinstance(request.format, Text)
            text = luck.choice(WORDS, "words")
            ids = (*encode(text), END)
        prompt = encode("\n".join(message.text for message in request.messages))
        return Completion(
            text=text,
            prompt_ids=prompt,
            ids=ids,
            logprobs=self._logprobs(request, ids),
            distribution="processed",
            usage=Usage(prompt=len(prompt), completion=len(ids)),
            policy=request.policy,
        )

    @staticmethod
    def _shares(options: int) -> list[float]:
        """Of each option: 1, 2, 3 … to their sum."""
        return [2 * (n + 1) / (options * (options + 1)) for n in range(options)]

    def _logprobs(self, request: Request, ids: Tokens) -> Logprobs:
        if not isinstance(request.format, Choice):
            return (-1.0,) * len(ids)
        sequences = self.mask(request.format.options).sequences
        shares = self._shares(len(sequences))
        mass = [
            sum(share for each, share in zip(sequences, shares, strict=True) if each[:n] == ids[:n])
            for n in range(len(ids) + 1)
        ]
        return tuple(log(after / before) for before, after in pairwise(mass))
