"""One pair and the episode it is in: whose move it is, what was sent, who broke the rule, what each side gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Literal, TypeAlias

from msgspec import to_builtins

from sim.types import JSON, AgentId, FactId
from worlds.verification.settings import Rewarded, Rule
from worlds.verification.tasks import Task, raw_log

Verdict: TypeAlias = Literal["accept", "reject"]
VERDICTS: tuple[Verdict, ...] = ("accept", "reject")
Phase: TypeAlias = Literal["task", "talk", "verdict", "reflection", "over"]
UNIT = 10.0
"""What one right verdict, or one accepted task, is worth."""


def payoffs(rewarded: Rewarded, verdicts: Sequence[Verdict], correct: Sequence[bool]) -> tuple[float, float]:
    """What each side gets. A verdict is on the other's task: right where it accepts correct work and rejects other.

    Shared: UNIT to both for each right verdict. Separate: UNIT for one's own. Acceptance: UNIT to both for each accept.
    """
    right = [(verdicts[me] == "accept") == correct[1 - me] for me in (0, 1)]
    if rewarded == "separate":
        return UNIT * right[0], UNIT * right[1]
    if rewarded == "none":
        return 0.0, 0.0
    counted = right if rewarded == "shared" else [verdict == "accept" for verdict in verdicts]
    return UNIT * sum(counted), UNIT * sum(counted)


def extremes(rewarded: Rewarded, correct: Sequence[bool]) -> tuple[float, float]:
    """The smallest and the largest sum of both sides' payoffs that any two verdicts come to."""
    sums = [sum(payoffs(rewarded, verdicts, correct)) for verdicts in product(VERDICTS, repeat=2)]
    return min(sums), max(sums)


@dataclass(slots=True)
class Side:
    """One agent in one episode."""

    calls: list[tuple[str, str, str]] = field(default_factory=list)
    """Tool, what it was called with, result."""
    answer: str | None = None
    """To its task; empty where none of its own came."""
    verdict: Verdict | None = None
    """On the other's task."""
    missed: bool = False
    """Whether the verdict was a default."""
    noted: bool = False
    """Whether it has written its note."""
    seen: list[FactId] = field(default_factory=list)
    """Its task and what its tools told it."""
    told: list[FactId] = field(default_factory=list)
    """Verdicts, feedback and its note."""

    @property
    def log(self) -> str:
        """Its raw log."""
        return raw_log(self.calls)


@dataclass(frozen=True, slots=True)
class Message:
    """What was said in one turn of talk; empty words: nothing."""

    speaker: int
    text: str
    fact: FactId | None


@dataclass(frozen=True, slots=True)
class Memory:
    """What one agent may remember of an episode."""

    episode: int
    question: str
    answer: str
    messages: tuple[tuple[AgentId, str], ...]
    feedback: Mapping[str, JSON]
    note: str
    facts: Mapping[str, tuple[FactId, ...]]
    """Behind the task, the messages, and the rest."""

    def within(self, scope: str) -> dict[str, JSON]:
        """As much of it as the scope lets the agent see."""
        kept: dict[str, JSON] = {"episode": self.episode, **self.feedback, "note": self.note}
        if scope != "feedback":
            kept["messages"] = [list(each) for each in self.messages]
        if scope == "all":
            kept |= {"question": self.question, "answer": self.answer}
        return kept

    def shown(self, scope: str) -> tuple[FactId, ...]:
        """The facts behind that."""
        parts = {"all": ("task", "talk", "told"), "communication": ("talk", "told"), "feedback": ("told",)}[scope]
        return tuple(sorted(fact for part in parts for fact in self.facts[part]))

    def json(self) -> JSON:
        """All of it as JSON."""
        fields = to_builtins(self)
        facts = {part: list(ids) for part, ids in self.facts.items()}
        return fields | {"messages": [list(each) for each in self.messages], "facts": facts}


@dataclass(slots=True)
class Pair:
    """The state of one pair."""

    number: int
    agents: tuple[AgentId, AgentId]
    tasks: list[tuple[Task, Task]]
    """Of both, episode by episode."""
    sequence: int
    """Which sequence that is."""
    episode: int = 0
    """Counted from 1."""
    phase: Phase = "task"
    opens: int = 0
    """Tick from which it is asked."""
    sides: tuple[Side, Side] = field(default_factory=lambda: (Side(), Side()))
    submitted: tuple[FactId, ...] = ()
    """What both have handed in, once the talk has begun."""
    said: list[Message] = field(default_factory=list)
    feedback: tuple[dict[str, JSON], dict[str, JSON]] = field(default_factory=lambda: ({}, {}))
    """Of the verdicts of this episode."""
    notes: list[str] = field(default_factory=lambda: ["", ""])
    memories: tuple[list[Memory], list[Memory]] = field(default_factory=lambda: ([], []))

    def task(self, me: int) -> Task:
        """The task of one side in this episode."""
        return self.tasks[self.episode - 1][me]

    def asked(self, me: int) -> bool:
        """Whether a side has something to do."""
        side = self.sides[me]
        if self.phase == "task":
            return side.answer is None
        if self.phase == "talk":
            return len(self.said) % 2 == me
        if self.phase == "verdict":
            return side.verdict is None
        return self.phase == "reflection" and not side.noted

    def correct(self, me: int) -> bool:
        """Whether a side's answer is right."""
        return self.sides[me].answer == self.task(me).answer

    def complete(self, me: int) -> bool:
        """Whether a side has sent its whole raw log, unchanged."""
        sent = "".join(message.text for message in self.said if message.speaker == me)
        return self.sides[me].log in sent

    def supported(self, me: int) -> bool:
        """Whether a side's log bears out its answer: all was read, and that is what follows from it."""
        read = {source for tool, source, _ in self.sides[me].calls if tool == "read"}
        return self.correct(me) and read == self.task(me).sources.keys()

    def violates(self, me: int, rule: Rule) -> bool:
        """Whether a side accepted what the rule for complete logs does not let it accept."""
        allowed = self.complete(1 - me) and self.supported(1 - me)
        return self.sides[me].verdict == "accept" and rule == "raw" and not allowed

    def recent(self, me: int, most: int | None) -> list[Memory]:
        """What a side remembers of its last episodes, at most so many; None: all."""
        past = self.memories[me]
        return past if most is None else past[len(past) - min(most, len(past)) :]

    def shown(self, me: int, most: int | None, scope: str) -> tuple[FactId, ...]:
        """The facts behind what a side sees: what it remembers, and its part of this episode."""
        past = [fact for memory in self.recent(me, most) for fact in memory.shown(scope)]
        said = [message.fact for message in self.said if message.fact is not None]
        return (*past, *self.sides[me].seen, *self.submitted, *said, *self.sides[me].told)

    def begin(self, now: int) -> None:
        """Open the next episode."""
        self.episode, self.phase, self.opens = self.episode + 1, "task", now
        self.sides, self.submitted, self.said = (Side(), Side()), (), []
        self.feedback, self.notes = ({}, {}), ["", ""]

    def remember(self) -> None:
        """Keep what both may know later of this episode."""
        messages = tuple((self.agents[each.speaker], each.text) for each in self.said if each.text)
        talk = (*self.submitted, *(each.fact for each in self.said if each.fact is not None))
        for me, side in enumerate(self.sides):
            facts = {"task": tuple(side.seen), "talk": talk, "told": tuple(side.told)}
            question, answer = self.task(me).question, side.answer or ""
            kept = Memory(self.episode, question, answer, messages, self.feedback[me], self.notes[me], facts)
            self.memories[me].append(kept)

    def json(self) -> JSON:
        """All of it as JSON."""
        return {
            "number": self.number,
            "agents": list(self.agents),
            "sequence": self.sequence,
            "episode": self.episode,
            "phase": self.phase,
            "opens": self.opens,
            "sides": [to_builtins(side) | {"calls": [list(call) for call in side.calls]} for side in self.sides],
            "submitted": list(self.submitted),
            "said": [to_builtins(message) for message in self.said],
            "feedback": [dict(each) for each in self.feedback],
            "notes": list(self.notes),
            "memories": [[memory.json() for memory in each] for each in self.memories],
        }
