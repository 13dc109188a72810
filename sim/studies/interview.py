"""Interviews: a copy of an agent, as it was at some moment of a run, is asked questions that the run never hears.

An interview is a run of its own, whose world does nothing but ask, and whose only agent begins where the other run's
agent was. So it is recorded, verified and resumed like any other, and the run that it is about is only read.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field

from sim.record.reader import Run
from sim.record.schema import Manifest
from sim.runs import cast_rows, policies_of, stored
from sim.scenarios.cast import Frozen, thaw
from sim.scenarios.located import nearest, shown
from sim.scenarios.plan import plan
from sim.scenarios.scenario import loads
from sim.scenarios.scenario_schema import Scenario
from sim.scenarios.yaml_text import write_yaml
from sim.streams import Streams
from sim.studies.recall import Recollection, recall
from sim.types import (
    APPLIED,
    JSON,
    Action,
    AgentId,
    Change,
    Fact,
    Member,
    Metric,
    Mind,
    Outcome,
    Seat,
    Text,
    Turn,
    Wake,
)

SILENCE = "(no answer)"
"""Taken where no legal answer comes."""


class NotAskable(ValueError):
    """Nobody can be interviewed like that; the text says why, and who or when could be."""


# --- the run ----------------------------------------------------------------------------------------


def interview(
    path: Path, folder: Path, agent: AgentId, at: int | str, questions: Sequence[str], table: int = 0
) -> Path:
    """A new run file, not started, that asks a copy of an agent; the run at `path` is only read.

    `at`: a duration or a tick; the agent knows all that it knew after it. Where a run was forked later than that, it is
    its parent that is asked. Start it with `sim.runs.go`, read it with `answers`. Raises NotAskable, ScenarioError.
    """
    with Run(path) as run:
        manifest = run.manifest()
        scenario = loads(manifest.scenario, manifest.base, file=f"{path.name}: scenario")
        tick = scenario.ticks(("interview", "at"), at)
        if manifest.fork_tick is not None and tick < manifest.fork_tick:
            return interview(Path(manifest.parent), folder, agent, tick, questions, table)
        _check_moment(run, manifest, tick, table)
        member = _askable(scenario, thaw(cast_rows(run), scenario)[table], agent, tick)
        policies = policies_of(run)
    asking = loads(write_yaml(_data(scenario, path, member, tick, questions, table)), scenario.base, file="interview")
    planned = plan(asking, [[Frozen(table=0, place=0, entry=agent, member=member, think="0")]])
    run_id = f"{manifest.id}-{agent}-at{tick}"
    return stored(folder, run_id, planned, policies, parent=str(path.resolve()), source="")


def _check_moment(run: Run, manifest: Manifest, tick: int, table: int) -> None:
    """All of the moment is recorded."""
    if not 0 <= table < run.tables:
        raise NotAskable(f"{manifest.id} has no table {table}; its tables are 0 to {run.tables - 1}")
    last = run.last_tick(table)
    if tick > last - (manifest.status != "finished"):  # of an unfinished run, the last tick may be there in part
        reach = "ends at" if manifest.status == "finished" else "is recorded up to"
        raise NotAskable(f"{manifest.id} {reach} tick {last}, so tick {tick} is too late; choose an earlier moment")


def _askable(scenario: Scenario, cast: Sequence[Frozen], agent: AgentId, tick: int) -> Member:
    """The agent, if it has a model that can be asked."""
    there = {one.member.seat.agent: one for one in cast}
    able = [name for name, one in there.items() if one.member.model and not scenario.models[one.member.model].person]
    if agent not in there:
        raise NotAskable(f"no agent has the id {shown(agent)}; {nearest(agent, able)}")
    if agent not in able:
        why = "is a person; ask them" if there[agent].member.model else "is scripted, so there is no model to ask"
        others = f"; {nearest('', able)}" if able else ""
        raise NotAskable(f"{agent} {why}{others}")
    if there[agent].joined > tick:
        raise NotAskable(f"{agent} joins at tick {there[agent].joined}; choose a later moment")
    return there[agent].member


def _data(
    scenario: Scenario, path: Path, member: Member, tick: int, questions: Sequence[str], table: int
) -> dict[str, JSON]:
    """The scenario of the interview."""
    return {
        "name": scenario.name,
        "seed": scenario.seed,
        "clock": {"tick": scenario.clock.tick, "until": None},
        "world": {"use": "sim.studies.interview:Interview", "at": tick, "questions": list(questions)},
        "models": scenario.located.data["models"],
        "cast": [
            {
                "name": member.seat.agent,
                "agent": "sim.studies.interview:Recalled",
                "model": member.model,
                "think": 0,
                "with": {"run": str(path.resolve()), "at": tick, "table": table},
            }
        ],
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What an agent said."""

    question: str
    text: str
    how: str
    """chosen, retried, defaulted (it said nothing that can be used) or faulted."""
    reason: str
    """Why it was not chosen at once."""


def answers(path: Path) -> list[Answer]:
    """The answers of an interview so far."""
    with Run(path) as run:
        questions = run.params["questions"]
        return [
            Answer(question=question, text=one.action.answer, how=one.action.how, reason=one.action.reason)
            for question, one in zip(questions, run.decisions(), strict=False)
        ]


# --- its world --------------------------------------------------------------------------------------


class Questions(BaseModel):
    """What is asked, and when."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    at: int = Field(default=0, ge=0)
    """Tick at which the agent is as it was."""
    questions: tuple[str, ...] = Field(default=("How are you?",), min_length=1)
    """One after the other."""
    max_chars: int = Field(default=600, ge=1)
    """Longest answer."""


class Interview:
    """Everybody in it is asked one question after the other; nobody hears what others say."""

    Params: ClassVar[type[BaseModel]] = Questions
    metrics: ClassVar[tuple[Metric, ...]] = ()
    changeable: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, params: Questions) -> None:
        self.params = params
        self.facts = 0
        self.asked: dict[AgentId, list[int]] = {}
        """Ids of the questions put to each agent."""

    def reset(self, seats: Sequence[Seat], streams: Streams) -> Outcome:
        """Ask the first question."""
        self.facts, self.asked = 0, {seat.agent: [] for seat in seats}
        facts = [self._ask(agent) for agent in self.asked]
        return Outcome(facts=facts, wakes=[Wake(agent=agent, tick=self.params.at) for agent in self.asked])

    def observe(self, now: int, agent: AgentId) -> Turn | None:
        """The latest question."""
        asked = self.asked.get(agent)
        if not asked:
            return None
        return Turn(
            agent=agent,
            now=now,
            view={"question": self.params.questions[len(asked) - 1]},
            format=Text(max_chars=self.params.max_chars),
            default=SILENCE,
            render=lambda view: f"Somebody from outside asks you, and nobody else hears it: {view['question']}",
            shows=(asked[-1],),
        )

    def step(self, now: int, actions: Sequence[Action]) -> Outcome:
        """Take the answers; ask on."""
        facts: list[Fact] = []
        on = [one.agent for one in actions if len(self.asked[one.agent]) < len(self.params.questions)]
        for action in actions:
            about = self.asked[action.agent][-1]
            facts.append(self._fact("answer", action.agent, action.agent, action.answer, (about,)))
        facts += [self._ask(agent) for agent in on]
        done = [one.agent for one in actions if one.agent not in on]
        for agent in done:
            self.asked[agent] = []
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
        """How far everybody is."""
        return {"facts": self.facts, "asked": {agent: list(ids) for agent, ids in self.asked.items()}}

    def _ask(self, agent: AgentId) -> Fact:
        self.asked[agent].append(self.facts)
        return self._fact("question", "", agent, self.params.questions[len(self.asked[agent]) - 1])

    def _fact(self, kind: str, actor: AgentId, to: AgentId, text: str, about: tuple[int, ...] = ()) -> Fact:
        self.facts += 1
        return Fact(id=self.facts - 1, kind=kind, actor=actor, audience=(to,), data={"text": text}, answers=about)


# --- its agent --------------------------------------------------------------------------------------


class Recalled:
    """A mind that begins where an agent of another run was at a tick. That run is replayed at its first decision."""

    def __init__(self, member: Member, *, run: str, at: int, table: int = 0) -> None:
        if not Path(run).exists():
            raise ValueError(f"the run {run} is gone; bring it back")
        self.state: object = None
        self._where = Path(run), member.seat.agent, at, table

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """As the agent would have, under the rules that it knows."""
        path, *rest = self._where
        found = _recalled(path, path.stat().st_ino, *rest)
        agent = deepcopy(found.agent)
        if self.state is not None:
            agent.state = self.state
        action = yield from agent.act(replace(turn, rules=found.rules), streams)
        return replace(action, recalls=())  # ids of the other run's facts


@lru_cache(maxsize=8)
def _recalled(path: Path, _inode: int, agent: AgentId, at: int, table: int) -> Recollection:
    """What is recalled, and not changed by anybody; the past of a run stays as it is."""
    return recall(path, agent, at, table)
