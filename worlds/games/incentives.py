"""What players of matrix games could have earned more: regret, and how far their play is from an equilibrium.

Moves that were taken for a player are left out. Others are held as they moved: regret against some who would have
reacted is not that of a policy.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from sim.metrics.society.games import Mixture, Payoffs, external_regret, nash_conv, swap_regret
from sim.metrics.statistics.clusters import mean
from sim.metrics.statistics.shares import estimated
from sim.types import AgentId, Measurement, Record
from worlds.games.payoffs import Game
from worlds.games.rounds import Round, game_of, matches


def all(record: Record) -> Iterator[Measurement]:
    """Regret of everybody and of each, and NashConv."""
    yield from regret(record)
    yield from equilibrium(record)


def regret(record: Record) -> Iterator[Measurement]:
    """External and swap regret per round, against moves as they were: over all agents, and of each."""
    game = game_of(record)
    by_agent: dict[AgentId, dict[int, list[tuple[float, float, int]]]] = defaultdict(lambda: defaultdict(list))
    for (table, _), own in matches(record).items():
        for me, agent in enumerate(own[0].moves):
            lost = _regrets(game, me, own, agent)
            if lost:
                by_agent[agent][table].append(lost)
    everybody: dict[int, list[tuple[float, float, int]]] = defaultdict(list)
    for tables in by_agent.values():
        for table, lost_here in tables.items():
            everybody[table] += lost_here
    for of, tables in ({}, everybody), *(({"agent": agent}, own) for agent, own in sorted(by_agent.items())):
        for place, name in enumerate(("external", "swap")):
            values = [sum(one[place] for one in own) / sum(one[2] for one in own) for _, own in sorted(tables.items())]
            n = sum(one[2] for own in tables.values() for one in own)
            found, told = mean(values)._replace(n=n), "rounds with a move of one's own"
            yield estimated(f"matrix.{name}_regret", found, "points a round", denominator=told, of=of)


def _regrets(game: Game, me: int, own: Sequence[Round], agent: AgentId) -> tuple[float, float, int] | None:
    """External and swap regret of one player of a match, and its rounds; None where it never moved itself."""
    kept = [tuple(one.moves.values()) for one in own if agent not in one.missed]
    if not kept:
        return None
    acts, others = [joint[me] for joint in kept], [(*joint[:me], *joint[me + 1 :]) for joint in kept]
    payoff, actions = _payoff(game, me), game.actions[me]
    return external_regret(acts, others, payoff, actions), swap_regret(acts, others, payoff, actions), len(kept)


def _payoff(game: Game, me: int) -> Callable[[str, Sequence[str]], float]:
    """What a player earns of its own label and the others'."""

    def earned(act: str, others: Sequence[str]) -> float:
        labels = (*others[:me], act, *others[me:])
        return game.table[tuple(mine.index(label) for mine, label in zip(game.actions, labels, strict=True))][me]

    return earned


def equilibrium(record: Record) -> Iterator[Measurement]:
    """NashConv of what each seat of the game played, all rounds of a table together: 0 at an equilibrium.

    The shares of few rounds lie off an equilibrium by chance, so the number is too large rather than too small.
    """
    game = game_of(record)
    payoffs = [_payoffs(game, me) for me in range(game.players)]
    tables: dict[int, list[Round]] = defaultdict(list)
    for (table, _), own in matches(record).items():
        tables[table] += [one for one in own if not one.missed]
    kept = [rounds for _, rounds in sorted(tables.items()) if rounds]
    found = mean([nash_conv(payoffs, _mixtures(game, rounds)) for rounds in kept])._replace(n=sum(map(len, kept)))
    yield estimated("matrix.nash_conv", found, "points", denominator="rounds in which all moved themselves")


def _payoffs(game: Game, me: int) -> Payoffs:
    """A player's, by labels."""
    labels = {joint: tuple(mine[a] for mine, a in zip(game.actions, joint, strict=True)) for joint in game.table}
    return {labels[joint]: own[me] for joint, own in game.table.items()}


def _mixtures(game: Game, rounds: Sequence[Round]) -> list[Mixture]:
    """Shares of each seat's moves."""
    seats = zip(*(one.moves.values() for one in rounds), strict=True)
    return [{a: moves.count(a) / len(rounds) for a in own} for moves, own in zip(seats, game.actions, strict=True)]
