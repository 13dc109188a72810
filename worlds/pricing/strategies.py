"""Baselines for an oligopoly: a fixed choice, best replies, undercutting, a grim trigger.

They read the market and everybody's levels in their view, and write nothing in their notebooks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from sim.streams import Streams
from sim.types import JSON, Action, Member, Mind, Turn
from worlds.pricing.answers import NOTES, answer
from worlds.pricing.demand import Demand, best_level, read
from worlds.pricing.settings import nearest

# --- rules: pure functions ----------------------------------------------------------------------


def market(view: Mapping[str, JSON]) -> tuple[Demand, int]:
    """The market of a view, and which of its firms the agent is."""
    return read(view["market"]), view["firms"].index(view["me"])


def last(view: Mapping[str, JSON]) -> list[float]:
    """What the firms that are here chose in the last period. Raises KeyError where that is hidden."""
    chosen = view["history"][-1]["chosen"]
    return [chosen[firm] for firm in view["firms"]]


def best(view: Mapping[str, JSON]) -> float:
    """The best reply to the last period, among the firm's levels where it has some."""
    demand, me = market(view)
    if levels := view["levels"].get(view["me"]):
        return best_level(demand, me, last(view), levels)
    return demand.best_reply(me, last(view))


def undercut(levels: Sequence[float], lowest: float, cost: float) -> float:
    """The highest level below the lowest price that is not below cost; the lowest level above cost without one.

    That is the price war of Edgeworth's cycles; at the bottom the price stays.
    """
    possible = [level for level in levels if level >= cost]
    below = [level for level in possible if level < lowest]
    return max(below) if below else min(possible, default=levels[-1])


def benchmark(view: Mapping[str, JSON], at: Literal["nash", "optimum"]) -> float:
    """The firm's part of a benchmark."""
    return float(view["benchmarks"][at][view["firms"].index(view["me"])])


# --- agents -------------------------------------------------------------------------------------


def choose(turn: Turn, wanted: float, state: object = None) -> Action:
    """The choice closest to what is wanted, in the form that the turn asks for."""
    view = turn.view
    levels = view["levels"].get(view["me"])
    chosen = view["labels"][nearest(levels, wanted)] if levels else min(max(wanted, 0.0), view["ceiling"])
    return Action(answer=answer(turn.format, chosen, view["chooses"], dict.fromkeys(NOTES, "")), state=state)


class Constant:
    """Always the same: `at` one of the benchmarks `nash` and `optimum`, or a number."""

    state: object = None

    def __init__(self, member: Member, at: Literal["nash", "optimum"] | float) -> None:
        self._at = at

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Choose it."""
        yield from ()
        at = self._at
        return choose(turn, benchmark(turn.view, at) if isinstance(at, str) else at)


class BestReply:
    """Best reply to what the others did last (myopic); at first `start`, a number, or a benchmark."""

    state: object = None

    def __init__(self, member: Member, start: Literal["nash", "optimum"] | float = "optimum") -> None:
        self._start = start

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Reply."""
        yield from ()
        if turn.view["history"]:
            return choose(turn, best(turn.view))
        start = self._start
        return choose(turn, benchmark(turn.view, start) if isinstance(start, str) else start)


class Undercutter:
    """One step below the lowest price of the others, never below cost; at first the monopoly price (Edgeworth)."""

    state: object = None

    def __init__(self, member: Member) -> None:
        pass

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Undercut."""
        yield from ()
        view = turn.view
        if not view["history"]:
            return choose(turn, benchmark(view, "optimum"))
        rivals = [price for firm, price in zip(view["firms"], last(view), strict=True) if firm != view["me"]]
        lowest = min(rivals, default=view["ceiling"])
        if levels := view["levels"].get(view["me"]):
            return choose(turn, undercut(levels, lowest, view["cost"]))
        return choose(turn, max(view["cost"], lowest - view["market"].get("tick", 0.01)))


class GrimTrigger:
    """The joint optimum until anybody competes harder than that, the Nash equilibrium for ever after.

    `slack`: how far from the optimum towards the Nash equilibrium nobody minds, as a share of the way.
    """

    def __init__(self, member: Member, slack: float = 0.1) -> None:
        self._slack = slack
        self.state: object = False

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Cooperate or punish; its state is whether it punishes."""
        yield from ()
        view = turn.view
        punishing = bool(self.state) or self._betrayed(view)
        return choose(turn, benchmark(view, "nash" if punishing else "optimum"), punishing)

    def _betrayed(self, view: Mapping[str, JSON]) -> bool:
        if not view["history"]:
            return False
        points = view["benchmarks"]
        ways = zip(view["firms"], last(view), points["nash"], points["optimum"], strict=True)
        return any(self._harder(view["levels"].get(firm), *way) for firm, *way in ways)

    def _harder(self, levels: Sequence[float] | None, chosen: float, nash: float, optimum: float) -> bool:
        """Whether a choice lies further than the slack on the way from the optimum to the equilibrium."""
        agreed = levels[nearest(levels, optimum)] if levels else optimum
        return (agreed - chosen) * (1 if optimum > nash else -1) > self._slack * abs(optimum - nash) + 1e-12
