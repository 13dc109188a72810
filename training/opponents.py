"""Who meets whom in one update: the actors of a recipe as matchups."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations, permutations, product
from math import ceil, prod

from sim.streams import Streams
from training import metagame
from training.league import LeagueState, Learner, oracle
from training.matchup import Label, Luck, Matchup, Seat, Tables, last_versions, name_of
from training.slots import NFSP, PSRO, Actors, Lagged, League, Pool
from training.standings import Player, Role

__all__ = ["Matchup", "evaluations", "matchups"]

HOPELESS = 0.1
"""Win rate against the main policy at or below which a main exploiter meets its earlier versions instead."""
FORGOTTEN = 0.7
"""Win rate below which a main policy has forgotten how to beat an earlier self."""
EXPLOITED = 0.3
"""Win rate below which an exploiter has found something that a main policy has yet to learn."""


def matchups(
    actors: Actors,
    entries: Mapping[Role, Label],
    league: LeagueState,
    episodes: int,
    update: int,
    streams: Streams,
    only: Collection[Role] | None = None,
) -> list[Matchup]:
    """The matchups of an update; their tables add up to `episodes`.

    `entries` are the learners' seats with the newest version of each one's policy, `only` those that learn in this
    update (all, where not given). The actors `mix` and `teacher` decide by decision and `population` by settings, so
    for them, as for `self` and `fixed`, all entries are played by their newest versions. All others take turns on
    sides: each entry learns in an equal share of the tables, while the other seats are played by opponents.

    Raises ValueError where opponents need a seat of their own, or nobody learns.
    """
    learning = [entry for entry in entries if only is None or entry in only]
    if not learning:
        raise ValueError(f"nobody learns: none of {sorted(only or ())} is an entry of {sorted(entries)}")
    if isinstance(actors, PSRO) and len(entries) != 2:
        raise ValueError(f"the actors psro need two entries of models with bare policies, not {len(entries)}")
    if isinstance(actors, Lagged | Pool | League | NFSP) and len(entries) < 2:
        raise ValueError(f"the actors {actors.kind} need an entry of models for each side, each with a bare policy")
    luck = Luck(streams.sub("matchups", update))
    table = Tables(entries, learning)
    match actors:
        case Lagged():
            _lagged(actors, table, episodes, luck)
        case Pool():
            _pool(actors, table, league, episodes, luck)
        case League():
            _league(actors, table, league, episodes, luck)
        case PSRO():
            _psro(actors, table, league, episodes, update, luck)
        case NFSP():
            _nfsp(actors, table, league, episodes, luck)
        case _:
            table.plain(episodes)
    return table.matchups()


def evaluations(entries: Mapping[Role, Label], league: LeagueState, games: int) -> list[Matchup]:
    """What is still to be played, without learning, so that members of a family have met so often in every role.

    A member takes the seats of its own family. Raises ValueError unless there are two entries.
    """
    if len(entries) != 2:
        raise ValueError(f"members meet two at a time; there are {len(entries)} entries")
    found = []
    families = {entry: name_of(label) for entry, label in entries.items()}
    for pair in combinations(league.members, 2):
        for members in permutations(pair):
            seats = dict(zip(entries, members, strict=True))
            if any(league.family(one.policy) != families[entry] for entry, one in seats.items()):
                continue
            first, second = (one.label for one in members)
            missing = ceil(games - league.score(first, second, next(iter(entries))).n)
            if missing > 0:
                labels = {entry: one.label for entry, one in seats.items()}
                found.append(Matchup(speakers=labels, players=labels, learners=frozenset(), tables=missing))
    return found


def _lagged(actors: Lagged, table: Tables, episodes: int, luck: Luck) -> None:
    """The other seats are played by one of the `last` versions before the newest, or by it if it is the first."""
    for entry, tables in luck.even(episodes, table.learning, "side"):
        opponents = {}
        for role in table.others(entry):
            newest = table.newest[role]
            before = [Seat(label, label) for label in last_versions(newest.label, actors.last + 1)[1:]] or [newest]
            opponents[role] = before, [1.0] * len(before)
        table.drawn("opponents", tables, entry, table.newest[entry], opponents, luck)


# --- pools -----------------------------------------------------------------------------------------------


def _pool(actors: Pool, table: Tables, league: LeagueState, episodes: int, luck: Luck) -> None:
    """The other seats are drawn from the pool; while one of their pools is empty all play their newest versions."""

    def pool(role: Role) -> list[Player]:
        family = table.newest[role].player
        members = [one for one in league.members if actors.side == "all" or league.family(one.policy) == family]
        return [one.label for one in members]

    for entry, tables in luck.even(episodes, table.learning, "side"):
        pools = {role: pool(role) for role in table.others(entry)}
        if not all(pools.values()):
            table.plain(tables)
            continue
        opponents = {}
        for role, labels in pools.items():
            roles = (entry, role) if actors.side == "other" else None
            weights = _weights(actors, league, table.newest[entry].player, pool(entry), labels, roles)
            opponents[role] = [Seat(label, label) for label in labels], weights
        table.drawn("opponents", tables, entry, table.newest[entry], opponents, luck)


def _weights(
    actors: Pool,
    league: LeagueState,
    learner: Player,
    own: Sequence[Player],
    met: Sequence[Player],
    roles: tuple[Role, Role] | None,
) -> Sequence[float]:
    """Of the members to meet. `own`: the pool of the learner's own seat; `roles`: its own and theirs, where apart."""
    mine, theirs = roles or (None, None)
    wins = [league.score(learner, label, mine).win_rate for label in met]
    match actors.weight:
        case "uniform":
            return metagame.uniform(len(met))
        case "pfsp_hard":
            return metagame.pfsp_hard(wins, actors.power)
        case "pfsp_var":
            return metagame.pfsp_var(wins)
        case "match_quality":
            one, others = league.rating(learner), [league.rating(label) for label in met]
            return [metagame.match_quality(one.mu, one.sigma, other.mu, other.sigma) for other in others]
        case _:
            if not own:
                return metagame.uniform(len(met))
            return league.solved(actors.weight, own, met, mine, theirs).columns


# --- leagues ---------------------------------------------------------------------------------------------


def _league(actors: League, table: Tables, league: LeagueState, episodes: int, luck: Luck) -> None:
    """Main policies and exploiters get equal shares of the tables, and each of them equal shares of its sides."""
    mains = list(dict.fromkeys(table.newest[entry].player for entry in table.learning))
    exploiters = {
        one.policy: one
        for one in league.learners
        if one.kind in ("main_exploiter", "league_exploiter") and one.of in mains and one.label
    }
    for policy, share in luck.even(episodes, [*mains, *exploiters], "learner"):
        exploiter = exploiters.get(policy)
        family = exploiter.of if exploiter else policy
        sides = [entry for entry in table.learning if table.newest[entry].player == family]
        for entry, tables in luck.even(share, sides, "side", policy):
            if exploiter is None:
                _main(actors, table, league, entry, tables, luck)
            else:
                _exploiter(exploiter, table, league, entry, tables, luck)


def _main(actors: League, table: Tables, league: LeagueState, entry: Role, tables: int, luck: Luck) -> None:
    """Games against itself, against all members by how hard they are, and against those it has forgotten to beat."""
    forgotten = max(0.0, 1 - actors.self_play - actors.pfsp)
    mirror, hard, lost = luck.split(tables, [actors.self_play, actors.pfsp, forgotten], "share", entry)
    learner = table.newest[entry]
    everyone = {role: _met(table, league, learner.player, role) for role in table.others(entry)}
    if not all(labels for labels, _ in everyone.values()):
        table.plain(tables)
        return
    table.plain(mirror)
    table.drawn("hard", hard, entry, learner, everyone, luck)
    again = {role: _forgotten(table, league, learner.player, role) for role in everyone}
    table.drawn("forgotten", lost, entry, learner, again, luck)


def _exploiter(learner: Learner, table: Tables, league: LeagueState, entry: Role, tables: int, luck: Luck) -> None:
    """A main exploiter meets the main policies, a league exploiter all members by how hard they are."""
    opponents = {}
    for role in table.others(entry):
        main = table.newest[role]
        found: tuple[Sequence[Seat], Sequence[float]] = [main], [1.0]
        if learner.kind == "league_exploiter":
            found = _met(table, league, learner.policy, role)
        elif league.score(learner.policy, main.player).win_rate <= HOPELESS:
            past = [one.label for one in league.members if one.policy == main.player]
            wins = [league.score(learner.policy, label).win_rate for label in past]
            found = [Seat(label, label) for label in past], metagame.pfsp_var(wins)
        opponents[role] = found if found[0] else ([main], [1.0])
    table.drawn("exploit", tables, entry, Seat(learner.label, learner.policy), opponents, luck)


def _met(table: Tables, league: LeagueState, player: Player, role: Role) -> tuple[list[Seat], list[float]]:
    """All members that may take a seat, with how hard they are for a player."""
    family = table.newest[role].player
    labels = [one.label for one in league.members if league.family(one.policy) == family]
    wins = [league.score(player, label).win_rate for label in labels]
    return [Seat(label, label) for label in labels], metagame.pfsp_hard(wins)


def _forgotten(table: Tables, league: LeagueState, player: Player, role: Role) -> tuple[list[Seat], list[float]]:
    """Main exploiters that beat the player, else earlier main versions that it no longer beats, else all members."""
    family = table.newest[role].player
    members = [one for one in league.members if league.family(one.policy) == family]
    wins = {one.label: league.score(player, one.label).win_rate for one in members}
    for kind, least in (("main_exploiter", EXPLOITED), ("main", FORGOTTEN)):
        if found := [one.label for one in members if one.kind == kind and wins[one.label] < least]:
            return [Seat(label, label) for label in found], metagame.pfsp_hard([wins[label] for label in found])
    return _met(table, league, player, role)


# --- policy-space response oracles -----------------------------------------------------------------------


def _psro(actors: PSRO, table: Tables, league: LeagueState, episodes: int, update: int, luck: Luck) -> None:
    """The policy whose turn it is meets the members in the shares of their mixture; while there are none, the newest.

    Raises ValueError where a curriculum keeps that policy from learning.
    """
    found = oracle(
        league, list(dict.fromkeys(seat.player for seat in table.newest.values())), update, actors.every, actors.solver
    )
    sides = [entry for entry in table.learning if table.newest[entry].player == found.policy]
    if not sides:
        raise ValueError(f"it is the turn of {found.policy} to respond, and it does not learn; leave out the phase")
    for entry, tables in luck.even(episodes, sides, "side"):
        (other,) = table.others(entry)
        met = [Seat(label, label) for label in found.opponents] or [table.newest[other]]
        shares = luck.split(tables, list(found.opponents.values()) or [1.0], "mixture", entry)
        for opponent, share in zip(met, shares, strict=True):
            table.deal(share, {other: opponent}, [entry])


# --- fictitious play -------------------------------------------------------------------------------------


def _nfsp(actors: NFSP, table: Tables, league: LeagueState, episodes: int, luck: Luck) -> None:
    """One seat is the best response that learns; each other is one with probability η, else the average policy.

    That is what a best response meets where all seats draw for themselves (Heinrich and Silver 2016); tables where all
    would play their averages teach a learner of its own rows nothing and are left out.
    """
    averages = {
        entry: Seat(label, name_of(label))
        for entry, seat in table.newest.items()
        if (label := league.average(seat.player))
    }
    for entry, tables in luck.even(episodes, table.learning, "side"):
        others = table.others(entry)
        if not all(role in averages for role in others):
            table.plain(tables)
            continue
        ways = list(product((True, False), repeat=len(others)))
        chances = [prod(actors.eta if responds else 1 - actors.eta for responds in way) for way in ways]
        for way, share in zip(ways, luck.split(tables, chances, "eta", entry), strict=True):
            seats = {role: averages[role] for role, responds in zip(others, way, strict=True) if not responds}
            table.deal(share, seats, [entry])
