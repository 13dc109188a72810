"""Personas: who an agent is, read from YAML or JSONL files and dealt to the members of a cast."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import orjson
from pydantic import Field

from sim.scenarios.located import Located, Place, ScenarioError
from sim.scenarios.strict import Many, Strict, checked
from sim.scenarios.yaml_text import read_yaml, text_of
from sim.streams import Streams
from sim.types import AgentId

Share: TypeAlias = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
"""A number between 0 and 1."""


class BigFive(Strict):
    """Personality on five scales, each from 0 (low) to 1 (high)."""

    openness: Share
    """Curious against cautious."""
    conscientiousness: Share
    """Organised against careless."""
    extraversion: Share
    """Outgoing against reserved."""
    agreeableness: Share
    """Friendly against critical."""
    neuroticism: Share
    """Nervous against resilient."""


class Persona(Strict):
    """Who an agent is. Everything is optional, but personas in a file need ids."""

    id: str = Field(default="", max_length=100)
    """Unique within its file."""
    name: str = ""
    """As others would call it."""
    age: int | None = Field(default=None, ge=0, le=150)
    """In years."""
    occupation: str = ""
    """What it does for a living."""
    big_five: BigFive | None = None
    """Its personality."""
    demographics: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Anything else a survey would ask: country, education, income."""
    goals: Many[str] = ()
    """What it wants."""
    style: str = ""
    """How it speaks."""
    background: str = ""
    """Its story."""


def read(path: Path) -> list[Persona]:
    """The personas of a `.yaml` or `.jsonl` file. Raises ScenarioError naming file, line and entry."""
    located = _located(path)
    if not isinstance(located.data, list) or not located.data:
        raise located.error((), "holds no list of personas; write one, each entry with an id")
    personas: dict[str, Persona] = {}
    for index, entry in enumerate(located.data):
        persona = checked(Persona, entry, located, (index,))
        if not persona.id:
            raise located.error((index,), "has no id; every persona of a file needs one of its own")
        if persona.id in personas:
            raise located.error((index, "id"), f"{persona.id!r} is another entry's id; every persona needs its own")
        personas[persona.id] = persona
    return list(personas.values())


def _located(path: Path) -> Located:
    file = str(path)
    if path.suffix not in (".yaml", ".yml", ".jsonl"):
        raise ScenarioError(file, None, "", "is no persona file; its name must end in .yaml, .yml or .jsonl")
    text = text_of(path)
    return _lines(text, file) if path.suffix == ".jsonl" else read_yaml(text, file)


def _lines(text: str, file: str) -> Located:
    """One JSON value a line; empty lines are passed over."""
    located = Located(text, file, [], {})
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        located.places[(len(located.data),)] = Place(file, number)
        try:
            located.data.append(orjson.loads(line))
        except orjson.JSONDecodeError as error:
            raise ScenarioError(file, number, "", f"not JSON ({error}); write one persona a line") from None
    return located


class Deck:
    """Deals personas without replacement; when all are dealt it starts again.

    Each agent draws by its own key among those left, so one more agent changes nobody who draws before it, and of those
    after it only the few who would have drawn the same persona.
    """

    def __init__(self, personas: list[Persona], streams: Streams) -> None:
        self._personas = personas
        self._streams = streams
        self._dealt: set[int] = set()

    def deal(self, agent: AgentId) -> Persona:
        """The next persona, for this agent."""
        if len(self._dealt) == len(self._personas):
            self._dealt.clear()
        last = len(self._personas) - 1
        attempt = 0
        while (index := self._streams.integer(0, last, agent, attempt)) in self._dealt:
            attempt += 1
        self._dealt.add(index)
        return self._personas[index]
