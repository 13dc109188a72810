"""How like people agents behave: step by step, and by how far their numbers are from people's.

A distance is read on a scale: 0 is as near as two halves of the people are to each other, 1 as far as those who act by
chance. Distances themselves are in `distances`. Persons are the independent units, so intervals draw persons anew.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import chain
from math import log
from random import Random
from statistics import fmean
from typing import Any, TypeAlias

from sim.metrics.statistics.bootstrap import DRAWS, bootstrap
from sim.metrics.statistics.clusters import Estimate
from sim.metrics.statistics.distances import normalised, wasserstein
from sim.metrics.statistics.given import alike, shares, truths, whole

Session: TypeAlias = tuple[Sequence[Any], Sequence[Any]]
"""What a person did step by step, and what the agent does at each step of that person's own history."""
Values: TypeAlias = Sequence[Sequence[float]]
"""One statistic of each person, as often as it was taken."""
Distance: TypeAlias = Callable[[Sequence[float], Sequence[float]], float | None]
HALVINGS = 9
"""How often people are halved for the floor."""


def itself(act: Any) -> Any:
    """The whole act: steps are alike where acts are exactly."""
    return act


def step_accuracy(human: Sequence[Any], agent: Sequence[Any], kind: Callable[[Any], Hashable] = itself) -> float | None:
    """Share of steps at which the agent does what the person did, each step in the person's own history.

    `kind` says what of an act has to be the same, as its type only.
    """
    alike(human=human, agent=agent)
    same = [bool(kind(a) == kind(b)) for a, b in zip(human, agent, strict=True)]
    return sum(same) / len(same) if same else None


def accuracy(
    sessions: Sequence[Session], kind: Callable[[Any], Hashable] = itself, draws: int = DRAWS, seed: int = 0
) -> Estimate:
    """Step accuracy over all steps of all sessions, one a person; persons are drawn anew."""

    def pooled(drawn: Sequence[Session]) -> float | None:
        return step_accuracy([act for one, _ in drawn for act in one], [act for _, one in drawn for act in one], kind)

    for human, agent in sessions:
        alike(human=human, agent=agent)
    return bootstrap(sessions, pooled, "persons", draws, seed)


def final_f1(sessions: Sequence[Session], outcome: Hashable, draws: int = DRAWS, seed: int = 0) -> Estimate:
    """F1 of the last act being `outcome`, such as a purchase, over sessions, one a person; persons are drawn anew.

    Raises ValueError for a session without a step.
    """
    for human, agent in sessions:
        alike(human=human, agent=agent)
        if not len(human):
            raise ValueError("sessions: one has no step")
    ends = [(bool(human[-1] == outcome), bool(agent[-1] == outcome)) for human, agent in sessions]
    return bootstrap(ends, lambda drawn: f1([h for h, _ in drawn], [a for _, a in drawn]), "persons", draws, seed)


def floor(people: Values, distance: Distance = wasserstein, halvings: int = HALVINGS, seed: int = 0) -> float | None:
    """Mean distance between two halves of the people, halved at random; None for a single person."""
    return _floor(list(range(len(people))), people, distance, halvings, Random(seed))


def scaled(
    people: Values,
    agents: Values,
    chance: Values,
    distance: Distance = wasserstein,
    halvings: int = HALVINGS,
    draws: int = DRAWS,
    seed: int = 0,
) -> Estimate:
    """(d − floor)/(ceiling − floor): d from agents to people, ceiling from those who act by chance to people.

    Halves have fewer values than all have, which lifts the floor: an agent like people can come out below 0. Persons
    are drawn anew, one who is drawn twice stays in one half; agents and chance stay as they are. None where chance is
    no further off than halves are.
    """
    theirs, random, luck = list(chain(*agents)), list(chain(*chance)), Random(seed)

    def at(drawn: Sequence[int]) -> float | None:
        lowest = _floor(drawn, people, distance, halvings, luck)
        known = list(chain(*(people[place] for place in drawn)))
        found, most = distance(theirs, known), distance(random, known)
        return None if lowest is None or found is None or most is None else normalised(found, lowest, most)

    return bootstrap(range(len(people)), at, "persons", draws, seed)


def _floor(drawn: Sequence[int], people: Values, distance: Distance, halvings: int, luck: Random) -> float | None:
    """Of persons by their places, some of them several times."""
    different, found = sorted(set(drawn)), []
    for _ in range(whole("halvings", halvings, 1) if len(different) > 1 else 0):
        first = set(luck.sample(different, len(different) // 2))
        halves = ([x for place in drawn if (place in first) is side for x in people[place]] for side in (True, False))
        apart = distance(*halves)
        found += [] if apart is None else [apart]
    return fmean(found) if found else None


def log_score(given: Sequence[float]) -> float | None:
    """Mean log probability, in nats, that was given to what people did; None where that was ruled out."""
    given = shares("given", given)
    return sum(map(log, given)) / len(given) if given and min(given) > 0 else None


def f1(human: Sequence[bool], agent: Sequence[bool]) -> float | None:
    """2TP/(2TP + FP + FN) of an outcome such as a purchase; None where neither ever has it."""
    alike(human=human, agent=agent)
    human, agent = truths("human", human), truths("agent", agent)
    both = sum(h and a for h, a in zip(human, agent, strict=True))
    return 2 * both / (sum(human) + sum(agent)) if sum(human) + sum(agent) else None
