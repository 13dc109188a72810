"""Standings: what players earned against each other and how strong each is, with the uncertainty of both.

A *player* is either a member of a league, a version that stands still, named by its label `name@v`; or one that still
changes, named by its policy's bare name (and so is whoever else a scenario names).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from math import fsum, inf, sqrt
from typing import Any, TypeAlias

from msgspec import Struct
from openskill.models import PlackettLuce

from sim.intervals import wilson

Player: TypeAlias = str
Role: TypeAlias = str
"""The entry of `models:` that a seat speaks with."""

_MODEL: Any = PlackettLuce()


class Rating(Struct, frozen=True, kw_only=True):
    """A normal belief about a strength (Plackett–Luce, Weng and Lin 2011)."""

    mu: float = _MODEL.mu
    sigma: float = _MODEL.sigma

    @property
    def ordinal(self) -> float:
        """μ − 3σ: what it is at least."""
        return self.mu - 3 * self.sigma


class Score(Struct, frozen=True, kw_only=True):
    """What a player earned against another; counts are fractions where games have faded."""

    wins: float = 0.0
    draws: float = 0.0
    losses: float = 0.0
    total: float = 0.0
    """Sum of returns."""
    squares: float = 0.0
    """Sum of squared returns."""

    @property
    def n(self) -> float:
        """Games."""
        return self.wins + self.draws + self.losses

    @property
    def win_rate(self) -> float:
        """Share of wins, a draw being half of one; 0.5 before any game."""
        return (self.wins + self.draws / 2) / self.n if self.n else 0.5

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95% interval of the win rate (Wilson 1927); (0, 1) before any game."""
        return wilson(self.wins + self.draws / 2, self.n) if self.n else (0.0, 1.0)

    @property
    def mean(self) -> float:
        """Mean return; 0 before any game."""
        return self.total / self.n if self.n else 0.0

    @property
    def error(self) -> float:
        """Standard error of the mean return; inf for one game or less."""
        if self.n <= 1:
            return inf
        return sqrt(max(0.0, self.squares - self.total**2 / self.n) / (self.n - 1) / self.n)

    def added(self, other: Score) -> Score:
        """Both together."""
        return Score(**{name: getattr(self, name) + getattr(other, name) for name in self.__struct_fields__})

    def faded(self, share: float) -> Score:
        """What is left of it."""
        return Score(**{name: getattr(self, name) * share for name in self.__struct_fields__})


class Seated(Struct, frozen=True, kw_only=True):
    """One seat of a finished game."""

    player: Player
    role: Role
    earned: float
    """Its return."""


class Game(Struct, frozen=True, kw_only=True):
    """A finished episode."""

    place: tuple[int, int]
    """Number of its matchup in the update, and its table: games count in this order, whenever they ended."""
    seats: tuple[Seated, ...]


Scores: TypeAlias = Mapping[Player, Mapping[Player, Mapping[Role, Score]]]
"""By player, opponent and the player's role."""

Earned: TypeAlias = Mapping[tuple[Player, Role], float]
"""Mean return of each player in each role of one game."""


def earned_in(seats: Iterable[Seated]) -> Earned:
    """Mean return of each player in each role."""
    found: defaultdict[tuple[Player, Role], list[float]] = defaultdict(list)
    for seat in seats:
        found[seat.player, seat.role].append(seat.earned)
    return {key: fsum(each) / len(each) for key, each in found.items()}


def count(payoffs: dict[Player, dict[Player, Any]], earned: Earned) -> None:
    """Add a game to the scores; who earned more has won."""
    for (player, role), mine in earned.items():
        for (other, _), its in earned.items():
            if other != player:
                one = Score(
                    wins=float(mine > its),
                    draws=float(mine == its),
                    losses=float(mine < its),
                    total=mine,
                    squares=mine**2,
                )
                roles = payoffs.setdefault(player, {}).get(other, {})
                payoffs[player][other] = {**roles, role: roles.get(role, Score()).added(one)}


def rate(ratings: dict[Player, Rating], earned: Earned) -> None:
    """Move the ratings after a game. Every player is a team of one; one in several roles earns their mean."""
    players = list(dict.fromkeys(player for player, _ in earned))
    if len(players) < 2:
        return
    means = [_earned_by(player, earned) for player in players]
    before = [ratings.get(player, Rating()) for player in players]
    after = _MODEL.rate([[_MODEL.rating(mu=one.mu, sigma=one.sigma)] for one in before], scores=means)
    for player, (one,) in zip(players, after, strict=True):
        ratings[player] = Rating(mu=one.mu, sigma=one.sigma)


def _earned_by(player: Player, earned: Earned) -> float:
    own = [each for (one, _), each in earned.items() if one == player]
    return fsum(own) / len(own)
