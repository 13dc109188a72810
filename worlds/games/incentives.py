"""What players of matrix games could have earned more: regret, and how far their play is from an equilibrium.

Moves that were taken for a player are left out. Others are held as they moved: regret against some who would have
reacted is not that of a policy.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from statistics import fmean

from sim.intervals import FEW
from sim.metrics.society.games import (
    Mixture,
    Payoffs,
    cumulative_regret,
    external_regret,
    nash_conv,
    regret_growth,
    sampled_exploitability,
    swap_regret,
)
from sim.metrics.statistics.clusters import Estimate, mean
from sim.metrics.statistics.shares import estimated
from sim.types import AgentId, Measurement, Record
from worlds.games.payoffs import Game
from worlds.games.rounds import Round, game_of, matches

HELD = "others held as they moved"
"""Flag of a regret that is not a policy's, against some who would have reacted."""


def all(record: Record) -> Iterator[Measurement]:
    """Regret of everybody and of each, and NashConv."""
    yield from regret(record)
    yield from equilibrium(record)


def regret(record: Record) -> Iterator[Measurement]:
    """External and swap regret per round, against moves as they were: over all agents, and of each; how regret grows.

    A growth below 1 says that regret per round vanishes: the slope of log regret on log rounds, mean over players.
    """
    game = game_of(record)
    growth: dict[int, list[float]] = defaultdict(list)
    by_agent: dict[AgentId, dict[int, list[tuple[float, float, int]]]] = defaultdict(lambda: defaultdict(list))
    for (table, _), own in matches(record).items():
        for me, agent in enumerate(own[0].moves):
            lost = _regrets(game, me, own, agent)
            if lost:
                by_agent[agent][table].append(lost)
            slope = _growth(game, me, own, agent)
            if slope is not None:
                growth[table].append(slope)
    everybody: dict[int, list[tuple[float, float, int]]] = defaultdict(list)
    for tables in by_agent.values():
        for table, lost_here in tables.items():
            everybody[table] += lost_here
    for of, tables in ({}, everybody), *(({"agent": agent}, own) for agent, own in sorted(by_agent.items())):
        for place, name in enumerate(("external", "swap")):
            values = [sum(one[place] for one in own) / sum(one[2] for one in own) for _, own in sorted(tables.items())]
            n = sum(one[2] for own in tables.values() for one in own)
            found, told = mean(values)._replace(n=n), "rounds with a move of one's own"
            yield estimated(f"matrix.{name}_regret", found, "points a round", denominator=told, of=of, flags=(HELD,))
    slopes = [fmean(own) for _, own in sorted(growth.items())]
    n = sum(map(len, growth.values()))
    told = "players of a match with regret in two rounds"
    yield estimated("matrix.regret_growth", mean(slopes)._replace(n=n), "slope", denominator=told, flags=(HELD,))


def _regrets(game: Game, me: int, own: Sequence[Round], agent: AgentId) -> tuple[float, float, int] | None:
    """External and swap regret of one player of a match, and its rounds; None where it never moved itself."""
    acts, others = _moved(me, own, agent)
    if not acts:
        return None
    payoff, actions = _payoff(game, me), game.actions[me]
    return external_regret(acts, others, payoff, actions), swap_regret(acts, others, payoff, actions), len(acts)


def _growth(game: Game, me: int, own: Sequence[Round], agent: AgentId) -> float | None:
    acts, others = _moved(me, own, agent)
    return regret_growth(cumulative_regret(acts, others, _payoff(game, me), game.actions[me])) if acts else None


def _moved(me: int, own: Sequence[Round], agent: AgentId) -> tuple[list[str], list[tuple[str, ...]]]:
    """A player's own moves, and those of the others."""
    kept = [tuple(one.moves.values()) for one in own if agent not in one.missed]
    return [joint[me] for joint in kept], [(*joint[:me], *joint[me + 1 :]) for joint in kept]


def _payoff(game: Game, me: int) -> Callable[[str, Sequence[str]], float]:
    """What a player earns of its own label and the others'."""

    def earned(act: str, others: Sequence[str]) -> float:
        labels = (*others[:me], act, *others[me:])
        return game.table[tuple(mine.index(label) for mine, label in zip(game.actions, labels, strict=True))][me]

    return earned


def equilibrium(record: Record) -> Iterator[Measurement]:
    """NashConv of what each seat of the game played, all rounds of a table together: 0 at an equilibrium.

    Exploitability is a player's part of it; of a single table it has a credible interval, by the policies that rounds
    leave possible. The shares of few rounds lie off an equilibrium by chance, so numbers are too large rather than too
    small.
    """
    game = game_of(record)
    payoffs = [_payoffs(game, me) for me in range(game.players)]
    tables: dict[int, list[Round]] = defaultdict(list)
    for (table, _), own in matches(record).items():
        tables[table] += [one for one in own if not one.missed]
    kept = [rounds for _, rounds in sorted(tables.items()) if rounds]
    found = mean([nash_conv(payoffs, _mixtures(game, rounds)) for rounds in kept])._replace(n=sum(map(len, kept)))
    told = "rounds in which all moved themselves"
    yield estimated("matrix.nash_conv", found, "points", denominator=told)
    each = found if len(kept) > 1 else _of_one(game, payoffs, kept)
    if len(kept) > 1 and found.value is not None and found.ci:
        ci = found.ci[0] / game.players, found.ci[1] / game.players
        each = found._replace(value=found.value / game.players, ci=ci)
    yield estimated("matrix.exploitability", each, "points a player", denominator=told)


def _of_one(game: Game, payoffs: Sequence[Payoffs], kept: Sequence[Sequence[Round]]) -> Estimate:
    """Exploitability at a single table, or at none."""
    if not kept:
        return Estimate(None)
    counts = [Counter(moves) for moves in zip(*(one.moves.values() for one in kept[0]), strict=True)]
    return sampled_exploitability(payoffs, counts)._replace(n=len(kept[0]), clusters=1, flags=(FEW,))


def _payoffs(game: Game, me: int) -> Payoffs:
    """A player's, by labels."""
    labels = {joint: tuple(mine[a] for mine, a in zip(game.actions, joint, strict=True)) for joint in game.table}
    return {labels[joint]: own[me] for joint, own in game.table.items()}


def _mixtures(game: Game, rounds: Sequence[Round]) -> list[Mixture]:
    """Shares of each seat's moves."""
    seats = zip(*(one.moves.values() for one in rounds), strict=True)
    return [{a: moves.count(a) / len(rounds) for a in own} for moves, own in zip(seats, game.actions, strict=True)]
