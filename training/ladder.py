"""A league as numbers and tables: ratings, who beat whom, a meta-solver's mixture, with their uncertainty."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import msgspec
from rich.table import Table

from sim.commands.terminal import columns, number
from sim.intervals import Z
from sim.types import Measurement
from training.league import LeagueState
from training.roster import Mixtures
from training.standings import Player, Rating, Score


def measurements(league: LeagueState, update: int) -> Iterator[Measurement]:
    """For the project file: ratings after this update, and all pairs as they stand now.

    Win rates are with Wilson's interval; means are of returns; counts of games that have faded are rounded.
    """
    for player, rating in sorted(league.ratings.items()):
        yield Measurement(
            metric="league.rating",
            value=rating.mu,
            n=round(_games(league, player)),
            ci=interval(rating),
            ci_method="openskill",
            of={"player": player, "update": update},
        )
    for player, others in sorted(league.payoffs.items()):
        for opponent in sorted(others):
            score = league.score(player, opponent)
            about = {"player": player, "opponent": opponent}
            if not score.n:
                continue
            error = score.error
            known = math.isfinite(error)
            yield Measurement(
                metric="league.win_rate",
                value=score.win_rate,
                n=round(score.n),
                ci=score.interval,
                ci_method="wilson",
                of=about,
            )
            yield Measurement(
                metric="league.payoff",
                value=score.mean,
                n=round(score.n),
                ci=(score.mean - Z * error, score.mean + Z * error) if known else None,
                ci_method="normal" if known else "",
                of=about,
            )


def interval(rating: Rating) -> tuple[float, float]:
    """Where a strength lies with probability 0.95."""
    return rating.mu - Z * rating.sigma, rating.mu + Z * rating.sigma


def players(league: LeagueState) -> list[Player]:
    """All who are rated or members, by what their strength is at least, the best first."""
    known = {*league.ratings, *(one.label for one in league.members)}
    return sorted(known, key=lambda player: (-league.rating(player).ordinal, player))


def summary(league: LeagueState, meta: Mixtures) -> dict[str, Any]:
    """All of it as a JSON value, players in the order of the ladder."""
    ranked = players(league)
    return {
        "ladder": [_rung(league, player) for player in ranked],
        "payoffs": [
            _pair(player, other, league.score(player, other))
            for player in ranked
            for other in ranked
            if league.score(player, other).n
        ],
        "meta_strategy": {entry: dict(shares) for entry, shares in meta.items()},
        "best": {policy: msgspec.to_builtins(one) for policy, one in sorted(league.best.items())},
    }


def tables(league: LeagueState, meta: Mixtures, most: int) -> Iterator[Table | str]:
    """The same for people; the matrix has the `most` best players."""
    ranked = players(league)
    rungs = [_rung(league, player) for player in ranked]
    yield columns(
        ("ladder", "kind", "rating", "95%", "at least", "games", "joined after"),
        [
            (
                rung["player"],
                rung["kind"],
                number(rung["mu"]),
                f"{number(rung['interval'][0])} to {number(rung['interval'][1])}",
                number(rung["at_least"]),
                f"{rung['games']:,.0f}",
                "" if rung["joined"] is None else rung["joined"],
            )
            for rung in rungs
        ],
    )
    shown = ranked[:most]
    yield columns(
        ("win rate of … against", *shown), [(one, *(_met(league, one, other) for other in shown)) for one in shown]
    )
    if len(ranked) > most:
        yield f"… {len(ranked) - most} more players: --all"
    if meta:
        yield columns(
            ("meta-strategy", "member", "probability"),
            [(entry, label, number(share)) for entry, shares in meta.items() for label, share in shares.items()],
        )
    if league.best:
        yield columns(
            ("best so far", "version", "score", "after update"),
            [(policy, one.label, number(one.score), one.update) for policy, one in sorted(league.best.items())],
        )


def _rung(league: LeagueState, player: Player) -> dict[str, Any]:
    member, learner, rating = league.member(player), league.learner(player), league.rating(player)
    known = member or learner
    return {
        "player": player,
        "kind": known.kind if known else "main",
        "mu": rating.mu,
        "sigma": rating.sigma,
        "interval": list(interval(rating)),
        "at_least": rating.ordinal,
        "games": _games(league, player),
        "joined": member.added if member else None,
    }


def _pair(player: Player, opponent: Player, score: Score) -> dict[str, Any]:
    return {
        "player": player,
        "opponent": opponent,
        "games": score.n,
        "win_rate": score.win_rate,
        "interval": list(score.interval),
        "mean_return": score.mean,
        "standard_error": score.error if math.isfinite(score.error) else None,
    }


def _met(league: LeagueState, player: Player, opponent: Player) -> str:
    score = league.score(player, opponent)
    low, high = score.interval
    return f"{score.win_rate:.2f} [{low:.2f}, {high:.2f}]" if score.n else "–"


def _games(league: LeagueState, player: Player) -> float:
    return math.fsum(league.score(player, other).n for other in league.payoffs.get(player, {}))
