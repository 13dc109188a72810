"""What came of a matrix game: metrics over the facts `round`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from sim.intervals import by_cluster, clustered, clustered_mean
from sim.types import JSON, AgentId, Measurement, Metric, Record, RecordedFact
from worlds.games.payoffs import COOPERATIVE, build

Valued: TypeAlias = tuple[int, float]
"""A table, and one value that came up at it."""


def _mean(metric: str, found: Sequence[Valued], excluded: int = 0, unit: str = "share", **of: JSON) -> Measurement:
    """Mean of values; the tables are the clusters, as matches of one have players in common."""
    sums, sizes = by_cluster(found)
    bounds = clustered(sums, sizes) if unit == "share" else clustered_mean(sums, sizes)
    return Measurement(
        metric=f"matrix.{metric}",
        value=sum(value for _, value in found) / len(found) if found else None,
        unit=unit,
        n=len(found),
        n_clusters=len(sizes),
        ci=bounds.ci,
        ci_method=bounds.method,
        excluded={"not chosen": excluded} if excluded else {},
        flags=bounds.flags,
        of=of,
    )


def _own_moves(item: RecordedFact) -> dict[AgentId, str]:
    """The moves that players chose themselves, not those taken for them."""
    missed = item.fact.data["missed"]
    return {agent: move for agent, move in item.fact.data["moves"].items() if agent not in missed}


def mean_payoff(record: Record) -> Iterable[Measurement]:
    """Mean payoff per player and round, over all and by agent."""
    by_agent: dict[AgentId, list[Valued]] = {}
    for item in record.facts("round"):
        for agent, payoff in item.fact.data["payoffs"].items():
            by_agent.setdefault(agent, []).append((item.table, payoff))
    yield _mean("mean_payoff", [one for own in by_agent.values() for one in own], unit="points")
    for agent, own in by_agent.items():
        yield _mean("mean_payoff", own, unit="points", agent=agent)


def action_frequency(record: Record) -> Iterable[Measurement]:
    """Share of each action among the moves that were chosen; defaults are left out and counted."""
    rounds = list(record.facts("round"))
    moves = [(item.table, move) for item in rounds for move in _own_moves(item).values()]
    missing = sum(len(item.fact.data["missed"]) for item in rounds)
    for label in _labels(record):
        yield _mean("action_frequency", [(table, float(move == label)) for table, move in moves], missing, action=label)


def cooperation(record: Record) -> Iterable[Measurement]:
    """Share of the first action, over all and by agent, in games where that is the cooperative one."""
    if record.params.get("game") not in COOPERATIVE and not record.params.get("by_count"):
        return
    first = _labels(record)[0]
    rounds = list(record.facts("round"))
    by_agent: dict[AgentId, list[Valued]] = {}
    for item in rounds:
        for agent, move in _own_moves(item).items():
            by_agent.setdefault(agent, []).append((item.table, float(move == first)))
    missing = sum(len(item.fact.data["missed"]) for item in rounds)
    yield _mean("cooperation_rate", [one for own in by_agent.values() for one in own], missing)
    for agent, own in by_agent.items():
        yield _mean("cooperation_rate", own, agent=agent)


def mutual_action(record: Record) -> Iterable[Measurement]:
    """Share of rounds in which all chose one action, by action; rounds with a default are left out and counted."""
    rounds = list(record.facts("round"))
    whole = [(item.table, set(item.fact.data["moves"].values())) for item in rounds if not item.fact.data["missed"]]
    for label in _labels(record):
        values = [(table, float(moves == {label})) for table, moves in whole]
        yield _mean("mutual_action", values, len(rounds) - len(whole), action=label)


def _labels(record: Record) -> list[str]:
    params = record.params
    game = build(params["game"], params["actions"], params["payoffs"], params["by_count"])
    return list(dict.fromkeys(label for mine in game.actions for label in mine))


METRICS: tuple[Metric, ...] = (mean_payoff, action_frequency, cooperation, mutual_action)
"""All of them."""
