"""A genetic search over an agent's settings: prompts, emotion policies, anything that is JSON. No gradients.

A genome gives every gene of the recipe's space a value: settings of the scenario by their dotted keys. The caller plays
all members of a generation and says how fit each was; all luck is keyed by generation and place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import TypeAlias

import msgspec
from msgspec import Struct

from sim.streams import Streams
from sim.types import JSON
from training.genes import Chain, Distribution, Gene, Number, Options
from training.slots import Population

CONCENTRATION = 50.0
"""How near a mutated distribution stays to what it was: the sum of the Dirichlet's parameters, or nearly."""
WIDTH = 0.1
"""Standard deviation of a number's mutation, as a share of its range."""

Genome: TypeAlias = Mapping[str, JSON]
"""Values by the names of the genes."""


class Individual(Struct, frozen=True, kw_only=True):
    """A genome that was played."""

    genome: Genome
    fitness: float
    generation: int


class Search(Struct, frozen=True, kw_only=True):
    """A generation that waits for its fitness."""

    members: tuple[Genome, ...]
    generation: int = 0
    best: Individual | None = None
    """The fittest so far, as it was measured then."""

    def to_json(self) -> JSON:
        """As a JSON value."""
        return msgspec.to_builtins(self)

    @classmethod
    def from_json(cls, data: JSON) -> Search:
        """From what `to_json` gave. Raises msgspec.ValidationError."""
        return msgspec.convert(data, cls)

    def evolved(self, fitness: Sequence[float], actors: Population, streams: Streams) -> Search:
        """The next generation; `fitness` has one number a member, higher is better.

        The `elite` fittest pass on unchanged, of equals the first. Every other child has two parents, each the fitter
        of two members drawn at random; with probability `crossover` each row comes from either, else all from the
        first; each row then mutates with probability `mutation`. Raises ValueError where numbers are missing.
        """
        if len(fitness) != len(self.members):
            raise ValueError(f"{len(self.members)} members need as many numbers, not {len(fitness)}")
        ranked = sorted(range(len(fitness)), key=lambda i: (-fitness[i], i))
        children = [self.members[i] for i in ranked[: actors.elite]]
        for place in range(actors.size - len(children)):
            luck = streams.generator("child", self.generation, place)
            one, other = (self.members[min(luck.choice(ranked), luck.choice(ranked), key=ranked.index)] for _ in "ab")
            crossed = luck.random() < actors.crossover
            children.append(
                {
                    name: _child(gene, one[name], other[name] if crossed else one[name], actors.mutation, luck)
                    for name, gene in actors.space.items()
                }
            )
        found = Individual(genome=self.members[ranked[0]], fitness=fitness[ranked[0]], generation=self.generation)
        best = found if self.best is None or found.fitness > self.best.fitness else self.best
        return Search(members=tuple(children), generation=self.generation + 1, best=best)


def search(actors: Population, streams: Streams) -> Search:
    """A first generation, every gene drawn uniformly."""
    members = []
    for place in range(actors.size):
        luck = streams.generator("first", place)
        members.append({name: _random(gene, luck) for name, gene in actors.space.items()})
    return Search(members=tuple(members))


def _random(gene: Gene, luck: Random) -> JSON:
    match gene:
        case Chain():
            return {state: _dirichlet(dict.fromkeys(gene.states, 1.0), luck) for state in gene.states}
        case Distribution():
            return _dirichlet(dict.fromkeys(gene.over, 1.0), luck)
        case Number():
            return luck.uniform(gene.low, gene.high)
        case Options():
            return luck.choice(gene.values)


def _child(gene: Gene, one: JSON, other: JSON, mutation: float, luck: Random) -> JSON:
    if isinstance(gene, Chain):
        row = Distribution(over=gene.states)
        return {state: _child(row, one[state], other[state], mutation, luck) for state in gene.states}
    value = one if luck.random() < 0.5 else other
    return _mutated(gene, value, luck) if luck.random() < mutation else value


def _mutated(gene: Gene, value: JSON, luck: Random) -> JSON:
    match gene:
        case Distribution():
            # One more in all, evenly: what has died out may come back.
            return _dirichlet({name: CONCENTRATION * value[name] + 1 / len(gene.over) for name in gene.over}, luck)
        case Number():
            moved = value + luck.gauss(0, WIDTH * (gene.high - gene.low))
            return min(max(moved, gene.low), gene.high)
        case _:
            return _random(gene, luck)


def _dirichlet(parameters: Mapping[str, float], luck: Random) -> dict[str, float]:
    """A draw from a Dirichlet distribution, by independent gammas (Devroye 1986)."""
    draws = {name: luck.gammavariate(each, 1.0) for name, each in parameters.items()}
    total = sum(draws.values())
    return {name: each / total for name, each in draws.items()}
