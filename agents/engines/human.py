"""People as an engine: a question stands until somebody answers it, through `agora play`, a page or a terminal.

An answer is judged when it is given, by the parser that reads models' answers; what is no legal answer never becomes a
completion, and the question stands. Whoever asks a seat anew takes its older question back.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from time import monotonic
from typing import NamedTuple

from sim.answers import parse
from sim.types import CallKey, Completion, EngineFailure, Logprobs, Request, Tokens


class _Question(NamedTuple):
    request: Request
    future: Future[Completion]
    asked: float
    """Seconds of the monotonic clock."""


class HumanEngine:
    """Questions to people, in the order in which they were asked. Usable from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[CallKey, _Question] = {}
        self._closed = False

    def submit(self, request: Request) -> Future[Completion]:
        """Put a question."""
        future: Future[Completion] = Future()
        with self._lock:
            if self._closed:
                future.set_exception(EngineFailure("nobody is asked any more: the run has ended"))
                return future
            older = [key for key in self._open if _overtakes(request.key, key)]
            taken_back = [self._open.pop(key) for key in older]
            self._open[request.key] = _Question(request, future, monotonic())
        for question in taken_back:
            _complete(question, Completion(text=None, finish="error", error="the question was taken back"))
        return future

    def pending(self) -> Sequence[Request]:
        """What waits for an answer, the oldest first."""
        with self._lock:
            return [question.request for question in self._open.values()]

    def answer(self, key: CallKey, text: str) -> str:
        """Answer a question: empty, or why the answer will not do. Raises KeyError where it is not asked any more."""
        with self._lock:
            question = self._open[key]
            _, reason = parse(question.request.format, text)
            if reason:
                return reason
            del self._open[key]
        _complete(question, Completion(text=text, latency=monotonic() - question.asked))
        return ""

    def status(self) -> str:
        """Who is asked at the moment."""
        asked = ", ".join(dict.fromkeys(request.key.agent for request in self.pending()))
        return f"asked, and to answer: {asked}" if asked else ""

    def score(self, requests: Sequence[Request], continuations: Sequence[Tokens]) -> Future[Sequence[Logprobs]]:
        """People have no tokens: the future fails with NotImplementedError."""
        future: Future[Sequence[Logprobs]] = Future()
        future.set_exception(NotImplementedError("people have no tokens to score"))
        return future

    def close(self) -> None:
        """Take all questions back."""
        with self._lock:
            self._closed = True
            questions = list(self._open.values())
            self._open.clear()
        for question in questions:
            question.future.cancel()


def _overtakes(new: CallKey, old: CallKey) -> bool:
    """Whether a question belongs to a later decision of the same seat."""
    return (new.table, new.agent) == (old.table, old.agent) and (new.tick, new.nth) != (old.tick, old.nth)


def _complete(question: _Question, completion: Completion) -> None:
    if question.future.set_running_or_notify_cancel():
        question.future.set_result(completion)
