"""Matchups: runs of so many tables in which every learner's entry is given its speaker, and how tables are dealt out.

An entry is a learner's seat: an entry of the scenario's `models:` whose policy is a bare name. Tables are split by
systematic sampling, so their sum is exact, every share is right on average and all is a function of the streams.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from sim.streams import Streams
from sim.types import AgentId
from training.metagame import apportion
from training.standings import Game, Player, Role, Seated
from training.trajectory import Row, earned

Label: TypeAlias = str
"""A policy's version, `name@v`."""

DRAWN = 4
"""Opponents that a learner's seat meets in one update, at most; engines hold few adapters at a time."""


class Matchup(Struct, frozen=True, kw_only=True):
    """Episodes in which every seat's speaker is fixed."""

    speakers: Mapping[Role, Label]
    """By entry; entries that are nobody's to learn keep what the scenario names."""
    players: Mapping[Role, Player]
    """The same, as the league names them."""
    learners: frozenset[Role]
    """Entries whose rows are learnt from."""
    tables: int


class Seat(NamedTuple):
    """Who speaks with an entry."""

    label: Label
    player: Player


def last_versions(label: Label, count: int) -> list[Label]:
    """The label and those of the versions before it, newest first, `count` in all where there are so many."""
    name, _, version = label.partition("@")
    return [f"{name}@{each}" for each in range(int(version), max(0, int(version) - count), -1)] if version else [label]


def games(number: int, matchup: Matchup, rows: Iterable[Row], entry_of: Mapping[AgentId, Role]) -> list[Game]:
    """The finished games of an update's n-th matchup, from its rows; `entry_of`: what each agent speaks with.

    An agent earns the sum of its rows' rewards. Episodes that were cut short count as they stand.
    """
    paid: defaultdict[str, dict[AgentId, float]] = defaultdict(dict)
    for (episode, agent), total in earned(rows).items():
        paid[episode][agent] = total
    found = []
    for episode, seats in paid.items():
        sat = tuple(
            Seated(player=matchup.players.get(entry_of[agent], entry_of[agent]), role=entry_of[agent], earned=total)
            for agent, total in seats.items()
        )
        found.append(Game(place=(number, int(episode.rpartition(":")[2])), seats=sat))
    return found


def name_of(label: Label) -> str:
    """The policy that a label is a version of."""
    return label.partition("@")[0]


class Luck:
    """Draws of one update by what they are about."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams

    def split(self, total: int, weights: Sequence[float], *about: str | int) -> list[int]:
        """Whole shares of a total by weight."""
        return apportion(total, weights, self._streams.draw("split", *about))

    def even(self, total: int, items: Sequence[str], *about: str | int) -> Iterator[tuple[str, int]]:
        """Equal whole shares."""
        shares = self.split(total, [1.0] * len(items), *about) if items else []
        return zip(items, shares, strict=True)

    def drawn(self, weights: Sequence[float], count: int, *about: str | int) -> list[int]:
        """So many indices by weight, in a random order."""
        counts = self.split(count, weights, "drawn", *about)
        return self._streams.shuffled([i for i, n in enumerate(counts) for _ in range(n)], "order", *about)


class Tables:
    """The tables of an update as they are dealt out, equal matchups together."""

    def __init__(self, entries: Mapping[Role, Label], learning: Sequence[Role]) -> None:
        self.learning = learning
        self.newest = {entry: Seat(label, name_of(label)) for entry, label in entries.items()}
        self._dealt: Counter[tuple[tuple[tuple[Role, Seat], ...], frozenset[Role]]] = Counter()

    def others(self, entry: Role) -> list[Role]:
        """All entries but one."""
        return [each for each in self.newest if each != entry]

    def deal(self, tables: int, seats: Mapping[Role, Seat], learners: Iterable[Role]) -> None:
        """So many tables; entries without a seat of their own here are played by their newest versions."""
        if tables:
            taken = tuple((entry, seats.get(entry, newest)) for entry, newest in self.newest.items())
            self._dealt[taken, frozenset(learners)] += tables

    def plain(self, tables: int) -> None:
        """All seats are played by the newest versions, and all who may learn from it."""
        self.deal(tables, {}, self.learning)

    def drawn(
        self,
        why: str,
        tables: int,
        entry: Role,
        learner: Seat,
        opponents: Mapping[Role, tuple[Sequence[Seat], Sequence[float]]],
        luck: Luck,
    ) -> None:
        """A learner in one seat, a few opponents drawn by weight in each of the others."""
        count, about = min(DRAWN, tables), (why, entry, learner.player)
        draws = {role: luck.drawn(weights, count, role, *about) for role, (_, weights) in opponents.items()}
        for draw, share in enumerate(luck.split(tables, [1.0] * count, "draws", *about) if count else ()):
            seats = {role: opponents[role][0][chosen[draw]] for role, chosen in draws.items()}
            self.deal(share, {**seats, entry: learner}, [entry])

    def matchups(self) -> list[Matchup]:
        """Those with tables, in the order in which they were dealt."""
        return [
            Matchup(
                speakers={entry: seat.label for entry, seat in seats},
                players={entry: seat.player for entry, seat in seats},
                learners=learners,
                tables=tables,
            )
            for (seats, learners), tables in self._dealt.items()
        ]
