"""Who listens to whom."""

from __future__ import annotations

from collections.abc import Container, Sequence

import networkx as nx

from sim.streams import Streams
from sim.types import AgentId, Seat
from worlds.opinions.settings import OpinionsParams


def listening(params: OpinionsParams, seats: Sequence[Seat], streams: Streams) -> dict[AgentId, tuple[AgentId, ...]]:
    """Whom each agent listens to, without itself, in cast order. Raises ValueError where the cast does not fit."""
    agents = [seat.agent for seat in seats]
    if params.weights:
        return _weighted(params, agents)
    if params.edges:
        _known(params, "edges", agents, {agent for edge in params.edges for agent in edge})
        linked = nx.Graph(params.edges)
        linked.add_nodes_from(agents)
        return {agent: _ordered(agents, linked[agent], agent) for agent in agents}
    if params.graph == "complete":
        return {agent: tuple(other for other in agents if other != agent) for agent in agents}
    order, graph = _drawn(params, seats, streams)
    place = {agent: node for node, agent in enumerate(order)}
    found = {agent: {order[node] for node in graph[place[agent]]} for agent in agents}
    return {agent: _ordered(agents, found[agent], agent) for agent in agents}


def _weighted(params: OpinionsParams, agents: Sequence[AgentId]) -> dict[AgentId, tuple[AgentId, ...]]:
    _known(params, "weights", agents, {*params.weights, *(each for row in params.weights.values() for each in row)})
    if missing := [agent for agent in agents if agent not in params.weights]:
        raise ValueError(f"weights: {', '.join(missing)} has none; an agent that listens to nobody gives itself 1")
    given = {agent: {other for other, weight in params.weights[agent].items() if weight} for agent in agents}
    return {agent: _ordered(agents, given[agent], agent) for agent in agents}


def _known(params: OpinionsParams, key: str, agents: Sequence[AgentId], named: set[AgentId]) -> None:
    if strangers := sorted(named.difference(agents)):
        raise ValueError(f"{key}: nobody here is called {', '.join(strangers)}")


def _ordered(agents: Sequence[AgentId], found: Container[AgentId], me: AgentId) -> tuple[AgentId, ...]:
    return tuple(agent for agent in agents if agent != me and agent in found)


def _drawn(params: OpinionsParams, seats: Sequence[Seat], streams: Streams) -> tuple[list[AgentId], nx.Graph]:
    """A random graph, and the agents in the order of its nodes."""
    agents, luck = [seat.agent for seat in seats], streams.generator("graph")
    n = len(agents)
    if params.graph == "erdos_renyi":
        return agents, nx.gnp_random_graph(n, params.density, seed=luck)
    if params.graph == "two_camps":
        first, second = camps(seats)
        chances = [[params.within, params.between], [params.between, params.within]]
        return [*first, *second], nx.stochastic_block_model([len(first), len(second)], chances, seed=luck)
    if n <= params.degree:
        raise ValueError(f"degree: {params.degree} neighbours of each need more than {params.degree} agents, not {n}")
    rewire = params.rewire if params.graph == "watts_strogatz" else 0.0
    return agents, nx.watts_strogatz_graph(n, params.degree, rewire, seed=luck)


def camps(seats: Sequence[Seat]) -> tuple[list[AgentId], list[AgentId]]:
    """Those of each role where the cast has two, else both halves in cast order."""
    roles = list(dict.fromkeys(seat.role for seat in seats))
    if len(roles) == 2:
        first, second = ([seat.agent for seat in seats if seat.role == role] for role in roles)
        return first, second
    agents = [seat.agent for seat in seats]
    half = (len(agents) + 1) // 2
    return agents[:half], agents[half:]
