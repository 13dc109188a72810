"""Ratings from what agents earned: of every two at a table who earned more won, by as much as any.

Bradley–Terry strengths come with an interval from the spread between tables; Elo depends on the order of tables, so it
is averaged over many orders, between which it has the spread `elo_order`, and its interval is of tables drawn anew.
Agents of one role are compared, and agents who never met have no common scale. α-rank says who is left where the worse
imitate the better, also where agents beat each other in a circle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from random import Random
from statistics import fmean, pstdev
from typing import Any, NamedTuple

import numpy as np

from sim.intervals import FEW, Z, t_quantile
from sim.metrics.society.ratings import (
    Glicko,
    Level,
    Skill,
    alpha_rank,
    bradley_terry,
    elo_expected,
    glicko2,
    plackett_luce,
)
from sim.metrics.statistics.bootstrap import middle
from sim.metrics.statistics.permutation import DRAWS, stratified
from sim.types import AgentId, Measurement, Record

ORDERS = 200
"""Orders of tables over which Elo is averaged, and as many draws of tables for its interval."""
START = 1500.0


class Score(NamedTuple):
    """What one agent earned at one table."""

    table: int
    agent: AgentId
    reward: float


def all(record: Record) -> Iterator[Measurement]:
    """Ratings of the agents of each role, by their rewards at all tables."""
    earned: dict[str, list[Score]] = {}
    for table in range(record.tables):
        rewards = record.rewards(table)
        for member in record.cast(table):
            agent = member.seat.agent
            if agent in rewards:
                earned.setdefault(member.seat.role, []).append(Score(table, agent, rewards[agent]))
    for role, scores in sorted(earned.items()):
        of: dict[str, Any] = {"role": role} if role else {}
        yield from rated(scores, **of)


def rated(scores: Sequence[Score], n_perm: int = DRAWS, **of: Any) -> Iterator[Measurement]:
    """Bradley–Terry, Elo, Plackett–Luce skill, Glicko-2 and α-rank of each agent, and whether they differ at all."""
    tables = _tables(scores)
    games = [game for own in tables.values() for game in _games(own)]
    agents = sorted({one.agent for one in scores})
    clusters = len(tables)
    few = (FEW,) if clusters < 2 else ()
    strengths = bradley_terry(games)
    yield spread(scores, n_perm, **of)
    if strengths is None:
        flag = "agents who never met" if games else "a single agent"
        yield Measurement(metric="rating.bradley_terry", value=None, n_clusters=clusters, flags=(flag, *few), of=of)
        return
    yield from _imitated(agents, tables, n_perm, few, of)
    errors = _errors(strengths, tables) if clusters > 1 else {}
    elo, skills, periods = _elo(tables), _skills(tables), _glicko(tables)
    for agent in agents:
        value, (level, drawn), skill = strengths[agent], elo[agent], skills[agent]
        rating, deviation, _ = periods[agent]
        believed = (skill.mu - Z * skill.sigma, skill.mu + Z * skill.sigma)
        half = t_quantile(0.95, clusters - 1) * errors[agent] if errors else None
        ci = None if half is None else (value - half, value + half)
        numbers = (
            ("bradley_terry", value, "log odds", ci, "t, sandwich over tables" if ci else ""),
            ("elo", level.mean, "Elo points", drawn, "bootstrap over tables" if drawn else ""),
            ("elo_order", level.sd, "Elo points", None, ""),
            ("skill", skill.mu, "skill points", believed, "credible, Plackett–Luce"),
            ("ordinal", skill.ordinal, "skill points", None, ""),
            ("glicko", rating, "Glicko points", (rating - Z * deviation, rating + Z * deviation), "credible, Glicko-2"),
        )
        for name, number, unit, interval, method in numbers:
            yield Measurement(
                metric=f"rating.{name}",
                version=2 if name in ("elo", "skill") else 1,
                value=number,
                unit=unit,
                n=sum(agent in game[:2] for game in games),
                n_clusters=clusters,
                ci=interval,
                ci_method=method,
                denominator="comparisons with others at the same table",
                flags=few,
                of={**of, "agent": agent},
            )


def _imitated(
    agents: Sequence[AgentId],
    tables: Mapping[int, Sequence[Score]],
    draws: int,
    flags: tuple[str, ...],
    of: Mapping[str, Any],
) -> Iterator[Measurement]:
    """α-rank of each agent, by how often it beats each other; with an interval by a bootstrap over tables."""
    more: dict[str, Any] = {"unit": "share", "n_clusters": len(tables), "denominator": "time of a population"}
    met = np.array([_met(agents, own) for own in tables.values()])
    shares = _shares(met)
    if shares is None:
        reason = "some agents never met each other"
        yield Measurement(metric="rating.alpha_rank", value=None, flags=(reason, *flags), of=of, **more)
        return
    luck = Random(0)
    places = [luck.choices(range(len(met)), k=len(met)) for _ in range(draws if len(met) > 1 else 0)]
    drawn = [_shares(met[each]) for each in places]
    known = [each for each in drawn if each is not None]
    for place, agent in enumerate(agents):
        ci = middle(each[place] for each in known)
        yield Measurement(
            metric="rating.alpha_rank",
            value=shares[place],
            n=int(met[:, 1, place].sum()),
            ci=ci,
            ci_method="bootstrap over tables" if ci else "",
            flags=flags,
            of={**of, "agent": agent},
            **more,
        )


def _met(agents: Sequence[AgentId], own: Sequence[Score]) -> np.ndarray:
    """Of one table how often each agent beat each other, and met it."""
    place = {agent: number for number, agent in enumerate(agents)}
    found = np.zeros((2, len(agents), len(agents)))
    for a, b, score in _games(own):
        for one, other, points in ((a, b, score), (b, a, 1 - score)):
            found[:, place[one], place[other]] += points, 1
    return found


def _shares(tables: np.ndarray) -> list[float] | None:
    """α-rank of agents by all of some tables; None where two never met."""
    won, met = tables.sum(0) + np.eye(tables.shape[-1])
    return alpha_rank((won / met).tolist()) if met.all() else None


def spread(scores: Sequence[Score], n_perm: int = DRAWS, **of: Any) -> Measurement:
    """Variance between agents of the share of others that each beats; rewards are shuffled within tables."""
    agents, tables = [one.agent for one in scores], [one.table for one in scores]
    names, clusters = list(dict.fromkeys(agents)), len(set(tables))
    points = _points(scores)

    def variance(labels: Sequence[AgentId], won: Sequence[float]) -> float:
        sums: dict[AgentId, list[float]] = {name: [] for name in names}
        for label, each in zip(labels, won, strict=True):
            sums[label].append(each)
        return pstdev(fmean(own) for own in sums.values()) ** 2

    test = stratified(agents, points, tables, variance, n_perm) if clusters > 1 and len(names) > 1 else None
    return Measurement(
        metric="rating.spread",
        value=test.stat if test else None,
        unit="variance of shares",
        n=len(scores),
        n_clusters=clusters,
        denominator="agents",
        flags=(FEW,) if clusters < 2 else (),
        null=test.null if test else {},
        of=of,
    )


def _tables(scores: Sequence[Score]) -> dict[int, list[Score]]:
    found: dict[int, list[Score]] = {}
    for one in sorted(scores):
        found.setdefault(one.table, []).append(one)
    return found


def _games(own: Sequence[Score]) -> list[tuple[AgentId, AgentId, float]]:
    return [(a.agent, b.agent, _beats(a, b)) for a, b in combinations(own, 2)]


def _beats(one: Score, other: Score) -> float:
    return 0.5 * (one.reward == other.reward) + (one.reward > other.reward)


def _points(scores: Sequence[Score]) -> list[float]:
    """Of each score the share of the others of its table that it beats; ½ where it is alone."""
    tables = _tables(scores)
    found = []
    for one in scores:
        others = [other for other in tables[one.table] if other.agent != one.agent]
        found.append(fmean(_beats(one, other) for other in others) if others else 0.5)
    return found


def _errors(strengths: Mapping[Any, float], tables: Mapping[int, Sequence[Score]]) -> dict[AgentId, float]:
    """Standard errors of strengths: H⁺ Σ g gᵀ H⁺ · m/(m − 1), g the gradient of a table, H the information of all."""
    place = {agent: number for number, agent in enumerate(strengths)}
    information, outer = np.zeros((len(place),) * 2), np.zeros((len(place),) * 2)
    for own in tables.values():
        gradient = np.zeros(len(place))
        for a, b, score in _games(own):
            difference = np.zeros(len(place))
            difference[place[a]], difference[place[b]] = 1.0, -1.0
            chance = 1 / (1 + np.exp(strengths[b] - strengths[a]))
            gradient += (score - chance) * difference
            information += chance * (1 - chance) * np.outer(difference, difference)
        outer += np.outer(gradient, gradient)
    inverse, m = np.linalg.pinv(information), len(tables)
    covariance = inverse @ outer @ inverse * m / (m - 1)
    return {agent: float(np.sqrt(max(0.0, covariance[at, at]))) for agent, at in place.items()}


def _elo(
    tables: Mapping[int, Sequence[Score]], k: float = 32
) -> dict[AgentId, tuple[Level, tuple[float, float] | None]]:
    """Mean and spread over orders of tables, and the middle 95% over tables drawn anew; None for a single table.

    All of a table are played at once, K shared among the opponents.
    """
    luck, games = Random(0), {table: _games(own) for table, own in tables.items()}
    agents, whole = sorted({one.agent for own in tables.values() for one in own}), sorted(tables)

    def played(order: Sequence[int]) -> dict[AgentId, float]:
        level = dict.fromkeys(agents, START)
        for table in order:
            before, share = dict(level), k / max(1, len(tables[table]) - 1)
            for a, b, score in games[table]:
                gain = share * (score - elo_expected(before[a], before[b]))
                level[a] += gain
                level[b] -= gain
        return level

    orders = [played(luck.sample(whole, len(whole))) for _ in range(ORDERS)]
    drawn = [played(luck.choices(whole, k=len(whole))) for _ in range(ORDERS if len(whole) > 1 else 0)]
    found = {}
    for agent in agents:
        levels = [level[agent] for level in orders]
        found[agent] = Level(fmean(levels), pstdev(levels)), middle(level[agent] for level in drawn)
    return found


def _glicko(tables: Mapping[int, Sequence[Score]]) -> dict[AgentId, Glicko]:
    """Ratings after all tables in turn, each of them one period; who is not there becomes less sure."""
    found = {one.agent: Glicko() for own in tables.values() for one in own}
    for own in tables.values():
        before, met = dict(found), {one.agent: list[tuple[Glicko, float]]() for one in own}
        for a, b, score in _games(own):
            met[a].append((before[b], score))
            met[b].append((before[a], 1 - score))
        found = {agent: glicko2(rating, met.get(agent, ())) for agent, rating in before.items()}
    return found


def _skills(tables: Mapping[int, Sequence[Score]]) -> dict[AgentId, Skill]:
    """Beliefs after all tables in turn; equal rewards share a rank."""
    found: dict[AgentId, Skill] = {}
    for own in tables.values():
        ranks = [sum(other.reward > one.reward for other in own) for one in own]
        after = plackett_luce([found.get(one.agent, Skill()) for one in own], ranks)
        found |= dict(zip((one.agent for one in own), after, strict=True))
    return found
