"""What came of a matrix game: metrics over the facts `round`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sim.types import JSON, AgentId, Measurement, Metric, Record, RecordedFact
from worlds.games.payoffs import COOPERATIVE, build


def _share(
    metric: str,
    values: Sequence[float],
    rounds: Sequence[RecordedFact],
    excluded: int = 0,
    unit: str = "share",
    **of: JSON,
) -> Measurement:
    return Measurement(
        metric=f"matrix.{metric}",
        value=sum(values) / len(values) if values else None,
        unit=unit,
        n=len(values),
        n_clusters=len({item.table for item in rounds}),
        excluded={"not chosen": excluded} if excluded else {},
        of=of,
    )


def _own_moves(item: RecordedFact) -> dict[AgentId, str]:
    """The moves that players chose themselves, not those taken for them."""
    missed = item.fact.data["missed"]
    return {agent: move for agent, move in item.fact.data["moves"].items() if agent not in missed}


def mean_payoff(record: Record) -> Iterable[Measurement]:
    """Mean payoff per player and round, over all and by agent."""
    rounds = list(record.facts("round"))
    by_agent: dict[AgentId, list[float]] = {}
    for item in rounds:
        for agent, payoff in item.fact.data["payoffs"].items():
            by_agent.setdefault(agent, []).append(payoff)
    yield _share("mean_payoff", [x for own in by_agent.values() for x in own], rounds, unit="points")
    for agent, own in by_agent.items():
        yield _share("mean_payoff", own, rounds, unit="points", agent=agent)


def action_frequency(record: Record) -> Iterable[Measurement]:
    """Share of each action among the moves that were chosen; defaults are left out and counted."""
    rounds = list(record.facts("round"))
    moves = [move for item in rounds for move in _own_moves(item).values()]
    missing = sum(len(item.fact.data["missed"]) for item in rounds)
    for label in _labels(record):
        yield _share("action_frequency", [float(move == label) for move in moves], rounds, missing, action=label)


def cooperation(record: Record) -> Iterable[Measurement]:
    """Share of the first action, over all and by agent, in games where that is the cooperative one."""
    if record.params.get("game") not in COOPERATIVE and not record.params.get("by_count"):
        return
    first = _labels(record)[0]
    rounds = list(record.facts("round"))
    by_agent: dict[AgentId, list[float]] = {}
    for item in rounds:
        for agent, move in _own_moves(item).items():
            by_agent.setdefault(agent, []).append(float(move == first))
    missing = sum(len(item.fact.data["missed"]) for item in rounds)
    yield _share("cooperation_rate", [x for own in by_agent.values() for x in own], rounds, missing)
    for agent, own in by_agent.items():
        yield _share("cooperation_rate", own, rounds, agent=agent)


def mutual_action(record: Record) -> Iterable[Measurement]:
    """Share of rounds in which all chose one action, by action; rounds with a default are left out and counted."""
    rounds = list(record.facts("round"))
    whole = [set(item.fact.data["moves"].values()) for item in rounds if not item.fact.data["missed"]]
    for label in _labels(record):
        values = [float(moves == {label}) for moves in whole]
        yield _share("mutual_action", values, rounds, len(rounds) - len(whole), action=label)


def _labels(record: Record) -> list[str]:
    params = record.params
    game = build(params["game"], params["actions"], params["payoffs"], params["by_count"])
    return list(dict.fromkeys(label for mine in game.actions for label in mine))


METRICS: tuple[Metric, ...] = (mean_payoff, action_frequency, cooperation, mutual_action)
"""All of them."""
