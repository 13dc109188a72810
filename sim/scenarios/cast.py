"""The frozen cast: every agent of every table as plain values, drawn once and stored with the run.

Draws are keyed by the agent and what is drawn, so that one more agent changes nobody else. Personas are the same at
every table, private values are drawn for each group of tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeAlias

import msgspec
import orjson

from sim.quantities import Distribution
from sim.scenarios.draws import drawable
from sim.scenarios.located import Keys, nearest, shown
from sim.scenarios.persona import Deck, Persona, read
from sim.scenarios.scenario_schema import CastEntry, FromPrivate, Picked, Sampled, Scenario, SecretSpec
from sim.scenarios.secret import dealt
from sim.streams import Key, Streams
from sim.types import JSON, AgentId, Member, Seat, Secret

Parse: TypeAlias = Callable[[str], Distribution | None]
Row: TypeAlias = tuple[int, int, str, str, str, str, str, str, str, str, int, str]
"""One agent of one table as the record stores it: tbl, place, agent, role; private, public, persona and secrets as JSON
texts; model, think, joined, past."""

NO_CONTEXT = 4096
"""Context of an agent without a model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    """One agent of one table, before it is built."""

    table: int
    place: int
    """Position in the cast, joiners last."""
    entry: str
    """Name of the scenario's cast entry."""
    member: Member
    think: str
    """Its think time, as written."""
    joined: int = 0
    """Tick at which it takes its seat."""


def freeze(scenario: Scenario) -> list[list[Frozen]]:
    """The cast of each table. Reads the persona files; raises ScenarioError where one is missing or wrong."""
    dealer = _Dealer(scenario)
    people = [
        (keys, entry, agent, dealer.persona(keys, entry, agent), _joined(scenario, keys))
        for keys, entry in scenario.entries
        for agent in entry.agents
    ]
    tables = []
    for table in range(scenario.tables):
        group = table // scenario.group
        streams = Streams(scenario.seed).sub(*(("table", group) if group else ()), "cast")
        tables.append(
            [
                Frozen(
                    table=table,
                    place=place,
                    entry=entry.name,
                    member=_member(scenario, keys, entry, agent, persona, streams.sub(agent)),
                    think=str(entry.think),
                    joined=joined,
                )
                for place, (keys, entry, agent, persona, joined) in enumerate(people)
            ]
        )
    return tables


def _joined(scenario: Scenario, keys: Keys) -> int:
    """Tick at which the agents of an entry take their seats."""
    if keys[0] == "cast":
        return 0
    return scenario.ticks((*keys[:2], "at"), scenario.interventions[int(keys[1])].at)


def rows(tables: Sequence[Sequence[Frozen]]) -> list[Row]:
    """The cast as rows of the record."""
    return [_row(frozen) for table in tables for frozen in table]


def _row(frozen: Frozen) -> Row:
    member, seat = frozen.member, frozen.member.seat
    return (
        frozen.table,
        frozen.place,
        seat.agent,
        seat.role,
        _json(seat.private),
        _json(seat.public),
        _json(member.persona),
        _json([_secret_json(secret) for secret in member.secrets]),
        member.model,
        frozen.think,
        frozen.joined,
        member.past,
    )


def _json(value: JSON) -> str:
    """JSON with keys in their order, so that a stored cast makes the same prompts as a fresh one."""
    return orjson.dumps(value).decode()


def _secret_json(secret: Secret) -> dict[str, JSON]:
    told: dict[str, JSON] = {"forms": list(secret.forms)} if secret.forms else {}
    told |= {"severity": secret.severity} if secret.severity != 1 else {}
    told |= {"tolerance": secret.tolerance} if secret.tolerance else {}
    told |= {"prior": list(secret.prior)} if secret.prior else {}
    return {
        "subject": secret.subject,
        "attribute": secret.attribute,
        "value": secret.value,
        "holder": secret.holder,
        "norms": [dict(norm) for norm in secret.norms],
        **told,
    }


def thaw(stored: Iterable[Row], scenario: Scenario) -> list[list[Frozen]]:
    """The cast from rows of the record. Raises ScenarioError where they are not this scenario's agents."""
    entries = {agent: entry.name for _, entry in scenario.entries for agent in entry.agents}
    tables: list[list[Frozen]] = [[] for _ in range(scenario.tables)]
    for row in sorted(stored):
        table, _, agent, *_ = row
        if table >= len(tables) or agent not in entries:
            message = f"the stored cast has {shown(agent)} at table {table}, whom this scenario does not name"
            raise scenario.error(("cast",), message)
        tables[table].append(_thawed(row, entries[agent], scenario))
    for number, members in enumerate(tables):
        if missing := entries.keys() - {frozen.member.seat.agent for frozen in members}:
            raise scenario.error(("cast",), f"the stored cast lacks {shown(min(missing))} at table {number}")
    return tables


def _thawed(row: Row, entry: str, scenario: Scenario) -> Frozen:
    table, place, agent, role, private, public, persona, secrets, model, think, joined, past = row
    member = Member(
        seat=Seat(agent=agent, role=role, private=orjson.loads(private), public=orjson.loads(public)),
        persona=orjson.loads(persona),
        secrets=msgspec.convert(orjson.loads(secrets), tuple[Secret, ...]),
        model=model,
        context=context(scenario, model),
        past=past,
    )
    return Frozen(table=table, place=place, entry=entry, member=member, think=think, joined=joined)


def cast_hash(tables: Sequence[Sequence[Frozen]]) -> str:
    """Hash (hex) of the whole cast."""
    digest = blake2b(digest_size=16)
    for row in rows(tables):
        digest.update(orjson.dumps(row))
    return digest.hexdigest()


class _Dealer:
    """Finds each agent's persona, reading every file once."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._read: dict[str, list[Persona]] = {}
        self._decks: dict[str, Deck] = {}

    def persona(self, keys: Keys, entry: CastEntry, agent: AgentId) -> dict[str, JSON]:
        """The agent's persona, as plain values."""
        spec = entry.persona
        if isinstance(spec, Sampled):
            return _plain(self._deck((*keys, "persona", "sample"), spec.sample).deal(agent))
        if isinstance(spec, Picked):
            personas = self._personas((*keys, "persona", "file"), spec.file)
            found = [persona for persona in personas if persona.id == spec.id]
            if not found:
                ids = [persona.id for persona in personas]
                message = f"{spec.file} has no persona {shown(spec.id)}; {nearest(spec.id, ids)}"
                raise self._scenario.error((*keys, "persona", "id"), message)
            return _plain(found[0])
        return _plain(spec) if spec else {}

    def _personas(self, keys: Keys, file: str) -> list[Persona]:
        if file not in self._read:
            path = self._scenario.base / file
            if not path.is_file():
                raise self._scenario.error(
                    keys, f"no file {shown(file)} in {self._scenario.base}; name one that is there"
                )
            self._read[file] = read(path)
        return self._read[file]

    def _deck(self, keys: Keys, file: str) -> Deck:
        if file not in self._decks:
            streams = Streams(self._scenario.seed).sub("personas", file)
            self._decks[file] = Deck(self._personas(keys, file), streams)
        return self._decks[file]


def _plain(persona: Persona) -> dict[str, JSON]:
    return persona.model_dump(mode="json", exclude_defaults=True)


def _member(
    scenario: Scenario, keys: Keys, entry: CastEntry, agent: AgentId, persona: dict[str, JSON], streams: Streams
) -> Member:
    tick_ms = scenario.clock.tick_ms
    private = _drawn(entry.private, streams, ("private",), lambda text: drawable(text, tick_ms))
    model = scenario.spoken(entry, agent)
    return Member(
        seat=Seat(agent=agent, role=entry.role, private=private, public=dict(entry.public)),
        persona=persona,
        secrets=tuple(
            dealt(scenario, (*keys, "secrets", n), secret, _value(secret, n, private, streams), agent)
            for n, secret in enumerate(entry.secrets)
        ),
        model=model,
        context=context(scenario, model),
    )


def context(scenario: Scenario, model: str) -> int:
    """Tokens that an agent's model can hold."""
    return scenario.models[model].context if model in scenario.models else NO_CONTEXT


def _drawn(value: JSON, streams: Streams, key: tuple[Key, ...], parse: Parse) -> JSON:
    """The value with each distribution in it drawn by where it stands."""
    if isinstance(value, dict):
        return {name: _drawn(item, streams, (*key, name), parse) for name, item in value.items()}
    if isinstance(value, list):
        return [_drawn(item, streams, (*key, index), parse) for index, item in enumerate(value)]
    found = parse(value) if isinstance(value, str) else None
    return found.quantile(streams.draw(*key)) if found else value


def _value(spec: SecretSpec, n: int, private: Mapping[str, JSON], streams: Streams) -> JSON:
    if isinstance(spec.value, FromPrivate):
        return private[spec.value.private]
    return _drawn(spec.value, streams, ("secret", spec.attribute, n), lambda text: drawable(text, None))
