"""Engines that stand between a kernel and an engine and decide, call by call, who answers.

Every draw is keyed by the request's own seed, so an answer is a function of the request. The engine behind them is
the caller's and stays open. Calls of one decision (a second attempt, a memory) have seeds of their own and so are
drawn for one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from math import exp, fsum, log
from typing import Any, TypeVar

from msgspec.structs import replace

from sim.streams import Streams
from sim.types import AgentId, Choice, Completion, Engine, Logprobs, Request, Tokens
from training.matchup import last_versions
from training.schedule import Schedule, Weight, at
from training.slots import Actors, Mix, Teacher

T = TypeVar("T")


def speaker(
    engine: Engine, actors: Actors, label: str, update: int, taught: tuple[str, Engine] | None = None
) -> Engine:
    """What a learner's newest version speaks with after so many updates: a mix of versions, exploration, a teacher.

    `taught`: the teacher's label and engine, where the actors need one.
    """
    if isinstance(actors, Mix):
        engine = Mixing(engine, last_versions(label, actors.last))
    epsilon = at(actors.explore, update)
    if epsilon:
        engine = Exploring(engine, epsilon)
    if isinstance(actors, Teacher) and taught is not None:
        beta = at(actors.beta, update) if actors.over == "update" else actors.beta
        engine = Taught(engine, taught[0], beta, taught[1])
    return engine


class _Between:
    """What all of them leave to the engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def score(self, requests: Sequence[Request], continuations: Sequence[Tokens]) -> Future[Sequence[Logprobs]]:
        """As the engine does: under the policies that the requests name."""
        return self._engine.score(requests, continuations)

    def close(self) -> None:
        """Nothing: the engine is the caller's."""


class Exploring(_Between):
    """Answers a choice uniformly with probability ε: the behaviour is μ = (1−ε)π + ε/n over whole options.

    The log-probabilities of a completion are μ's: that of the whole option stands at the first token, 0 at all others,
    so that their sum is right (read them by the turn, not by the token). They are left out where π is not known: where
    the engine gives none, or not those of the distribution that it sampled from. Those of the options are μ's too,
    where the answer is the engine's own. Answers that are no choice, or a choice of one, are the engine's own.
    """

    def __init__(self, engine: Engine, epsilon: float) -> None:
        if not 0 <= epsilon <= 1:
            raise ValueError(f"epsilon is a share, not {epsilon}")
        super().__init__(engine)
        self._epsilon = epsilon

    def submit(self, request: Request) -> Future[Completion]:
        """Start a call."""
        form, luck = request.format, Streams(request.seed)
        if not isinstance(form, Choice) or len(form.options) < 2 or not self._epsilon:
            return self._engine.submit(request)
        if luck.draw("explore") < self._epsilon:
            return self._spoken(request, luck.choice(form.options, "option"))
        return _then(self._engine.submit(request), lambda said, out: _give(out, self._mixed(request, said)))

    def _spoken(self, request: Request, option: str) -> Future[Completion]:
        """The option as the engine would say it, scored among all options."""

        def score(said: Completion, out: Future[Completion]) -> None:
            if not _known(request, said):
                _give(out, self._mixed(request, said))
                return
            asked = replace(request, policy=said.policy or request.policy)  # whoever answered, where versions mix
            scored = self._engine.score([asked], [said.ids])
            alone = replace(said, option_logprobs=())  # of the one option that it was offered
            _pass(scored, out, lambda found, end: _give(end, self._mixed(request, replace(alone, logprobs=found[0]))))

        only = replace(request, format=Choice(options=(option,)))
        return _then(self._engine.submit(only), score)

    def _mixed(self, request: Request, said: Completion) -> Completion:
        """With the log-probabilities under π replaced by those under μ."""
        if said.finish == "error":
            return said
        if not _known(request, said):
            return replace(said, logprobs=(), option_logprobs=())
        assert isinstance(request.format, Choice)
        even = self._epsilon / len(request.format.options)

        def mixed(logprob: float) -> float:
            return log((1 - self._epsilon) * exp(logprob) + even)

        return replace(
            said,
            logprobs=(mixed(fsum(said.logprobs)), *[0.0] * (len(said.ids) - 1)),
            option_logprobs=tuple(None if one is None else mixed(one) for one in said.option_logprobs),
        )


class Mixing(_Between):
    """Each call is answered by one of a policy's versions, drawn uniformly; `Completion.policy` says which."""

    def __init__(self, engine: Engine, labels: Sequence[str]) -> None:
        if not labels:
            raise ValueError("nobody is there to answer: no versions were given")
        super().__init__(engine)
        self._labels = tuple(labels)

    def submit(self, request: Request) -> Future[Completion]:
        """Start a call."""
        label = Streams(request.seed).choice(self._labels, "version")
        return _as(label, self._engine.submit(replace(request, policy=label)))


class Taught(_Between):
    """Each call is the teacher's with probability β, else the learner's; `Completion.policy` says whose.

    `teacher`: an adapter `name@v`, or the name of a model without one; `other`: the teacher's engine, where it has its
    own. `beta`: a share, or a schedule over the number of the decision in its episode (make one engine a run, for it
    counts the decisions of each table's agents as their calls come). Log-probabilities are those of whoever answered.
    """

    def __init__(self, engine: Engine, teacher: str, beta: Weight, other: Engine | None = None) -> None:
        super().__init__(engine)
        self._teacher, self._other = teacher, other or engine
        self._beta = beta
        self._turns: dict[tuple[int, AgentId], dict[tuple[int, int], int]] = {}

    def submit(self, request: Request) -> Future[Completion]:
        """Start a call."""
        turn = self._turn(request) if isinstance(self._beta, Schedule) else 0
        if Streams(request.seed).draw("teacher") >= at(self._beta, turn):
            return self._engine.submit(request)
        policy = self._teacher if "@" in self._teacher else ""
        return _as(self._teacher, self._other.submit(replace(request, policy=policy)))

    def _turn(self, request: Request) -> int:
        """Number of the request's decision among its agent's, from 0."""
        key = request.key
        turns = self._turns.setdefault((key.table, key.agent), {})
        return turns.setdefault((key.tick, key.nth), len(turns))


def _known(request: Request, said: Completion) -> bool:
    """Whether the log-probabilities are π's of a whole option."""
    legal = isinstance(request.format, Choice) and said.text in request.format.options
    sampled = said.distribution == "processed" and request.sampling.temperature > 0
    return legal and sampled and said.finish == "stop" and len(said.logprobs) == len(said.ids) > 0


def _as(label: str, future: Future[Completion]) -> Future[Completion]:
    return _then(future, lambda said, out: _give(out, replace(said, policy=label)))


# --- futures that follow each other ------------------------------------------------------------------------


def _then(first: Future[T], use: Callable[[T, Future[Completion]], None]) -> Future[Completion]:
    """What `use` makes of a result; failures pass on, and to cancel it cancels the first."""
    out: Future[Completion] = Future()
    out.add_done_callback(lambda done: first.cancel() if done.cancelled() else None)
    _pass(first, out, use)
    return out


def _pass(first: Future[T], out: Future[Completion], use: Callable[[T, Future[Completion]], None]) -> None:
    def arrived(done: Future[T]) -> None:
        if done.cancelled():
            out.cancel()
            return
        try:
            use(done.result(), out)
        except Exception as error:
            if _live(out):
                out.set_exception(error)

    first.add_done_callback(arrived)


def _give(out: Future[Completion], said: Completion) -> None:
    if _live(out):
        out.set_result(said)


def _live(out: Future[Any]) -> bool:
    """Whether a result is still wanted; from here on nobody can cancel it."""
    return not out.done() and out.set_running_or_notify_cancel()
