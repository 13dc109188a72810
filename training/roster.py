"""Who trains beside the main policies, who joins the league when, and who then starts anew. All of it is pure.

A main policy is one that an entry of the scenario's `models:` names. Beside it train exploiters (actors `league`) or
its average (actors `nfsp`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from sim.streams import Streams
from training.league import LeagueState, Solver, exploiter_step, oracle, with_exploiters
from training.matchup import Label, Matchup, name_of
from training.slots import NFSP, PSRO, Actors, League, Pool
from training.standings import Role

Name: TypeAlias = str
"""Of a policy."""
STRATEGY = "meta-strategy"
"""The best mixture so far stands under this name among the best versions."""
Mixtures: TypeAlias = Mapping[Role, Mapping[Label, float]]
"""By entry, the probability of each version that may play it."""


def meets(actors: Actors) -> bool:
    """Whether games are counted, so that there is a league."""
    return isinstance(actors, Pool | League | PSRO | NFSP)


def enrolled(actors: Actors, mains: Sequence[Name]) -> LeagueState:
    """A league without members and games, with those who train beside the main policies."""
    league = LeagueState()
    if isinstance(actors, League):
        return with_exploiters(league, actors, mains)
    if isinstance(actors, NFSP):
        for policy in mains:
            league = league.enrolled(f"{policy}-average", "average", policy)
    return league


def begun(actors: Actors, league: LeagueState, mains: Sequence[Name], labels: Mapping[Name, Label]) -> LeagueState:
    """After the first versions of all policies: best responses and exploiters need somebody to meet."""
    league = published(league, labels)
    return _added(league, labels, mains, 0).league if isinstance(actors, League | PSRO) else league


def published(league: LeagueState, labels: Mapping[Name, Label]) -> LeagueState:
    """With the newest versions of all who train beside the main policies."""
    for learner in league.learners:
        league = league.published(learner.policy, labels[learner.policy])
    return league


def restarting(actors: Actors, league: LeagueState, mains: Sequence[Name]) -> list[Name]:
    """Policies whose first versions must stay, since they may start anew from them."""
    if isinstance(actors, PSRO):
        return list(mains) if actors.anew else []
    return [one.policy for one in league.learners if one.kind != "average"]


def kept(league: LeagueState) -> set[Label]:
    """Versions that must stay whatever their age: members, and the best so far."""
    best = league.best.values()
    mixed = {label for one in best for mixture in one.mixture.values() for label in mixture}
    return {one.label for one in league.members} | {one.label for one in best} | mixed


class Joined(Struct, frozen=True, kw_only=True):
    """What came of an update."""

    league: LeagueState
    newcomers: tuple[Label, ...] = ()
    anew: tuple[Name, ...] = ()
    """Policies that now start from their first versions."""


def joined(
    actors: Actors,
    league: LeagueState,
    mains: Sequence[Name],
    labels: Mapping[Name, Label],
    done: int,
    streams: Streams,
) -> Joined:
    """After so many updates: who has joined, and who starts anew. `labels`: the newest version of every policy.

    Of a pool every `add_every` updates each policy joins; in a league the main policies do, and exploiters when they
    have found something (`exploiter_step`); of best responses the one whose turn is over.
    """
    league = published(league, labels)
    match actors:
        case Pool() if done % actors.add_every == 0:
            return _added(league, labels, mains, done)
        case PSRO():
            turn = oracle(league, mains, done - 1, actors.every, actors.solver)
            if turn.joins:
                # Its games so far were played by weaker versions; those of the empirical game are still to come.
                found = _added(league, labels, [turn.policy], done, scores=False)
                return Joined(
                    league=found.league, newcomers=found.newcomers, anew=(turn.policy,) if actors.anew else ()
                )
        case League():
            return _met(actors, league, mains, labels, done, streams)
    return Joined(league=league)


def _met(
    actors: League,
    league: LeagueState,
    mains: Sequence[Name],
    labels: Mapping[Name, Label],
    done: int,
    streams: Streams,
) -> Joined:
    """All are judged by the same games, those before anybody joins."""
    steps = {
        one.policy: exploiter_step(
            league,
            one,
            done,
            streams,
            beats=actors.beats,
            patience=actors.patience,
            reset_share=actors.reset_share,
        )
        for one in league.learners
    }
    main = mains if done % actors.add_every == 0 else []
    found = _added(league, labels, [*main, *(name for name, step in steps.items() if step.joins)], done)
    anew = tuple(name for name, step in steps.items() if step.resets)
    return Joined(league=found.league, newcomers=found.newcomers, anew=anew)


def _added(
    league: LeagueState, labels: Mapping[Name, Label], names: Iterable[Name], done: int, scores: bool = True
) -> Joined:
    newcomers = []
    for name in names:
        league = league.added(labels[name], name, done, scores=scores)
        newcomers.append(labels[name])
    return Joined(league=league, newcomers=tuple(newcomers))


def family(scenario: str, league: LeagueState, matchup: Matchup) -> str:
    """The task family of a matchup's rows: an exploiter's games are a family apart, with baselines of their own."""
    who = {name_of(matchup.speakers[entry]) for entry in matchup.learners}
    beside = sorted(name for name in who if league.learner(name))
    return "/".join([scenario, *beside])


def strategy(actors: Actors, league: LeagueState, entries: Mapping[Role, Label]) -> Mixtures:
    """What a training comes to: of best responses the mixture of their meta-solver, of fictitious play the averages.

    Empty where it comes to its newest versions.
    """
    if isinstance(actors, NFSP):
        return {entry: {league.average(name_of(label)): 1.0} for entry, label in entries.items()}
    return mixtures(league, entries, actors.solver) if isinstance(actors, PSRO) else {}


def mixtures(
    league: LeagueState, entries: Mapping[Role, Label], solver: Solver = "meta_nash", most: int | None = None
) -> Mixtures:
    """A meta-solver's mixture of the members that may take each of two entries, of the `most` best by rating.

    Empty while one of them has none, or where there are not two.
    """
    players = {entry: _members(league, name_of(label), most) for entry, label in entries.items()}
    if len(entries) != 2 or not all(players.values()):
        return {}
    first, second = entries
    found = league.solved(solver, players[first], players[second])
    both = dict(zip(entries, (found.rows, found.columns), strict=True))
    return {
        entry: {label: share for label, share in zip(players[entry], both[entry], strict=True) if share}
        for entry in entries
    }


def _members(league: LeagueState, policy: Name, most: int | None) -> list[Label]:
    found = [one.label for one in league.members if league.family(one.policy) == policy]
    best = sorted(found, key=lambda label: -league.rating(label).ordinal)[:most]
    return [label for label in found if label in best]
