"""Whose acts matter: Shapley values, leave-one-out, and causal influence of one agent's acts on another's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from itertools import combinations
from math import factorial, log
from random import Random
from statistics import fmean

from sim.metrics.statistics.clusters import Estimate, mean
from sim.metrics.statistics.distances import as_weights, kl
from sim.metrics.statistics.given import law, number, numbers, whole

MOST = 8
"""Agents up to which Shapley values are exact."""
ORDERS = 999
"""Orders of agents from which more have them."""
LAZY = 0.5
"""Part of an equal share below which an agent is lazy."""
NEAR = 0.01
"""Bits below which an influence is none."""
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


def sampled_shapley(
    agents: Collection[Hashable], value: Value, orders: int = ORDERS, seed: int = 0
) -> dict[Hashable, Estimate]:
    """Shapley values from random orders in which agents join, for more than `MOST` agents (Castro et al. 2009).

    Unbiased; the interval of each is by t over orders. `value` is asked once for each group that comes up.
    """
    _different(agents)
    luck, known = Random(seed), dict[frozenset[Hashable], float]()
    added: dict[Hashable, list[float]] = {agent: [] for agent in agents}

    def worth(group: frozenset[Hashable]) -> float:
        if group not in known:
            known[group] = number("value", value(group))
        return known[group]

    for _ in range(whole("orders", orders, 1)):
        there: frozenset[Hashable] = frozenset()
        for agent in luck.sample(list(agents), len(agents)):
            with_ = there | {agent}
            added[agent].append(worth(with_) - worth(there))
            there = with_
    return {agent: mean(own) for agent, own in added.items()}


def lazy(
    agents: int, share: float | None = None, influence: float | None = None, tokens: float | None = None
) -> tuple[str, ...]:
    """Why an agent of so many is lazy, if it is, by what is known of it.

    `share`: its part of the Shapley values; `influence`: bits; `tokens`: its part of all that was sampled. An influence
    below `NEAR` is none.
    """
    equal, found = 1 / whole("agents", agents, 1), []
    if share is not None and number("share", share) < LAZY * equal:
        found.append("Shapley share below half of an equal one")
    if influence is not None and tokens is not None and number("influence", influence) < NEAR:
        if number("tokens", tokens, 0, 1) > equal:
            found.append("no influence, yet more than an equal share of tokens")
        elif tokens < 0.1 * equal:
            found.append("no influence, and hardly a token")
    return tuple(found)


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


def sampled_influence(
    states: Sequence[tuple[Mapping[Hashable, float], Mapping[Hashable, Mapping[Hashable, int]]]],
) -> float | None:
    """`causal_influence` from samples, less what chance adds: a state has counts of j's answers after each act.

    Entropies of shares q of M samples are too small by ½Σ(1 − q)/M nats, that of the mixture m by ½Σ v/m, v the
    variance Σ p²q(1 − q)/M of its share (to first order; with one act, Miller 1955). No influence can come out below 0.
    """
    if not states:
        return None
    found = []
    for own, counts in states:
        kept = {act: numbers("counts", each.values(), 0) for act, each in counts.items()}
        if missing := [act for act, p in law("policy", own).items() if p and not sum(kept.get(act, ()))]:
            raise ValueError(f"no answer after {missing[0]!r}")
        after = {act: _shares(each) for act, each in counts.items() if sum(kept[act])}
        found.append(_influence(own, after) - _by_chance(own, after, {act: sum(each) for act, each in kept.items()}))
    return fmean(found)


def _shares(counts: Mapping[Hashable, int]) -> dict[Hashable, float]:
    return {answer: count / sum(counts.values()) for answer, count in counts.items()}


def _by_chance(
    own: Mapping[Hashable, float], after: Mapping[Hashable, Mapping[Hashable, float]], sizes: Mapping[Hashable, float]
) -> float:
    """Bits that samples add to the influence, to first order."""
    mixture: dict[Hashable, float] = defaultdict(float)
    spread: dict[Hashable, float] = defaultdict(float)
    within = 0.0
    for act, p in own.items():
        for answer, q in after.get(act, {}).items():
            mixture[answer] += p * q
            spread[answer] += p * p * q * (1 - q) / sizes[act]
            within += p * (1 - q) / sizes[act] * (q > 0)
    return (within - sum(spread[answer] / m for answer, m in mixture.items() if m)) / (2 * log(2))


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
