"""People in a run: seats that they take, what they are asked, and what they answer.

An engine that asks people has `pending` and `answer` beside what every engine has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import orjson

from sim.answers import describe, schema
from sim.quantities import readable
from sim.runs import Session
from sim.scenarios.located import shown
from sim.scenarios.scenario_schema import PERSON, Scenario
from sim.steering.live import Refused
from sim.types import JSON, AgentId, CallKey, Choice, Form, Format, Request

MODEL = "person"
"""Name of the model of a seat that a person takes."""


@runtime_checkable
class AsksPeople(Protocol):
    """An engine whose answers come from people."""

    def pending(self) -> Sequence[Request]:
        """What waits for an answer, the oldest first."""

    def answer(self, key: CallKey, text: str) -> str:
        """Answer a question: empty, or why the answer will not do. Raises KeyError where it is not asked any more."""


# --- seats ------------------------------------------------------------------------------------------


def taking(seat: AgentId) -> list[str]:
    """Overrides of a scenario by which a person takes a seat, at the only table."""
    seated = [f"seats.{seat}.agent={PERSON}", f"seats.{seat}.model={MODEL}"]
    return [f"models.{MODEL}.engine=human", *seated, "tables=1", "group=1"]


def peoples(scenario: Scenario) -> list[AgentId]:
    """The agents for whom a person answers."""
    return [
        agent
        for _, entry in scenario.entries
        for agent in entry.agents
        if (model := scenario.spoken(entry, agent)) and scenario.models[model].person
    ]


# --- questions --------------------------------------------------------------------------------------


def questions(session: Session) -> list[dict[str, JSON]]:
    """What people are asked at the moment, the oldest first."""
    assert session.plan is not None
    return [_question(request, session.plan.tick_ms) for _, request in _asked(session)]


def answer(session: Session, question: str, given: JSON) -> None:
    """Answer a question, by its id or its agent's: a text, or an object where a form is asked for. Raises Refused."""
    text = given if isinstance(given, str) else orjson.dumps(given).decode()
    for engine, request in _asked(session):
        if question in (_id(request.key), request.key.agent):
            try:
                reason = engine.answer(request.key, text)
            except KeyError:
                break
            if reason:
                raise Refused(reason)
            return
    raise Refused(f"nobody asks {shown(question)} anything at the moment")


def _asked(session: Session) -> list[tuple[AsksPeople, Request]]:
    """Questions with who asks them; not those for which their seat has no more use."""
    engines = session.pool.built if session.pool else []
    asked = [(engine, request) for engine in engines if isinstance(engine, AsksPeople) for request in engine.pending()]
    return [(engine, request) for engine, request in asked if _at_it(session, request.key)]


def _at_it(session: Session, key: CallKey) -> bool:
    return session.tables[key.table].thinking(key.agent) == (key.tick, key.nth)


def _question(request: Request, tick_ms: float) -> dict[str, JSON]:
    key, messages = request.key, request.messages
    return {
        "id": _id(key),
        "table": key.table,
        "agent": key.agent,
        "tick": key.tick,
        "time": readable(key.tick, tick_ms),
        "about": "\n\n".join(message.text for message in messages[:-1]),
        "text": messages[-1].text,
        "how": describe(request.format),
        "format": json_schema(request.format),
    }


def _id(key: CallKey) -> str:
    return "/".join(map(str, key))


def json_schema(form: Format) -> dict[str, JSON]:
    """An answer format as a JSON schema."""
    if isinstance(form, Form):
        return schema(form)
    if isinstance(form, Choice):
        return {"type": "string", "enum": list(form.options)}
    return {"type": "string", "minLength": 1, "maxLength": form.max_chars}
