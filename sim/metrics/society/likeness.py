"""How like people agents behave, step by step. Distances of whole distributions are in `distances`."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import log

from sim.metrics.statistics.given import alike, shares, truths


def step_accuracy(human: Sequence[Hashable], agent: Sequence[Hashable]) -> float | None:
    """Share of steps at which the agent does what the person did, each step in the person's own history."""
    alike(human=human, agent=agent)
    same = [bool(a == b) for a, b in zip(human, agent, strict=True)]
    return sum(same) / len(same) if same else None


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
