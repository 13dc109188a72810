"""Riddles: a proposer makes up a problem of arithmetic, solvers choose its answer among a few.

The world works the answer out itself. A problem without one is put to nobody (the gate of search self-play), so a
proposer can be hard only by what has an answer. Left out on purpose: a second problem, and words about it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from statistics import fmean
from typing import ClassVar, Literal

from pydantic import BaseModel

from sim.answers import illegal
from sim.streams import Streams
from sim.types import (
    ALL,
    APPLIED,
    JSON,
    Action,
    AgentId,
    Audience,
    Change,
    Choice,
    Fact,
    FactId,
    Join,
    Leave,
    Metric,
    Outcome,
    Result,
    Say,
    Seat,
    Set,
    Turn,
    Wake,
)
from worlds.games.riddles_outcomes import METRICS
from worlds.games.riddles_problems import Problem, RiddlesParams, candidates
from worlds.games.riddles_words import rules, words
from worlds.happened import Happened
from worlds.notices import Notices


class Riddles:
    """One proposer and any number of solvers; 1 for the right answer, to the proposer 1 − the share of these."""

    Params: ClassVar[type[BaseModel]] = RiddlesParams
    metrics: ClassVar[tuple[Metric, ...]] = METRICS
    changeable: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, params: RiddlesParams) -> None:
        self._params = params
        self._numbers = tuple(map(str, range(params.least, params.most + 1)))
        self._rules = {role: rules(role, params) for role in ("proposer", "solver")}

    def reset(self, seats: Sequence[Seat], streams: Streams) -> Outcome:
        """Ask the proposer. Raises ValueError unless there are one proposer and a solver, and nobody else."""
        self._streams = streams
        self._notices = Notices("riddles")
        self._proposer: AgentId = ""
        self._left: int | None = None
        self._operation = self._params.operations[0] if len(self._params.operations) == 1 else None
        self._problem: Problem | None = None
        self._candidates: tuple[str, ...] = ()
        self._proposed: tuple[FactId, ...] = ()
        self._waiting: list[AgentId] = []
        self._solved: dict[AgentId, bool] = {}
        self._over: Literal["", "answered", "unanswerable", "gone"] = ""
        self._facts = 0
        for seat in seats:
            self._enter(seat)
        if not self._proposer or not self._waiting:
            raise ValueError("riddles need a seat of role proposer and one or more of role solver")
        return Outcome(wakes=[Wake(agent=self._proposer, tick=0)])

    def _enter(self, seat: Seat) -> None:
        if seat.role not in ("proposer", "solver"):
            raise ValueError(f"{seat.agent}: the role is proposer or solver, not {seat.role!r}")
        if seat.role == "proposer" and self._proposer:
            raise ValueError(f"{seat.agent}: {self._proposer} makes up the problem, and nobody else")
        self._notices.admit(seat.agent)
        if seat.role == "proposer":
            self._proposer = seat.agent
        else:
            self._waiting.append(seat.agent)

    def _fact(
        self, happened: Happened, kind: str, to: Audience, data: dict[str, JSON], actor: AgentId = ""
    ) -> tuple[FactId, ...]:
        answers = self._proposed if kind in ("answer", "outcome") else ()
        happened.facts.append(Fact(id=self._facts, kind=kind, actor=actor, audience=to, data=data, answers=answers))
        self._facts += 1
        return (self._facts - 1,)

    # --- what they see ---------------------------------------------------------------------------

    def observe(self, now: int, agent: AgentId) -> Turn | None:
        """The next part of the problem, or the problem; None where the agent is not asked now."""
        options = self._options(agent)
        if not options:
            return None
        notices = self._notices.next(agent)
        view = self._view([text for _, text in notices])
        return Turn(
            agent=agent,
            now=now,
            view=view,
            format=Choice(options=options),
            default=options[0],
            render=words,
            rules=self._rules[view["role"]],
            shows=(*self._proposed, *(fact for fact, _ in notices)),
            key=json.dumps(view),
        )

    def _options(self, agent: AgentId) -> tuple[str, ...]:
        """What is open to an agent; empty: nothing is asked of it."""
        if self._over:
            return ()
        if self._problem:
            return self._candidates if agent in self._waiting else ()
        if agent != self._proposer:
            return ()
        return self._numbers if self._left is None or self._operation else self._params.operations

    def _view(self, notices: list[str]) -> dict[str, JSON]:
        if problem := self._problem:
            own = {"role": "solver", **asdict(problem), "candidates": list(self._candidates)}
        else:
            params = self._params
            own = {
                "role": "proposer",
                "left": self._left,
                "operation": self._operation,
                "operations": list(params.operations),
                "least": params.least,
                "most": params.most,
            }
        return own | {"news": notices}

    # --- what happens ------------------------------------------------------------------------------

    def step(self, now: int, actions: Sequence[Action]) -> Outcome:
        """Take a part of the problem, or answers to it."""
        happened = Happened()
        for action in actions:
            refusal = self._stale(action)
            happened.results.append(Result(status="stale", reason=refusal) if refusal else APPLIED)
            if refusal:
                continue
            self._notices.read(action.agent, action.shows)
            if self._problem:
                self._answer(action, self._problem, happened)
            else:
                self._propose(now, action, happened)
            self._settle(happened)
        return happened.outcome()

    def _stale(self, action: Action) -> str:
        """Why an action cannot be applied, or nothing."""
        options = self._options(action.agent)
        return illegal(Choice(options=options), action.answer) or "" if options else "that is not asked now"

    def _propose(self, now: int, action: Action, happened: Happened) -> None:
        """A number, an operation, another number; then the problem goes to the solvers, if it has an answer."""
        if self._left is not None and self._operation:
            self._put(now, Problem(self._left, self._operation, int(action.answer)), happened)
            return
        if self._left is None:
            self._left = int(action.answer)
        else:
            self._operation = action.answer
        happened.wakes.append(Wake(agent=action.agent, tick=now))

    def _put(self, now: int, problem: Problem, happened: Happened) -> None:
        """Put the whole problem to the solvers."""
        self._problem = problem
        if problem.answer is not None:
            self._candidates = candidates(problem, problem.answer, self._params, self._streams)
            happened.wakes += [Wake(agent=agent, tick=now) for agent in self._waiting]
        told: dict[str, JSON] = {
            "problem": str(problem),
            "operation": problem.operation,
            "digits": problem.digits,
            "answerable": problem.answer is not None,
            "candidates": list(self._candidates),
        }
        self._proposed = self._fact(happened, "proposal", ALL, told, self._proposer)

    def _answer(self, action: Action, problem: Problem, happened: Happened) -> None:
        """A solver's answer, which pays at once and ends its part."""
        agent, right = action.agent, action.answer == str(problem.answer)
        self._waiting.remove(agent)
        self._solved[agent] = right
        told = {"answer": action.answer, "right": right, "meant": action.meant}
        self._fact(happened, "answer", (agent,), told, agent)
        happened.rewards[agent] = float(right)
        happened.ended[agent] = "terminated"

    def _settle(self, happened: Happened) -> None:
        """Pay the proposer and end, where nobody is asked any more."""
        if self._over:
            return
        if self._problem is None:
            self._over = "" if self._proposer and self._waiting else "gone"
        elif self._problem.answer is None:
            self._over = "unanswerable"
        elif not self._waiting:
            self._over = "answered" if self._solved else "gone"
        if not self._over:
            return
        right = None if self._problem is None else self._problem.answer
        told: dict[str, JSON] = {"reason": self._over, "right": right, "solved": dict(self._solved)}
        self._fact(happened, "outcome", ALL, told)
        if self._proposer:
            happened.rewards[self._proposer] = self._earned()
            happened.ended[self._proposer] = "terminated"
        happened.ended |= dict.fromkeys(self._waiting, "terminated")

    def _earned(self) -> float:
        """The proposer's: 1 − the share of solvers who are right, minus the penalty for what has no answer."""
        if self._over == "answered":
            return 1 - fmean(self._solved.values())
        return 0.0 - self._params.penalty if self._over == "unanswerable" else 0.0

    # --- interventions -----------------------------------------------------------------------------

    def change(self, now: int, change: Change) -> Outcome:
        """Say; solvers Join as long as a problem is open; Leave. Raises ValueError for what cannot be done."""
        happened = Happened()
        match change:
            case Say():
                readers = self._notices.readers(change)
                (fact,) = self._fact(happened, "message", change.to, {"text": change.text})
                self._notices.post(readers, fact, change.text)
            case Set():
                raise ValueError(f"riddles let nothing be set while running, so not {change.key!r}")
            case Join():
                self._enter(change.seat)
                if self._candidates and not self._over:
                    happened.wakes.append(Wake(agent=change.seat.agent, tick=now))
            case Leave():
                self._leave(change.agent, happened)
        return happened.outcome()

    def _leave(self, agent: AgentId, happened: Happened) -> None:
        self._notices.known([agent])
        if agent == self._proposer:
            self._proposer = ""
        if agent in self._waiting:
            self._waiting.remove(agent)
        self._settle(happened)

    def state(self) -> JSON:
        """Everything, as a fresh JSON value."""
        problem = self._problem
        return {
            "params": self._params.model_dump(mode="json"),
            "proposer": self._proposer,
            "left": self._left,
            "operation": self._operation,
            "problem": problem and asdict(problem),
            "candidates": list(self._candidates),
            "proposed": list(self._proposed),
            "waiting": list(self._waiting),
            "solved": dict(self._solved),
            "over": self._over,
            "unread": self._notices.state(),
            "facts": self._facts,
        }
