"""Whose acts matter: Shapley values, leave-one-out, and causal influence of one agent's acts on another's."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from itertools import combinations
from math import factorial

from sim.metrics.statistics.distances import as_weights, kl
from sim.metrics.statistics.given import law, number

MOST = 8
"""Agents up to which Shapley values are exact."""
Value = Callable[[frozenset[Hashable]], float]
"""What a coalition achieves; nothing for an empty one."""


def shapley(agents: Collection[Hashable], value: Value) -> dict[Hashable, float]:
    """Each agent's mean marginal contribution over all orders (Shapley 1953), exact. Raises ValueError above `MOST`."""
    n = _different(agents)
    if n > MOST:
        raise ValueError(f"{n} agents are more than {MOST}")
    found = {}
    for agent in agents:
        others = [one for one in agents if one != agent]
        found[agent] = sum(
            factorial(size)
            * factorial(n - size - 1)
            / factorial(n)
            * (number("value", value(frozenset({*group, agent}))) - number("value", value(frozenset(group))))
            for size in range(n)
            for group in combinations(others, size)
        )
    return found


def shapley_share(agents: Collection[Hashable], value: Value, agent: Hashable) -> float | None:
    """An agent's part of what all achieve; below half of 1/n it is lazy. None where all achieve nothing."""
    _among(agent, agents)
    whole = value(frozenset(agents))
    return shapley(agents, value)[agent] / whole if whole else None


def leave_one_out(agents: Collection[Hashable], value: Value, agent: Hashable) -> float:
    """What is lost without an agent."""
    _among(agent, agents)
    return number("value", value(frozenset(agents))) - number("value", value(frozenset(agents) - {agent}))


def causal_influence(
    states: Sequence[tuple[Mapping[Hashable, float], Mapping[Hashable, Mapping[Hashable, float]]]],
) -> float | None:
    """Mean over states of KL(p(a_j | a_k) ‖ Σ p(a') p(a_j | a')), in bits, a_k by its own policy (Jaques et al. 2019).

    A state is k's policy, and j's policy after each act of k with all else the same.
    """
    if not states:
        return None
    return sum(_influence(own, after) for own, after in states) / len(states)


def _influence(own: Mapping[Hashable, float], after: Mapping[Hashable, Mapping[Hashable, float]]) -> float:
    acts = {act: p for act, p in law("policy", own).items() if p}
    if missing := acts.keys() - after.keys():
        raise ValueError(f"no policy after {min(map(repr, missing))}")
    support = list(dict.fromkeys(answer for each in after.values() for answer in each))
    laws = {act: as_weights(law("policy", after[act]), support) for act in acts}
    marginal = [sum(p * laws[act][place] for act, p in acts.items()) for place in range(len(support))]
    return sum(p * kl(laws[act], marginal) for act, p in acts.items())


def _different(agents: Collection[Hashable]) -> int:
    """How many agents there are. Raises ValueError where one is there twice."""
    if len(set(agents)) < len(agents):
        raise ValueError(f"agents: one of {list(agents)} is there twice")
    return len(agents)


def _among(agent: Hashable, agents: Collection[Hashable]) -> None:
    if agent not in agents:
        raise ValueError(f"{agent!r} is none of the agents {list(agents)}")
