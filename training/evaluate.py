"""How good policies are, exactly: where the game is a tree and the policy a table. Elsewhere: `training.measures`.

Tables are read with exploration off (`training.tabulate`). NashConv = Σ_i (value of i's best response − value of i), 0
at an equilibrium; exploitability is NashConv over the number of players (Lanctot et al. 2019), and with two players
and zero sum what a best response wins on average over the seats.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from math import fsum

from msgspec import Struct

from training.extensive import CHANCE, END, Tree
from training.tabulate import Tabular

# --- tables ---------------------------------------------------------------------------------------


def uniform(tree: Tree) -> dict[str, dict[str, float]]:
    """Every option with the same probability."""
    return {key: dict.fromkeys(options, 1 / len(options)) for key, options in tree.options.items()}


def joint(tree: Tree, tables: Sequence[Tabular]) -> dict[str, Mapping[str, float]]:
    """One table in which each seat plays its own, in cast order."""
    return {key: tables[seat][key] for key, seat in tree.owner.items() if key in tables[seat]}


def total_variation(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """½·Σ|p − q| of two distributions over options; an option that one of them lacks has probability 0 there."""
    return fsum(abs(one.get(option, 0.0) - other.get(option, 0.0)) for option in {**one, **other}) / 2


# --- values ---------------------------------------------------------------------------------------


def values(tree: Tree, table: Tabular) -> tuple[float, ...]:
    """What each seat earns in expectation, all playing by the table. Raises ValueError where a state is missing."""
    reach = _reach(tree, _rows(tree, table))
    return tuple(_worth(tree, reach, seat) for seat in range(len(tree.agents)))


def reach(tree: Tree, table: Tabular) -> dict[str, float]:
    """Probability that each information state is met, chance and all players counted."""
    found: defaultdict[str, float] = defaultdict(float)
    for node, probability in zip(tree.nodes, _reach(tree, _rows(tree, table)), strict=True):
        if node.key:
            found[node.key] += probability
    return dict(found)


def own_reach(tree: Tree, table: Tabular) -> dict[str, float]:
    """The owner's part of each information state's reach: the product of its own probabilities on the way there."""
    rows = _rows(tree, table)
    found: dict[str, float] = {}
    for key, before in tree.before.items():
        # States come in the order in which they were first met, so the one before is there.
        found[key] = 1.0 if before is None else found[before[0]] * rows[before[0]][before[1]]
    return found


def best_response(tree: Tree, table: Tabular, seat: int) -> tuple[float, dict[str, dict[str, float]]]:
    """What the seat's best response to the others' table earns, and the response: the first of the best options."""
    rows = _rows(tree, table)
    others = _reach(tree, rows, seat)
    histories: defaultdict[str, list[int]] = defaultdict(list)
    for at, node in enumerate(tree.nodes):
        if node.seat == seat:
            histories[node.key].append(at)

    @cache
    def value(at: int) -> float:
        """Of a node, weighted with the others' reach."""
        node = tree.nodes[at]
        if node.seat == END:
            return others[at] * node.payoffs[seat]
        if node.seat == seat:
            return value(node.children[best(node.key)])
        return sum(value(child) for child in node.children)

    @cache
    def best(key: str) -> int:
        worth = [
            fsum(value(tree.nodes[at].children[option]) for at in histories[key])
            for option in range(len(tree.options[key]))
        ]
        return worth.index(max(worth))

    response = {
        key: {option: float(place == best(key)) for place, option in enumerate(tree.options[key])} for key in histories
    }
    return value(0), response


def nash_conv(tree: Tree, table: Tabular) -> float:
    """Σ_i (value of i's best response − value of i)."""
    now = values(tree, table)
    return fsum(best_response(tree, table, seat)[0] - now[seat] for seat in range(len(now)))


def exploitability(tree: Tree, table: Tabular) -> float:
    """NashConv over the number of players."""
    return nash_conv(tree, table) / len(tree.agents)


def relative_nash_conv(tree: Tree, table: Tabular) -> float:
    """NashConv over that of the uniform policy. Raises ZeroDivisionError where uniform play is an equilibrium."""
    return nash_conv(tree, table) / nash_conv(tree, uniform(tree))


def cross_play(tree: Tree, tables: Sequence[Tabular]) -> list[list[tuple[float, float]]]:
    """What both seats earn, [first][second], for every pair of tables, each with itself too. Of two seats only."""
    if len(tree.agents) != 2:
        raise ValueError(f"cross-play is of two seats, not of {len(tree.agents)}")
    return [[_both(values(tree, joint(tree, (one, other)))) for other in tables] for one in tables]


def option_rate(tree: Tree, table: Tabular, option: str) -> list[float]:
    """Probability of an option at each owner's n-th decision, by n, seats that get that far alike; exact."""
    taken: defaultdict[int, float] = defaultdict(float)
    asked: defaultdict[int, float] = defaultdict(float)
    nth: dict[str, int] = {}
    for key, probability in reach(tree, table).items():
        before = tree.before[key]
        nth[key] = 0 if before is None else nth[before[0]] + 1
        asked[nth[key]] += probability
        taken[nth[key]] += probability * table[key].get(option, 0.0)
    return [taken[n] / asked[n] for n in sorted(asked)]


def _both(pair: tuple[float, ...]) -> tuple[float, float]:
    first, second = pair
    return first, second


def _rows(tree: Tree, table: Tabular) -> dict[str, list[float]]:
    """The table in the order of the options. Raises ValueError where it lacks a state or a row is no distribution."""
    rows = {}
    for key, options in tree.options.items():
        if key not in table:
            raise ValueError(f"the table has nothing for the information state {key!r}")
        row = table[key]
        rows[key] = [row.get(option, 0.0) for option in options]
        if min(rows[key]) < 0 or abs(fsum(row.values()) - 1) > 1e-6 or abs(fsum(rows[key]) - 1) > 1e-6:
            raise ValueError(f"{key!r} has no distribution over {', '.join(options)}: {dict(row)}")
    return rows


def _reach(tree: Tree, rows: Mapping[str, Sequence[float]], but: int = END) -> list[float]:
    """Probability of each node, with the seat `but` always on its way there."""
    reached = [1.0] * len(tree.nodes)
    for at, node in enumerate(tree.nodes):
        if node.seat == END:
            continue
        chances = node.chances if node.seat == CHANCE else rows[node.key] if node.seat != but else ()
        for child, chance in zip(node.children, chances or (1.0,) * len(node.children), strict=True):
            reached[child] = reached[at] * chance
    return reached


def _worth(tree: Tree, reached: Sequence[float], seat: int) -> float:
    return fsum(each * node.payoffs[seat] for node, each in zip(tree.nodes, reached, strict=True) if node.payoffs)


# --- the average of policies ------------------------------------------------------------------------


class AveragePolicy(Struct, frozen=True, kw_only=True):
    """The time average of policies in sequence form: at each state weighted with how often its owner gets there itself.

    Playing it is playing, in each game, one of the policies drawn by weight (Kuhn 1953). All of it is JSON.
    """

    sums: Mapping[str, Mapping[str, float]] = {}
    """By information state and option, Σ weight × own reach × probability."""
    weight: float = 0.0
    """Σ weight."""

    def add(self, tree: Tree, table: Tabular, weight: float = 1.0) -> AveragePolicy:
        """With one more policy. Weights that grow with the update are a linear average; 0 leaves an update out."""
        own = own_reach(tree, table)
        sums = {
            key: {
                option: self.sums.get(key, {}).get(option, 0.0) + weight * own[key] * table[key].get(option, 0.0)
                for option in options
            }
            for key, options in tree.options.items()
        }
        return AveragePolicy(sums=sums, weight=self.weight + weight)

    def table(self, tree: Tree) -> dict[str, dict[str, float]]:
        """The average; uniform in states that no policy reaches."""
        found = uniform(tree)
        for key, sums in self.sums.items():
            if total := fsum(sums.values()):
                found[key] = {option: each / total for option, each in sums.items()}
        return found
