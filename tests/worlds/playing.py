"""Plays a world on the kernel and keeps what metrics read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from sim.kernel import Player
from sim.simulate import player, simulate
from sim.types import Action, AgentId, Change, Measurement, Member, Outcome, RecordedDecision, RecordedFact, Seat


@dataclass(eq=False)
class Played:
    """A record in memory, of one table or of several joined."""

    params: Mapping[str, Any]
    seats: list[Seat]
    played: list[RecordedFact] = field(default_factory=list)
    decided: list[RecordedDecision] = field(default_factory=list)
    won: dict[AgentId, float] = field(default_factory=dict)
    ended: dict[AgentId, str] = field(default_factory=dict)
    tables: int = 1

    def cast(self, table: int = 0) -> Sequence[Member]:
        return [Member(seat=seat) for seat in self.seats]

    def facts(self, kind: str | None = None, table: int | None = None) -> Iterator[RecordedFact]:
        for item in self.played:
            if kind in (None, item.fact.kind) and table in (None, item.table):
                yield item

    def decisions(self, table: int | None = None) -> Iterator[RecordedDecision]:
        return iter(self.decided)

    def rewards(self, table: int = 0) -> Mapping[AgentId, float]:
        return self.won

    def data(self, kind: str) -> list[Mapping[str, Any]]:
        return [item.fact.data for item in self.facts(kind)]

    def measured(self, metrics: Sequence[Any]) -> dict[str, Measurement]:
        """By metric and what it is of: "matrix.mean_payoff agent=a"."""
        found = [one for metric in metrics for one in metric(self)]
        named = {" ".join([one.metric, *(f"{k}={v}" for k, v in one.of.items())]): one for one in found}
        assert len(named) == len(found)
        return named


class Watched:
    """A world that tells the record what it answers; its state must not depend on anything but its calls."""

    def __init__(self, world: Any, record: Played) -> None:
        self.world = world
        self.record = record
        self.changeable = world.changeable

    def _keep(self, now: int, outcome: Outcome) -> Outcome:
        record = self.record
        for fact in outcome.facts:
            assert fact.id == len(record.played)
            record.played.append(RecordedFact(table=0, seq=len(record.played), tick=now, fact=fact))
        for agent, reward in outcome.rewards.items():
            record.won[agent] = record.won.get(agent, 0.0) + reward
        record.ended.update(outcome.ended)
        return outcome

    def reset(self, seats: Sequence[Seat], streams: Any) -> Outcome:
        return self._keep(0, self.world.reset(seats, streams))

    def observe(self, now: int, agent: AgentId) -> Any:
        if len(self.record.seats) > 8:
            return self.world.observe(now, agent)  # comparing whole states would take most of the time
        before = self.world.state()
        turn = self.world.observe(now, agent)
        assert self.world.state() == before
        return turn

    def step(self, now: int, actions: Sequence[Action]) -> Outcome:
        outcome = self._keep(now, self.world.step(now, actions))
        for action, result in zip(actions, outcome.results, strict=True):
            n = len(self.record.decided)
            self.record.decided.append(
                RecordedDecision(table=0, seq=n, tick=now, nth=0, action=action, result=result, calls=0)
            )
        return outcome

    def change(self, now: int, change: Change) -> Outcome:
        return self._keep(now, self.world.change(now, change))

    def state(self) -> Any:
        return self.world.state()


def play(
    kind: Any,
    cast: Sequence[tuple[Seat, Any]],
    params: Mapping[str, Any] | None = None,
    think: Mapping[AgentId, Any] | None = None,
    interventions: Sequence[tuple[int, Change, Player | None]] = (),
    seed: int = 0,
    until: int | None = None,
) -> Played:
    """Run `kind` with its `params`; each agent is built from its seat by `make(member)`."""
    settings: BaseModel = kind.Params.model_validate(params or {})
    record = Played(settings.model_dump(mode="json"), [seat for seat, _ in cast])
    players = [player(make(Member(seat=seat)), seat, (think or {}).get(seat.agent, 0)) for seat, make in cast]
    world = Watched(kind(settings), record)
    simulate(world, players, seed=seed, until=until, interventions=interventions, record=False)
    return record
