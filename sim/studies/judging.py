"""Judging: texts of runs are put to a model, one question at a time, in a run of its own whose world does nothing else.

So every verdict is recorded, and a judging is verified, resumed and forked like any other run; the runs that are judged
are only read. The judge is blind: names of agents, roles, models and runs are hidden before a text reaches it. The
order of options, and of two texts compared, is balanced over items. Texts whose truth people have told are asked three
times: with the order turned, and again as the first time. `sim.metrics.judging.judge` makes rates of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Literal, NamedTuple, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from sim.answers import describe, parse
from sim.metrics.judging.judge import rates
from sim.streams import Streams
from sim.studies.rubric import PAIR
from sim.types import (
    APPLIED,
    JSON,
    Action,
    AgentId,
    Change,
    Choice,
    Fact,
    Member,
    Message,
    Metric,
    Mind,
    Outcome,
    Request,
    Seat,
    Turn,
    Wake,
)

Rule: TypeAlias = Literal["", "yes", "no"]
"""Whether a rule calls a text positive; empty: none can tell."""
ORDERS = (False, True, False)
"""Whether the order is turned, at each time that a text with a known truth is asked."""
RULES = "You judge texts. Read carefully, decide by the question alone, and give one of the answers."
HIDDEN = "(hidden)"


class Item(BaseModel):
    """Something that is judged."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    shows: dict[str, str]
    """What the judge is shown, by field, blinded."""
    run: str = ""
    """Whose it is; empty: the calibration set's."""
    table: int = 0
    fact: int = 0
    """The message, in its run."""
    labels: tuple[str, ...] = ()
    """What people said, in the calibration set."""
    rule: Rule = ""
    """Whether a rule calls it positive, where one can tell."""


class Docket(BaseModel):
    """All that is to be judged, and how."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = "judged"
    question: str = "Is it so?"
    options: tuple[str, ...] = Field(default=("yes", "no"), min_length=2)
    positive: str = "yes"
    definitions: dict[str, str] = {}
    compare: tuple[str, ...] = ()
    """Two fields of which one stands first."""
    items: tuple[Item, ...] = (Item(shows={"message": "Good morning."}),)
    judge: str = ""
    """Which model judges, in words."""
    judged: tuple[str, ...] = ()
    """The models that are judged."""


class Asked(NamedTuple):
    """One question: an item, and in which order."""

    item: int
    turned: bool


def questions(docket: Docket, streams: Streams) -> list[Asked]:
    """All questions: half of the items with the order turned, drawn; calibration texts as often as `ORDERS` says."""
    places = streams.shuffled(range(len(docket.items)), "order")
    turned = {item: place % 2 == 1 for place, item in enumerate(places)}
    return [
        Asked(number, turned[number] != other)
        for number, item in enumerate(docket.items)
        for other in (ORDERS if item.labels else ORDERS[:1])
    ]


class Judging:
    """Every judge is asked its share of the questions, one after the other; nobody hears of the others."""

    Params: ClassVar[type[BaseModel]] = Docket
    metrics: ClassVar[tuple[Metric, ...]] = (rates,)
    changeable: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, params: Docket) -> None:
        self.params = params
        self.facts = 0
        self.waiting: dict[AgentId, list[int]] = {}
        """Places of the questions that each judge has yet to answer."""
        self._questions: list[Asked] = []

    def reset(self, seats: Sequence[Seat], streams: Streams) -> Outcome:
        """Deal the questions out."""
        self.facts, self._questions = 0, questions(self.params, streams)
        every = range(len(self._questions))
        self.waiting = {seat.agent: list(every[place :: len(seats)]) for place, seat in enumerate(seats)}
        done = [agent for agent, left in self.waiting.items() if not left]
        return Outcome(
            wakes=[Wake(agent=agent, tick=0) for agent in self.waiting if agent not in done],
            ended=dict.fromkeys(done, "terminated"),
        )

    def observe(self, now: int, agent: AgentId) -> Turn | None:
        """The next question."""
        if not self.waiting.get(agent):
            return None
        asked, docket = self._questions[self.waiting[agent][0]], self.params
        return Turn(
            agent=agent,
            now=now,
            view={"texts": _texts(docket, asked), "question": docket.question, "options": _options(docket, asked)},
            format=Choice(options=tuple(_options(docket, asked))),
            default=_options(docket, asked)[0],
            render=lambda view: _words(docket, view),
            rules=RULES,
        )

    def step(self, now: int, actions: Sequence[Action]) -> Outcome:
        """Take the verdicts; ask on. A verdict on texts that were exchanged is told for them as they were."""
        facts: list[Fact] = []
        for action in actions:
            number = self.waiting[action.agent].pop(0)
            asked = self._questions[number]
            given = action.answer if action.how in ("chosen", "retried") else ""
            verdict = _untwisted(self.params, asked, given)
            data = {"question": number, "item": asked.item, "turned": asked.turned, "verdict": verdict}
            facts.append(Fact(id=self.facts + len(facts), kind="verdict", actor=action.agent, audience=(), data=data))
        self.facts += len(facts)
        on = [action.agent for action in actions if self.waiting[action.agent]]
        done = [action.agent for action in actions if not self.waiting[action.agent]]
        return Outcome(
            facts=facts,
            results=[APPLIED] * len(actions),
            wakes=[Wake(agent=agent, tick=now) for agent in on],
            ended=dict.fromkeys(done, "terminated"),
        )

    def change(self, now: int, change: Change) -> Outcome:
        """Nothing changes here."""
        return Outcome()

    def state(self) -> JSON:
        """How far the judges are."""
        return {"facts": self.facts, "waiting": {agent: list(left) for agent, left in self.waiting.items()}}


def _texts(docket: Docket, asked: Asked) -> dict[str, str]:
    """The fields of an item; of two that are compared the one that stands first is called so."""
    shows = docket.items[asked.item].shows
    if not docket.compare:
        return dict(shows)
    pair = docket.compare[::-1] if asked.turned else docket.compare
    others = {field: text for field, text in shows.items() if field not in pair}
    return others | {name: shows[field] for name, field in zip(PAIR, pair, strict=True)}


def _options(docket: Docket, asked: Asked) -> list[str]:
    return list(docket.options[::-1] if asked.turned else docket.options)


def _untwisted(docket: Docket, asked: Asked, given: str) -> str:
    if docket.compare and asked.turned and given in PAIR:
        return PAIR[1 - PAIR.index(given)]
    return given


def _words(docket: Docket, view: Mapping[str, JSON]) -> str:
    """The question in words, texts marked off from it."""
    shown = [f"{field.capitalize()}:\n<<<\n{text}\n>>>" for field, text in view["texts"].items()]
    meant = [f"{option}: {docket.definitions[option]}" for option in view["options"] if option in docket.definitions]
    return "\n\n".join([*shown, f"Question: {view['question']}", *(["\n".join(meant)] if meant else [])])


# --- its agent --------------------------------------------------------------------------------------


class Judge:
    """A mind that asks its model once a question, and remembers nothing. What is no legal answer is no verdict."""

    def __init__(self, member: Member) -> None:
        self.member = member
        self.state: object = None

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """One call."""
        messages = (
            Message(role="system", text=turn.rules),
            Message(role="user", text=f"{turn.text}\n\n{describe(turn.format)}"),
        )
        (completion,) = yield (
            Request(messages=messages, format=turn.format, purpose="judge", model=self.member.model),
        )
        answer, reason = parse(turn.format, completion.text)
        if completion.error or answer is None:
            return Action(answer=turn.default, how="defaulted", reason=completion.error or reason)
        return Action(answer=answer)


# --- blinding ---------------------------------------------------------------------------------------


def blinded(shows: Mapping[str, str], names: Sequence[str], others: Sequence[str]) -> dict[str, str]:
    """Texts in which agents are called by letters, in the order in which they come, and other words are hidden.

    `names`: ids and names of agents, `others`: roles, models, runs. Whole words, whatever their case.
    """
    wanted = {one.lower() for one in names if one} | {one.lower() for one in others if one}
    if not wanted:
        return dict(shows)
    longest_first = sorted(wanted, key=lambda one: (-len(one), one))
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)", re.IGNORECASE)
    people, letters = {one.lower() for one in names}, _letters()
    given: dict[str, str] = {}

    def instead(found: re.Match[str]) -> str:
        word = found[0].lower()
        if word not in people:
            return HIDDEN
        if word not in given:
            given[word] = f"Person {next(letters)}"
        return given[word]

    return {field: pattern.sub(instead, text) for field, text in shows.items()}


def _letters() -> Iterator[str]:
    number = 0
    while True:
        number += 1
        yield chr(64 + number) if number <= 26 else f"A{number}"


def called(member: Member) -> list[str]:
    """All that an agent may be called."""
    named = [member.seat.agent, member.persona.get("name", ""), member.seat.public.get("name", "")]
    return [str(one) for one in named if one]
