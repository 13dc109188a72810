"""A world may hold a Mesa model on a networkx graph: the kernel tells it the time, and luck stays keyed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import mesa
import networkx as nx
from mesa.discrete_space import CellAgent, Network
from pydantic import BaseModel

from sim.check import check_world
from sim.simulate import player, simulate
from sim.types import APPLIED, Action, Choice, Fact, Leave, Outcome, Seat, Turn, Wake


class Person(CellAgent):
    """Somebody at a node of the network, with coins."""

    def __init__(self, model: mesa.Model, name: str, cell: Any) -> None:
        super().__init__(model)
        self.name = name
        self.coins = 3
        self.cell = cell


class Gifts:
    """Everybody gives a coin to a neighbour of their choice, again and again."""

    class Params(BaseModel):
        """No parameters."""

    metrics: ClassVar[tuple[Any, ...]] = ()
    changeable: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, params: BaseModel | None = None) -> None:
        self.facts = 0

    def reset(self, seats: Sequence[Seat], streams: Any) -> Outcome:
        self.facts = 0
        self.away: set[str] = set()
        self.model = mesa.Model(rng=streams.seed("mesa"))
        graph = nx.cycle_graph(len(seats))
        space = Network(graph, random=self.model.random)
        self.people = {
            seat.agent: Person(self.model, seat.agent, space[node]) for node, seat in zip(graph, seats, strict=True)
        }
        return Outcome(wakes=[Wake(agent=seat.agent, tick=0) for seat in seats])

    def observe(self, now: int, agent: str) -> Turn | None:
        person = self.people[agent]
        if not person.coins:
            return None
        neighbours = tuple(sorted(other.name for other in person.cell.neighborhood.agents if other is not person))
        return Turn(
            agent=agent, now=now, view={"coins": person.coins}, format=Choice(options=neighbours), default=neighbours[0]
        )

    def step(self, now: int, actions: Sequence[Action]) -> Outcome:
        facts = []
        for action in actions:
            self.people[action.agent].coins -= 1
            self.people[action.answer].coins += 1
            facts.append(Fact(id=self.facts, kind="gift", actor=action.agent, data={"to": action.answer}))
            self.facts += 1
        wakes = [Wake(agent=name, tick=now + 1) for name in self.people if name not in self.away]
        return Outcome(facts=facts, results=[APPLIED] * len(actions), wakes=wakes)

    def change(self, now: int, change: Any) -> Outcome:
        if isinstance(change, Leave):
            self.away.add(change.agent)
        return Outcome()

    def state(self) -> Any:
        return {
            "coins": {name: person.coins for name, person in self.people.items()},
            "facts": self.facts,
            "away": sorted(self.away),
        }


class Generous:
    """Gives to a neighbour drawn by its own luck."""

    state: object = None

    def act(self, turn: Turn, streams: Any) -> Any:
        assert isinstance(turn.format, Choice)
        return Action(answer=streams.choice(turn.format.options, "whom"))
        yield


def played() -> tuple[str, Gifts]:
    world = Gifts()
    players = [player(Generous(), f"p{n}", "exponential(5s)") for n in range(6)]
    return simulate(world, players, seed=2, until=200).hash, world


def test_a_mesa_world_replays_and_conserves_coins() -> None:
    (first, world), (second, _) = played(), played()
    assert first == second
    assert sum(person.coins for person in world.people.values()) == 18
    assert world.facts > 50


def test_a_mesa_world_keeps_the_rules_of_the_seams() -> None:
    check_world(Gifts, [f"p{n}" for n in range(4)])
