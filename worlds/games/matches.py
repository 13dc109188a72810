"""One match of a matrix game, and who meets whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from msgspec import to_builtins

from sim.types import JSON, AgentId, FactId
from worlds.games.payoffs import Joint, text

RECENT = 3
"""Rounds of a match that a view shows one by one."""


@dataclass(slots=True)
class Match:
    """The state of one match."""

    number: int
    """Its id in this world."""
    players: tuple[AgentId, ...]
    """In the order of the game's players."""
    phase: Literal["waiting", "talk", "move", "over"] = "waiting"
    """What is asked now."""
    round: int = 0
    """Counted from 1."""
    opens: int = 0
    """Tick from which this phase is asked; answers to turns seen before it come too late."""
    closes: int | None = None
    """Tick at which it ends without those who have not answered."""
    given: dict[str, JSON] = field(default_factory=dict)
    """Answers of this phase by agent, hidden until it ends."""
    missed: list[AgentId] = field(default_factory=list)
    """Whose moves of this round were not their own."""
    heard: list[tuple[FactId, int, str]] = field(default_factory=list)
    """What was said in this round: fact, seat, words."""
    recent: list[Joint] = field(default_factory=list)
    """The last joint moves."""
    result: FactId | None = None
    """The fact of the last round."""
    got: list[float] = field(default_factory=list)
    """Payoffs of the last round by seat."""
    totals: list[float] = field(default_factory=list)
    """Payoffs so far by seat."""
    tally: dict[str, int] = field(default_factory=dict)
    """How often each joint move came, by "0,1"."""
    gone: list[AgentId] = field(default_factory=list)
    """Who left; in a game of three or more their seats play the default."""

    @property
    def asks(self) -> bool:
        """Whether it is open for answers."""
        return self.phase in ("talk", "move")

    @property
    def played(self) -> int:
        """Rounds that were played to their end."""
        return sum(self.tally.values())

    @property
    def present(self) -> list[AgentId]:
        """Players who have not left."""
        return [agent for agent in self.players if agent not in self.gone]

    @property
    def complete(self) -> bool:
        """Whether everybody asked has answered."""
        return all(agent in self.given for agent in self.present)

    def ask(self, phase: Literal["talk", "move"], opens: int, deadline: int | None) -> None:
        """Open a phase."""
        self.phase, self.opens, self.given = phase, opens, {}
        self.closes = None if deadline is None else opens + deadline

    def next_round(self) -> None:
        """Count on."""
        self.round += 1
        self.missed, self.heard = [], []

    def score(self, joint: Joint, payoffs: Sequence[float], result: FactId) -> None:
        """Keep what a round brought."""
        self.recent = [*self.recent, joint][-RECENT:]
        self.got, self.result = list(payoffs), result
        self.totals = [a + b for a, b in zip(self.totals or [0.0] * len(joint), payoffs, strict=True)]
        self.tally[text(joint)] = self.tally.get(text(joint), 0) + 1

    def json(self) -> JSON:
        """All of it as JSON."""
        fields = to_builtins(self)
        lists = {key: [list(item) for item in fields[key]] for key in ("heard", "recent")}
        return fields | lists | {"players": list(self.players)}


def groups(agents: Sequence[AgentId], size: int) -> list[tuple[AgentId, ...]]:
    """Consecutive agents in cast order. Raises ValueError where some are left over."""
    if not agents or len(agents) % size:
        raise ValueError(f"this game is for {size} players: {len(agents)} seats do not make whole groups")
    return [tuple(agents[start : start + size]) for start in range(0, len(agents), size)]


def across(agents: Sequence[AgentId], size: int) -> list[tuple[AgentId, ...]]:
    """The first half of the cast with the second half. Raises ValueError unless that makes pairs."""
    if size != 2 or not agents or len(agents) % 2:
        raise ValueError(f"across makes pairs: not of {len(agents)} seats for a game of {size}")
    half = len(agents) // 2
    return list(zip(agents[:half], agents[half:], strict=True))


def round_robin(agents: Sequence[AgentId], size: int) -> list[tuple[AgentId, ...]]:
    """Every pair once, in the order of the circle method: at each turn of the circle all play at the same time."""
    if size != 2 or len(agents) < 2:
        raise ValueError(f"a round robin is played in pairs: not by {len(agents)} seats in a game of {size}")
    circle = list(range(len(agents) + len(agents) % 2))
    pairs: list[tuple[AgentId, ...]] = []
    for _ in circle[1:]:
        for one, other in zip(circle[: len(circle) // 2], reversed(circle), strict=False):
            low, high = sorted((one, other))
            if high < len(agents):
                pairs.append((agents[low], agents[high]))
        circle = [circle[0], circle[-1], *circle[1:-1]]
    return pairs


PAIRINGS = {"all_in_one": groups, "fixed": groups, "across": across, "round_robin": round_robin}
"""Who meets whom, by the setting `pairing`."""
