"""Herding: questions with a right answer, put to agents who each know a little and see what others answered.

An agent sees its own signal, what was answered before it, and nothing of others' signals or of what is right. Seats of
the role `confederate` are shown a wrong answer to give, the same for all of them; what they answer is theirs to decide.
Those of the role `alone` are a control group: they see nobody's answers, and nobody sees theirs.
Left out on purpose: prices of a signal, choosing when to answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

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
    Fact,
    FactId,
    Form,
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
from worlds.changes import changed
from worlds.happened import Happened
from worlds.notices import Notices
from worlds.opinions.herding_outcomes import METRICS
from worlds.opinions.herding_words import news, rules, words
from worlds.opinions.questions import HerdingParams, Question, question

NOBODY: Audience = ()
"""Of facts that the record keeps and nobody sees."""
CONFEDERATE = "confederate"
"""Role of the seats that are shown a wrong answer to give."""
ALONE = "alone"
"""Role of the seats that see nobody's answers, and whose answers nobody sees."""


class Answer(BaseModel):
    """Your answer, and how probable it is that it is right."""

    model_config = ConfigDict(extra="forbid")

    answer: str = Field(max_length=200, description="your answer")
    probability: float = Field(ge=0, le=1, description="how probable it is that your answer is right, from 0 to 1")


class Given(NamedTuple):
    """An answer."""

    agent: AgentId
    answer: str
    fact: FactId
    apart: bool
    """Whether nobody sees it."""


class Told(NamedTuple):
    """Something that one agent, or all, were told, and the fact that it was told."""

    what: str
    fact: FactId


class Herding:
    """One group of all seats; a right answer pays 1 when its question is over."""

    Params: ClassVar[type[BaseModel]] = HerdingParams
    metrics: ClassVar[tuple[Metric, ...]] = METRICS
    changeable: ClassVar[frozenset[str]] = frozenset({"questions", "feedback", "controls", "pause"})

    def __init__(self, params: HerdingParams) -> None:
        self._given = params

    def reset(self, seats: Sequence[Seat], streams: Streams) -> Outcome:
        """Ask the first question. Raises ValueError where all are confederates, or nobody is there."""
        if all(seat.role == CONFEDERATE for seat in seats):
            raise ValueError(f"a herding world needs somebody whose role is not {CONFEDERATE}")
        self._params = self._given
        self._streams = streams
        self._roles = {seat.agent: seat.role for seat in seats}
        self._notices = Notices("a herding world", list(self._roles))
        self._rules = rules(self._params)
        self._facts, self._number, self._round, self._opens = 0, 0, 1, 0
        self._question = Question("", (), "")
        self._asked_as: FactId = -1
        self._signals: dict[AgentId, Told] = {}
        self._plan: Told | None = None
        self._result: Told | None = None
        self._order: list[AgentId] = []
        self._before: list[Given] = []
        self._now: list[Given] = []
        happened = Happened()
        self._next(0, happened)
        return happened.outcome()

    def _fact(self, happened: Happened, kind: str, to: Audience, data: dict[str, JSON], actor: AgentId = "") -> FactId:
        data = {"item": self._number, **data}
        happened.facts.append(Fact(id=self._facts, kind=kind, actor=actor, audience=to, data=data))
        self._facts += 1
        return self._facts - 1

    def _next(self, opens: int, happened: Happened) -> None:
        """Put the next question to all who are here: signals, a plan for confederates, an order; or end."""
        self._before, self._now, self._order = [], [], []
        left = not any(role != CONFEDERATE for role in self._roles.values())
        if left or self._number >= self._params.questions:
            self._fact(happened, "end", ALL, {"reason": "left" if left else "questions"})
            happened.ended |= dict.fromkeys(self._roles, "terminated")
            return
        self._number, self._round = self._number + 1, 1
        number, control = self._number, self._params.control(self._number)
        self._question = asked = question(self._params, number, self._streams)
        self._order = self._drawn(control)
        data = {"question": asked.question, "options": list(asked.options), "control": control}
        self._asked_as = self._fact(happened, "question", ALL, data)
        self._signals = {
            agent: self._signal(agent, happened) for agent in self._order if self._params.signals is not None
        }
        planned = tuple(agent for agent in self._order if self._roles[agent] == CONFEDERATE)
        wrong = self._streams.choice([one for one in asked.options if one != asked.right], "plan", number)
        self._plan = Told(wrong, self._fact(happened, "plan", planned, {"plan": wrong})) if planned else None
        signals = {agent: told.what for agent, told in self._signals.items()}
        data = {"right": asked.right, "planned": list(planned), "order": list(self._order), "signals": signals}
        self._fact(happened, "truth", NOBODY, data)
        self._ask(opens, happened)

    def _drawn(self, control: bool) -> list[AgentId]:
        """Who answers the question, first to last."""
        here = [agent for agent, role in self._roles.items() if not (control and role == CONFEDERATE)]
        if self._params.order == "drawn":
            return self._streams.shuffled(here, "order", self._number)
        return sorted(here, key=lambda agent: self._roles[agent] != CONFEDERATE)

    def _signal(self, agent: AgentId, happened: Happened) -> Told:
        """What an agent knows of itself: right with the probability `accuracy`, else one of the other options."""
        right, key = self._question.right, (self._number, agent)
        others = [option for option in self._question.options if option != right]
        hit = self._streams.draw("signal", *key) < (self._params.signals or 0.0)
        signal = right if hit else self._streams.choice(others, "mistaken", *key)
        return Told(signal, self._fact(happened, "signal", (agent,), {"signal": signal}))

    def _ask(self, opens: int, happened: Happened) -> None:
        """Open a turn: the next in order, or all of them."""
        self._opens = opens
        happened.wakes += [Wake(agent=agent, tick=opens) for agent in self._waiting()]

    def _waiting(self) -> list[AgentId]:
        """Who is asked now."""
        answered = {one.agent for one in self._now}
        left = [agent for agent in self._order if agent not in answered]
        return left[:1] if self._params.schedule == "sequential" else left

    # --- what they see ---------------------------------------------------------------------------

    def observe(self, now: int, agent: AgentId) -> Turn | None:
        """The question; None where the agent is not asked now."""
        if now < self._opens or agent not in self._waiting():
            return None
        notices, seen = self._notices.next(agent), self._seen(agent)
        signal, plan = self._signals.get(agent), self._plan if self._roles[agent] == CONFEDERATE else None
        told = [one.fact for one in (signal, plan, self._result) if one is not None]
        return Turn(
            agent=agent,
            now=now,
            view=self._view(agent, seen, signal, plan, [text for _, text in notices]),
            format=self._format(),
            default={"answer": signal.what if signal else self._question.options[0], "probability": 0.5},
            render=words,
            recap=news,
            rules=self._rules,
            shows=(self._asked_as, *told, *(one.fact for one in seen), *(fact for fact, _ in notices)),
        )

    def _seen(self, agent: AgentId) -> list[Given]:
        """Answers of others to this question that the agent sees, oldest first."""
        if self._apart(agent):
            return []
        given = self._now if self._params.schedule == "sequential" else self._before
        return [one for one in given if one.agent != agent and not one.apart]

    def _apart(self, agent: AgentId) -> bool:
        """Whether an agent answers this question on its own."""
        return self._params.control(self._number) or self._roles[agent] == ALONE

    def _view(
        self, agent: AgentId, seen: Sequence[Given], signal: Told | None, plan: Told | None, notices: list[str]
    ) -> dict[str, JSON]:
        params = self._params
        return {
            "number": self._number,
            "me": agent,
            "question": self._question.question,
            "options": list(self._question.options),
            "signal": signal and signal.what,
            "accuracy": params.signals,
            "drawn": params.ask == "urn" and not params.items,
            "plan": plan and plan.what,
            "seen": [[one.agent, one.answer] for one in seen],
            "mine": next((one.answer for one in self._before if one.agent == agent), None),
            "round": self._round,
            "rounds": params.rounds,
            "result": self._result and self._result.what,
            "news": notices,
        }

    def _format(self) -> Form:
        return Form(models=(Answer,), narrow={"Answer.answer": {"enum": list(self._question.options)}})

    # --- what happens ------------------------------------------------------------------------------

    def step(self, now: int, actions: Sequence[Action]) -> Outcome:
        """Take answers in, and go on where all who were asked have answered."""
        happened = Happened()
        for action in actions:
            refusal = self._stale(action)
            happened.results.append(Result(status="stale", reason=refusal) if refusal else APPLIED)
            if not refusal:
                self._take(action, happened)
        if any(result is APPLIED for result in happened.results):
            self._go_on(now, happened)
        return happened.outcome()

    def _stale(self, action: Action) -> str:
        """Why an action cannot be applied, or nothing."""
        if action.seen < self._opens or action.agent not in self._waiting():
            return "that is not asked now"
        return illegal(self._format(), action.answer) or ""

    def _take(self, action: Action, happened: Happened) -> None:
        """An answer, which all can see who come later, and the probability, which nobody sees."""
        agent, given = action.agent, action.answer
        self._notices.read(agent, action.shows)
        place, apart = {"round": self._round, "position": len(self._now) + 1}, self._apart(agent)
        data = {"answer": given["answer"], **place}
        fact = self._fact(happened, "answer", (agent,) if apart else ALL, data, agent)
        if action.meant and self._roles[agent] != CONFEDERATE:
            right = given["answer"] == self._question.right
            signal = self._signals.get(agent)
            known = {"choice": given["answer"], "signal": signal and signal.what}
            data = {**known, **place, "probability": float(given["probability"]), "outcome": right}
            self._fact(happened, "stated", NOBODY, data, agent)
        self._now.append(Given(agent, given["answer"], fact, apart))

    def _go_on(self, now: int, happened: Happened) -> None:
        """The next in order, the next round, or the end of the question."""
        if self._waiting():
            if self._params.schedule == "sequential":
                self._ask(now + self._params.pause, happened)
            return
        if self._order and self._round < self._params.rounds:
            self._before, self._now = self._now, []
            self._round += 1
            self._ask(now + self._params.pause, happened)
        else:
            self._close(now, happened)

    def _close(self, now: int, happened: Happened) -> None:
        """Pay for right answers, tell what was right where that is told, and ask the next question."""
        right = self._question.right
        happened.rewards |= {one.agent: float(one.answer == right) for one in self._now if one.agent in self._roles}
        self._result = None
        if self._params.feedback:
            self._result = Told(right, self._fact(happened, "result", ALL, {"result": right}))
        self._next(now + self._params.pause, happened)

    # --- interventions -----------------------------------------------------------------------------

    def change(self, now: int, change: Change) -> Outcome:
        """Say; Set; Leave; who Joins is asked from the next question on. Raises ValueError for what cannot be done."""
        happened = Happened()
        match change:
            case Say():
                readers = self._notices.readers(change)
                fact = self._fact(happened, "notice", change.to, {"text": change.text})
                self._notices.post(readers, fact, change.text)
            case Set():
                self._params = changed(self._params, change, self.changeable, "a herding world")
            case Join():
                self._notices.admit(change.seat.agent)
                self._roles[change.seat.agent] = change.seat.role
            case Leave():
                self._leave(now, change.agent, happened)
        return happened.outcome()

    def _leave(self, now: int, agent: AgentId, happened: Happened) -> None:
        self._notices.known([agent])
        if self._roles.pop(agent, None) is None or agent not in self._order:
            return
        asked = agent in self._waiting()
        self._order.remove(agent)
        if asked:
            self._go_on(now, happened)

    def state(self) -> JSON:
        """Everything, as a fresh JSON value."""
        return {
            "params": self._params.model_dump(mode="json"),
            "roles": dict(self._roles),
            "number": self._number,
            "round": self._round,
            "opens": self._opens,
            "question": [self._question.question, list(self._question.options), self._question.right, self._asked_as],
            "signals": {agent: list(told) for agent, told in self._signals.items()},
            "plan": self._plan and list(self._plan),
            "result": self._result and list(self._result),
            "order": list(self._order),
            "before": [list(one) for one in self._before],
            "now": [list(one) for one in self._now],
            "unread": self._notices.state(),
            "facts": self._facts,
        }
