"""Q-learning firms: tables that learn period by period, in a session of their own or in the world.

A state is what all firms chose in the period before. Exploration falls as exp(-beta t). A session ends when no firm's
best action has changed in any state for `patience` periods (Calvano et al. 2020); it takes 2 to 4 s a million periods.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import exp
from statistics import fmean

from sim.streams import Streams
from sim.types import Member, Mind, Turn
from worlds.pricing.demand import Demand
from worlds.pricing.strategies import choose, last, market

Levels = tuple[tuple[float, ...], ...]
"""What each firm can choose."""


@dataclass(frozen=True, slots=True)
class Learning:
    """Settings of a learner."""

    alpha: float = 0.15
    """Weight of the newest period."""
    beta: float = 4e-6
    """How fast exploration falls, per period."""
    delta: float = 0.95
    """Discount factor of a period."""
    patience: int = 100_000
    """Periods without a change after which a session has converged."""
    most: int = 20_000_000
    """Periods after which it ends without."""


@dataclass(frozen=True, slots=True)
class Session:
    """What firms that learnt together have come to."""

    greedy: tuple[tuple[int, ...], ...]
    """Best action by firm and state."""
    state: int
    """The last one."""
    periods: int
    """How many it took."""


def payoffs(demand: Demand, levels: Levels) -> tuple[tuple[float, ...], ...]:
    """Profit by firm and joint action, the last firm's action counting fastest."""
    joint = [demand.sell(_levels_of(state, levels)).profits for state in range(states(levels))]
    return tuple(zip(*joint, strict=True))


def states(levels: Levels) -> int:
    """How many joint actions there are."""
    count = 1
    for mine in levels:
        count *= len(mine)
    return count


def coded(actions: Sequence[int], levels: Levels) -> int:
    """A joint action as one number."""
    code = 0
    for action, mine in zip(actions, levels, strict=True):
        code = code * len(mine) + action
    return code


def _decoded(code: int, levels: Levels) -> list[int]:
    actions = []
    for mine in reversed(levels):
        code, action = divmod(code, len(mine))
        actions.append(action)
    return actions[::-1]


def _levels_of(code: int, levels: Levels) -> list[float]:
    return [mine[action] for mine, action in zip(levels, _decoded(code, levels), strict=True)]


def first_values(profits: Sequence[float], firm: int, levels: Levels, delta: float) -> tuple[float, ...]:
    """What each action is worth for ever against rivals who choose at random: where a table starts, in every state."""
    by_action: list[list[float]] = [[] for _ in levels[firm]]
    for code, profit in enumerate(profits):
        by_action[_decoded(code, levels)[firm]].append(profit)
    return tuple(fmean(each) / (1 - delta) for each in by_action)


def _blank_tables(
    demand: Demand, levels: Levels, delta: float
) -> list[tuple[list[list[float]], list[int], list[float], tuple[float, ...]]]:
    """By firm: its table, the best action and its value by state, its profits."""
    tables = []
    for firm, profits in enumerate(payoffs(demand, levels)):
        first = first_values(profits, firm, levels, delta)
        top, count = max(first), len(profits)
        tables.append(([list(first) for _ in profits], [first.index(top)] * count, [top] * count, profits))
    return tables


@lru_cache(maxsize=16)
def session(demand: Demand, levels: Levels, learning: Learning, seed: int) -> Session:
    """Learning from nothing until nothing changes any more; the same seed gives the same session."""
    luck = Streams(seed).generator("session")
    draw, sizes = luck.random, [len(mine) for mine in levels]
    alpha, delta, decay = learning.alpha, learning.delta, exp(-learning.beta)
    tables = _blank_tables(demand, levels, delta)
    state = int(draw() * states(levels))
    explore, calm, period = 1.0, 0, 0
    while calm < learning.patience and period < learning.most:
        explore *= decay
        joint, taken = 0, []
        for (_, greedy, _, _), size in zip(tables, sizes, strict=True):
            action = greedy[state] if draw() >= explore else int(draw() * size)
            taken.append(action)
            joint = joint * size + action
        calm += 1
        for (q, greedy, value, profits), action in zip(tables, taken, strict=True):
            row = q[state]
            old = row[action]
            row[action] = new = old + alpha * (profits[joint] + delta * value[joint] - old)
            if action != greedy[state]:
                if new > value[state]:
                    value[state], greedy[state], calm = new, action, 0
            else:
                value[state] = top = new if new >= old else max(row)
                if top != new:
                    greedy[state], calm = row.index(top), 0
        state, period = joint, period + 1
    return Session(tuple(tuple(greedy) for _, greedy, _, _ in tables), state, period)


def played(done: Session, levels: Levels, periods: int) -> list[list[float]]:
    """What the firms of a session go on to choose, exploring no more."""
    state, chosen = done.state, []
    for _ in range(periods):
        state = coded([greedy[state] for greedy in done.greedy], levels)
        chosen.append(_levels_of(state, levels))
    return chosen


# --- agents -------------------------------------------------------------------------------------


def _all_levels(turn: Turn) -> Levels:
    """Everybody's levels. Raises ValueError where choices are free."""
    if not turn.view["levels"]:
        raise ValueError("a Q-learner needs `levels` to choose from; give the world some")
    return tuple(tuple(turn.view["levels"][firm]) for firm in turn.view["firms"])


def _state(turn: Turn, levels: Levels) -> int:
    """What all chose in the last period."""
    return coded([mine.index(chosen) for mine, chosen in zip(levels, last(turn.view), strict=True)], levels)


class Converged:
    """Plays what a session of Q-learners converged to and learns no more; firms of one `seed` have learnt together."""

    state: object = None

    def __init__(
        self,
        member: Member,
        seed: int = 0,
        alpha: float = 0.15,
        beta: float = 4e-6,
        delta: float = 0.95,
        patience: int = 100_000,
    ) -> None:
        self._seed = seed
        self._learning = Learning(alpha, beta, delta, patience)

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """The best action after the last period; at first after the session's last."""
        yield from ()
        levels = _all_levels(turn)
        demand, me = market(turn.view)
        done = session(demand, levels, self._learning, self._seed)
        state = _state(turn, levels) if turn.view["history"] else done.state
        return choose(turn, levels[me][done.greedy[me][state]])


@dataclass(frozen=True, slots=True)
class Table:
    """What a learner in the world knows."""

    q: tuple[tuple[float, ...], ...]
    """Value by state and action."""
    state: int | None
    """That it last acted in; none before its second period."""
    periods: int
    """That it has learnt from."""

    def learnt(self, action: int, profit: float, following: int, learning: Learning) -> Table:
        """After one period: its action, what it earned, the state it led to."""
        if self.state is None:
            return Table(self.q, following, self.periods)
        row = list(self.q[self.state])
        row[action] += learning.alpha * (profit + learning.delta * max(self.q[following]) - row[action])
        q = (*self.q[: self.state], tuple(row), *self.q[self.state + 1 :])
        return Table(q, following, self.periods + 1)


class QLearner:
    """Learns while it plays, from period to period; its state is a `Table`."""

    def __init__(self, member: Member, alpha: float = 0.15, beta: float = 4e-6, delta: float = 0.95) -> None:
        self._learning = Learning(alpha, beta, delta)
        self.state: object = None

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Learn from the last period, then explore or take the best action."""
        yield from ()
        levels = _all_levels(turn)
        demand, me = market(turn.view)
        table = self.state if isinstance(self.state, Table) else self._blank(demand, me, levels)
        if turn.view["history"]:
            here, profit = _state(turn, levels), turn.view["history"][-1]["profit"]
            table = table.learnt(_decoded(here, levels)[me], profit, here, self._learning)
        if table.state is None or streams.draw("explore") < exp(-self._learning.beta * table.periods):
            action = streams.integer(0, len(levels[me]) - 1, "action")
        else:
            row = table.q[table.state]
            action = row.index(max(row))
        return choose(turn, levels[me][action], table)

    def _blank(self, demand: Demand, me: int, levels: Levels) -> Table:
        first = first_values(payoffs(demand, levels)[me], me, levels, self._learning.delta)
        return Table((first,) * states(levels), None, 0)
