"""Do the players of matches do the same more often than chance, or better than any public signal lets them?

Read are facts `match` (match, players, actions, payoffs by joint action) and `round` (match, round, moves, missed).
Matches are taken by kind, the names of their players without numbers, and by seat in the order of players. Chance is
what the same players' series of moves come to when they are dealt among matches of a kind: it keeps what everybody does
by itself in every round. Rounds with a move that was not chosen are left out and counted. What players owe to what they
saw of each other in earlier rounds counts as theirs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from statistics import fmean, stdev
from typing import Any, TypeAlias

from scipy.special import stdtr

from sim.intervals import FEW
from sim.metrics.collusion.coordination import Game, best_correlated_welfare, excess_match, obedience, total_correlation
from sim.metrics.statistics.clusters import Estimate, mean
from sim.metrics.statistics.permutation import DRAWS, stratified
from sim.metrics.statistics.shares import EVIDENCE, estimated
from sim.types import JSON, Event, Measurement, Record

Joint: TypeAlias = tuple[str, ...]
MOVES = 700_000
"""Moves that a test shuffles at most, a second or so, so that one of a great many shuffles them less often."""
FEWEST = 199
"""But so often at least."""
_NUMBER = re.compile(r"-\d+$")


@dataclass(slots=True)
class Match:
    """One match, as it was played."""

    table: int
    players: tuple[str, ...]
    game: Game
    moves: dict[int, Joint] = field(default_factory=dict)
    """Labels by player, by round."""
    facts: list[Event] = field(default_factory=list)
    missed: int = 0
    """Rounds with a move that was not chosen."""


def all(record: Record, n_perm: int = DRAWS) -> Iterator[Measurement]:
    """By kind of match: excess match, total correlation, welfare above correlated play, obedience violation."""
    kinds: dict[str, list[Match]] = {}
    for one in matches(record):
        kinds.setdefault(" & ".join(_NUMBER.sub("", player) for player in one.players), []).append(one)
    for kind, found in sorted(kinds.items()):
        yield from measured(found, {"players": kind}, n_perm)


def measured(found: Sequence[Match], of: Mapping[str, JSON], n_perm: int = DRAWS) -> Iterator[Measurement]:
    """Matches of one kind: how much more often all do the same than independent players would, how many bits their
    moves share, and what they earn a round above the best correlated equilibrium."""
    missed = sum(one.missed for one in found)
    more: dict[str, Any] = {
        "events": tuple([event for one in found for event in one.facts][:EVIDENCE]),
        "excluded": {"not chosen": missed} if missed else {},
        "denominator": "rounds",
        "of": of,
    }
    n = sum(len(one.moves) for one in found)
    played = [one for one in found if one.moves]
    for name, unit, stat in (("excess_match", "share", _excess), ("total_correlation", "bits", _correlation)):
        yield _tested(f"coordination.{name}", unit, played, stat, n, more, n_perm)
    clusters = _clusters(played)
    best = best_correlated_welfare(found[0].game)
    above = [fmean(sum(one.game[joint]) - best for one in group for joint in one.moves.values()) for group in clusters]
    yield estimated("coordination.welfare_above_correlated", mean(above)._replace(n=n), "points", **more)
    yield _disobedience(clusters, found[0].game, n, more)


def _tested(
    metric: str,
    unit: str,
    played: Sequence[Match],
    stat: Callable[..., float],
    n: int,
    more: Mapping[str, Any],
    n_perm: int,
) -> Measurement:
    """A statistic of joint moves, round by round, against series dealt anew among the matches."""
    if len(played) < 2:
        return estimated(metric, Estimate(None, n, len(played), flags=(FEW,)), unit, **more)
    players = len(played[0].players)
    seats = [[{t: joint[seat] for t, joint in one.moves.items()} for one in played] for seat in range(players)]
    others = [series for seat in seats[1:] for series in seat]
    places = [seat for seat in range(1, players) for _ in played]

    def together(dealt: Sequence[Mapping[int, str]], _: object) -> float:
        rest = [dealt[start : start + len(played)] for start in range(0, len(dealt), len(played))]
        return stat(list(zip(seats[0], *rest, strict=True)))

    draws = min(n_perm, max(FEWEST, MOVES // max(1, n * players)))
    test = stratified(others, others, places, together, draws)
    null = {**test.null, "method": "series dealt among matches", "mean": test.mean}
    return estimated(metric, Estimate(test.stat, n, len(played)), unit, null=null, **more)


def _rounds(series: Sequence[tuple[Mapping[int, str], ...]]) -> Iterator[list[Joint]]:
    """Joint moves of all matches, round by round, where all seats have one."""
    for t in sorted({t for row in series for t in row[0]}):
        joint = [tuple(seat[t] for seat in row) for row in series if min(t in seat for seat in row)]
        if joint:
            yield joint


def _excess(series: Sequence[tuple[Mapping[int, str], ...]]) -> float:
    """P(match) − Σ_a Π p_i(a), the mean over rounds by how many matches had them."""
    total = weight = 0.0
    for joint in _rounds(series):
        laws = [{act: count / len(joint) for act, count in Counter(seat).items()} for seat in zip(*joint, strict=True)]
        total += len(joint) * excess_match(fmean(len(set(row)) == 1 for row in joint), laws)
        weight += len(joint)
    return total / weight if weight else 0.0


def _correlation(series: Sequence[tuple[Mapping[int, str], ...]]) -> float:
    """Total correlation in bits, the mean over rounds likewise."""
    parts = [(len(joint), total_correlation(joint) or 0.0) for joint in _rounds(series)]
    weight = sum(size for size, _ in parts)
    return sum(size * bits for size, bits in parts) / weight if weight else 0.0


def _clusters(played: Sequence[Match]) -> list[list[Match]]:
    """Matches of a table, or where there is one table each by itself."""
    tables = {one.table for one in played}
    if len(tables) < 2:
        return [[one] for one in played]
    return [[one for one in played if one.table == table] for table in sorted(tables)]


def _disobedience(clusters: Sequence[Sequence[Match]], game: Game, n: int, more: Mapping[str, Any]) -> Measurement:
    """The most that a player would gain a round by another action wherever it does one; p by t and Bonferroni.

    Above 0 no public signal explains the play: it is either no equilibrium or held together in another way.
    """
    tested: list[tuple[float, list[float]]] = []
    rows = obedience(game)
    for row in rows:
        gains = [fmean(-row.get(joint, 0.0) for one in group for joint in one.moves.values()) for group in clusters]
        if gains:
            tested.append((fmean(gains), gains))
    value, gains = max(tested, key=lambda one: one[0], default=(0.0, list[float]()))
    p = min((_one_sided(each) for _, each in tested), default=1.0)
    null = {"stat": value, "p": min(1.0, p * len(rows)), "method": "t, Bonferroni"} if len(gains) > 1 else {}
    found = Estimate(max(0.0, value) if gains else None, n, len(gains), flags=(FEW,) if len(gains) == 1 else ())
    return estimated("coordination.obedience_violation", found, "points", null=null, **more)


def _one_sided(values: Sequence[float]) -> float:
    """p that the mean is not above 0."""
    if len(values) < 2:
        return 1.0
    spread = stdev(values) / sqrt(len(values))
    if not spread:
        return 0.0 if values[0] > 0 else 1.0
    return float(1 - stdtr(len(values) - 1, fmean(values) / spread))


def matches(record: Record) -> list[Match]:
    """The matches of a run that began."""
    found: list[Match] = []
    for table in range(record.tables):
        here: dict[int, Match] = {}
        for item in record.facts(table=table):
            fact, data = item.fact, item.fact.data
            if fact.kind == "match" and "payoffs" in data:
                here[data["match"]] = Match(table, tuple(data["players"]), _game(data))
            elif fact.kind == "round" and data["match"] in here:
                one = here[data["match"]]
                one.facts.append((table, fact.id) if record.tables > 1 else fact.id)
                if data["missed"]:
                    one.missed += 1
                else:
                    one.moves[data["round"]] = tuple(data["moves"][player] for player in one.players)
        found += here.values()
    return found


def _game(data: Mapping[str, Any]) -> Game:
    """Payoffs by labels."""
    actions = data["actions"]
    return {
        tuple(mine[int(at)] for mine, at in zip(actions, joint.split(","), strict=True)): tuple(own)
        for joint, own in data["payoffs"].items()
    }
