"""Run files written by hand: what was seen, decided, said and called, with a sound log around it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import orjson

from sim.log import Log
from sim.record.reader import Run
from sim.record.schema import Manifest
from sim.record.store import Store
from sim.types import APPLIED, Action, Audience, Fact, Result, Secret
from tests.sim.rows import call


class Society:
    """A run in the making; `run` closes it and opens it for reading."""

    def __init__(self, path: Path, tables: int = 1, params: Mapping[str, Any] | None = None) -> None:
        manifest = Manifest(id=path.stem, name="hand", scenario="name: hand", seed=1, params=dict(params or {}))
        self.path = path
        self.store = Store.create(path, manifest)
        self.logs = [Log(table, self.store.extend) for table in range(tables)]
        self.facts = [0] * tables
        self.places = [0] * tables
        self.texts: set[str] = set()
        for log in self.logs:
            log.event(0, 0, "start", "", [])

    def member(
        self,
        agent: str,
        *,
        role: str = "",
        model: str = "",
        private: Mapping[str, Any] | None = None,
        persona: Mapping[str, Any] | None = None,
        secrets: Sequence[Secret] = (),
        table: int | None = None,
    ) -> None:
        """A member of one table or of all."""
        own, person = (orjson.dumps(one or {}).decode() for one in (private, persona))
        known = orjson.dumps(msgspec.to_builtins(list(secrets))).decode()
        for each in range(len(self.logs)) if table is None else (table,):
            row = (each, self.places[each], agent, role, own, "{}", person, known, model, "1s", 0, "")
            self.places[each] += 1
            self.store.put("cast", row)

    def fact(
        self,
        tick: int,
        kind: str,
        actor: str = "",
        *,
        audience: Audience = "all",
        answers: Sequence[int] = (),
        table: int = 0,
        **data: Any,
    ) -> int:
        """Something that happened; its id."""
        number = self.facts[table]
        self.facts[table] += 1
        fact = Fact(id=number, kind=kind, actor=actor, audience=audience, data=data, answers=tuple(answers))
        self.logs[table].fact(tick, 0, fact)
        return number

    def act(
        self,
        agent: str,
        tick: int,
        *,
        seen: int | None = None,
        shows: Iterable[int] = (),
        recalls: Iterable[int] = (),
        how: str = "chosen",
        stale: bool = False,
        answer: str = "yes",
        key: str | None = None,
        calls: Sequence[Mapping[str, Any]] = (),
        table: int = 0,
    ) -> None:
        """A decision, due at a tick, and its calls."""
        at = tick if seen is None else seen
        for number, each in enumerate(calls):
            self.store.put("calls", call(agent, number, **{"tbl": table, "tick": at, **each}))
        action = Action(
            answer=answer, how=how, agent=agent, seen=at, shows=tuple(sorted(shows)), recalls=tuple(sorted(recalls))
        )
        turn = SimpleNamespace(key=key)
        decision = SimpleNamespace(action=action, turn=turn, nth=0, calls=len(calls), digest=None, state=None)
        self.logs[table].decision(tick, 0, decision, Result(status="stale", reason="late") if stale else APPLIED)

    def say(self, agent: str, tick: int, text: str, *, table: int = 0, **more: Any) -> int:
        """A decision and the message that comes of it; the message's id."""
        told = {key: more.pop(key) for key in ("shows", "recalls", "seen") if key in more}
        self.act(agent, tick, table=table, **told)
        return self.fact(tick, "message", agent, table=table, text=text, **more)

    def look(self, agent: str, tick: int, shows: Iterable[int], table: int = 0) -> None:
        """A decision after which nothing happens."""
        self.act(agent, tick, shows=shows, table=table)

    def prompt(self, *texts: str) -> str:
        """Messages with these texts, as a call names them; a text that is there already is not stored again."""
        names = {text: blake2b(text.encode(), digest_size=16).digest() for text in texts}
        for text, name in names.items():
            if text not in self.texts:
                self.store.put("texts", (name, text))
                self.texts.add(text)
        return orjson.dumps([["user", names[text].hex()] for text in texts]).decode()

    def run(self, secrets: Sequence[Secret] = ()) -> Run:
        """The run as a record."""
        for log in self.logs:
            log.mark(10**6, 0)
        self.store.close()
        return Run(self.path, secrets)


def values(found: Iterable[Any]) -> dict[str, Any]:
    """Measurements by name and subject."""
    return {" ".join([one.metric, *(f"{key}={one.of[key]}" for key in sorted(one.of))]): one for one in found}
