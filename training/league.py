"""The league: who has joined, who has beaten whom, how strong each is, and who trains next. One immutable value.

What was earned by or against a player that still changes fades from update to update; what two members earned stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import fsum
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sim.streams import Streams
from sim.types import JSON
from training import metagame
from training.metagame import Equilibrium, Mixture
from training.slots import League
from training.standings import Game, Player, Rating, Role, Score, Scores, count, earned_in, rate

Kind: TypeAlias = Literal["main", "main_exploiter", "league_exploiter", "average"]
Solver: TypeAlias = Literal["uniform", "meta_nash", "replicator"]

ENOUGH = 20
"""Games (faded ones by what is left of them) before a win rate counts as a reason to join the league."""


class Member(Struct, frozen=True, kw_only=True):
    """A version that stands still and may be met."""

    label: str
    policy: str
    kind: Kind = "main"
    parent: str = ""
    """The version it was trained from."""
    added: int = 0
    """Updates done when it joined."""


class Learner(Struct, frozen=True, kw_only=True):
    """A policy that is trained beside the main one."""

    policy: str
    kind: Kind
    of: str
    """The main policy that it exploits, or whose average it is."""
    label: str = ""
    """Its newest version; empty: none is published yet, so it does not play."""
    since: int = 0
    """Updates done when it last started anew."""


class Best(Struct, frozen=True, kw_only=True):
    """The best version of a policy so far, or the best mixture of members."""

    label: str
    score: float
    """Higher is better."""
    update: int
    mixture: Mapping[Role, Mapping[str, float]] = {}
    """Of a mixture: by entry, the probability of each member."""


class LeagueState(Struct, frozen=True, kw_only=True):
    """All that a league knows; methods that change it return another one."""

    members: tuple[Member, ...] = ()
    learners: tuple[Learner, ...] = ()
    payoffs: Scores = {}
    ratings: Mapping[Player, Rating] = {}
    best: Mapping[str, Best] = {}
    """By policy."""

    def to_json(self) -> JSON:
        """As a JSON value."""
        return msgspec.to_builtins(self)

    @classmethod
    def from_json(cls, data: JSON) -> LeagueState:
        """From what `to_json` gave. Raises msgspec.ValidationError."""
        return msgspec.convert(data, cls)

    # --- who is there -------------------------------------------------------------------------------

    def member(self, label: str) -> Member | None:
        """The member of this label."""
        return next((one for one in self.members if one.label == label), None)

    def learner(self, policy: str) -> Learner | None:
        """The learner beside the main policies that has this name."""
        return next((one for one in self.learners if one.policy == policy), None)

    def family(self, policy: str) -> str:
        """The main policy whose seats a policy may take."""
        learner = self.learner(policy)
        return learner.of if learner else policy

    def average(self, policy: str) -> str:
        """Label of a policy's average; empty: there is none yet."""
        return next((one.label for one in self.learners if (one.kind, one.of) == ("average", policy)), "")

    def rating(self, player: Player) -> Rating:
        """Its rating; that of a newcomer where it has none."""
        return self.ratings.get(player, Rating())

    def enrolled(self, policy: str, kind: Kind, of: str) -> LeagueState:
        """With one more learner beside the main policies. Raises ValueError where the name is taken."""
        if self.learner(policy):
            raise ValueError(f"the league has a learner {policy!r} already")
        return replace(self, learners=(*self.learners, Learner(policy=policy, kind=kind, of=of)))

    def published(self, policy: str, label: str) -> LeagueState:
        """A learner has a new version; main policies need not be told of."""
        return self._changed(policy, label=label)

    def added(self, label: str, policy: str, update: int, *, parent: str = "", scores: bool = True) -> LeagueState:
        """A version stands still from now on.

        It inherits μ and twice σ (UnstableBaselines) and, unless `scores` is off, what its policy has earned of late,
        which is the best guess there is of what it would. Raises ValueError where the label is a member's.
        """
        if self.member(label):
            raise ValueError(f"the league has a member {label!r} already")
        learner = self.learner(policy)
        kind: Kind = learner.kind if learner else "main"
        member = Member(label=label, policy=policy, kind=kind, parent=parent, added=update)
        source = self.rating(policy) if policy in self.ratings else self.rating(parent)
        payoffs = {player: dict(others) for player, others in self.payoffs.items()}
        if scores:
            payoffs[label] = dict(self.payoffs.get(policy, {}))
            for others in payoffs.values():
                if policy in others:
                    others[label] = others[policy]
        return replace(
            self,
            members=(*self.members, member),
            payoffs=payoffs,
            ratings={**self.ratings, label: Rating(mu=source.mu, sigma=2 * source.sigma)},
        )

    def reset(self, policy: str, label: str, update: int) -> LeagueState:
        """A learner starts anew from a version: what it had earned, and its rating, are forgotten."""
        payoffs = {
            player: {other: roles for other, roles in others.items() if other != policy}
            for player, others in self.payoffs.items()
            if player != policy
        }
        ratings = {player: one for player, one in self.ratings.items() if player != policy}
        return replace(self._changed(policy, label=label, since=update), payoffs=payoffs, ratings=ratings)

    def judged(
        self, policy: str, label: str, score: float, update: int, mixture: Mapping[Role, Mapping[str, float]] = {}
    ) -> LeagueState:
        """A version or mixture was evaluated; the best so far is kept, of equals the first. Higher is better."""
        best = self.best.get(policy)
        if best and best.score >= score:
            return self
        found = Best(label=label, score=score, update=update, mixture=mixture)
        return replace(self, best={**self.best, policy: found})

    def _changed(self, policy: str, **fields: Any) -> LeagueState:
        changed = tuple(replace(one, **fields) if one.policy == policy else one for one in self.learners)
        return replace(self, learners=changed)

    # --- who beat whom ------------------------------------------------------------------------------

    def score(self, player: Player, opponent: Player, role: Role | None = None) -> Score:
        """What a player earned against another, in one role or in all of them."""
        roles = self.payoffs.get(player, {}).get(opponent, {})
        if role is not None:
            return roles.get(role, Score())
        found = Score()
        for name in sorted(roles):
            found = found.added(roles[name])
        return found

    def finished(self, games: Iterable[Game], fade: float = 0.9) -> LeagueState:
        """After one update's games. `fade`: what is left of an older game of a player that has changed since.

        Games count in the order of their places. A seat whose player is a version that is no member is left out; of a
        player in several seats of a role the mean return counts. Who earned more has won.
        """
        labels = {one.label for one in self.members}
        payoffs = {
            player: {
                other: roles if {player, other} <= labels else {role: one.faded(fade) for role, one in roles.items()}
                for other, roles in others.items()
            }
            for player, others in self.payoffs.items()
        }
        ratings = dict(self.ratings)
        for game in sorted(games, key=lambda one: one.place):
            earned = earned_in(seat for seat in game.seats if "@" not in seat.player or seat.player in labels)
            count(payoffs, earned)
            rate(ratings, earned)
        return replace(self, payoffs=payoffs, ratings=ratings)

    # --- the empirical game -------------------------------------------------------------------------

    def matrix(
        self,
        rows: Sequence[Player],
        columns: Sequence[Player],
        row_role: Role | None = None,
        column_role: Role | None = None,
    ) -> list[list[float]]:
        """What rows earn against columns, half the difference of both returns: the zero-sum part; 0 where unplayed.

        Without roles it is the mean over the roles that were played.
        """

        def mean(player: Player, opponent: Player, role: Role | None) -> float:
            if role is not None:
                return self.score(player, opponent, role).mean
            roles = self.payoffs.get(player, {}).get(opponent, {})
            return fsum(one.mean for one in roles.values()) / len(roles) if roles else 0.0

        return [[(mean(a, b, row_role) - mean(b, a, column_role)) / 2 for b in columns] for a in rows]

    def solved(
        self,
        solver: Solver,
        rows: Sequence[Player],
        columns: Sequence[Player],
        row_role: Role | None = None,
        column_role: Role | None = None,
    ) -> Equilibrium:
        """What a meta-solver makes of the empirical game; uniform where nobody has met.

        Raises ValueError where either side has no players.
        """
        payoffs = metagame.rounded(self.matrix(rows, columns, row_role, column_role))
        if not rows or not columns:
            raise ValueError("an empirical game needs players on both sides")
        if solver == "uniform" or not any(map(any, payoffs)):
            even = metagame.uniform(len(rows)), metagame.uniform(len(columns))
            return Equilibrium(*even, fsum(map(fsum, payoffs)) / len(rows) / len(columns))
        return metagame.nash(payoffs) if solver == "meta_nash" else metagame.replicator(payoffs)


# --- exploiters ------------------------------------------------------------------------------------------


def with_exploiters(state: LeagueState, actors: League, policies: Collection[str]) -> LeagueState:
    """With the exploiters that the recipe asks for, of each main policy; those that are there stay as they are."""
    for policy in policies:
        kinds: list[tuple[Kind, int]] = [
            ("main_exploiter", actors.main_exploiters),
            ("league_exploiter", actors.league_exploiters),
        ]
        for kind, wanted in kinds:
            for number in range(1, wanted + 1):
                name = f"{policy}-{kind.replace('_', '-')}-{number}"
                state = state if state.learner(name) else state.enrolled(name, kind, policy)
    return state


class Step(Struct, frozen=True, kw_only=True):
    """What becomes of an exploiter."""

    joins: bool = False
    resets: bool = False


def exploiter_step(
    state: LeagueState,
    learner: Learner,
    update: int,
    streams: Streams,
    *,
    beats: float = 0.7,
    patience: int = 100,
    reset_share: float = 0.25,
) -> Step:
    """Whether an exploiter joins the league now, and whether it then starts anew (AlphaStar).

    A main exploiter joins when it beats the main policy in more than `beats` of its games, a league exploiter when it
    beats every member so, either of them `patience` updates after it last joined or started anew at the latest. A main
    exploiter then starts anew, a league exploiter with probability `reset_share`. Raises ValueError for a learner that
    is no exploiter.
    """
    if learner.kind not in ("main_exploiter", "league_exploiter"):
        raise ValueError(f"{learner.policy!r} is no exploiter")
    main = learner.kind == "main_exploiter"
    rivals = [learner.of] if main else [one.label for one in state.members if state.family(one.policy) == learner.of]
    scores = [state.score(learner.policy, rival) for rival in rivals]
    won = bool(scores) and all(one.n >= ENOUGH and one.win_rate > beats for one in scores)
    last = max([learner.since, *(one.added for one in state.members if one.policy == learner.policy)])
    if not won and update - last < patience:
        return Step()
    return Step(joins=True, resets=main or streams.draw("reset", learner.policy, update) < reset_share)


# --- policy-space response oracles -----------------------------------------------------------------------


class Oracle(Struct, frozen=True, kw_only=True):
    """What the PSRO loop does in one update."""

    policy: str
    """Whose best response is trained."""
    opponents: Mapping[str, float]
    """Probabilities of the members that it meets; empty: nobody has joined yet."""
    gain: float | None = None
    """What it earns against them beyond the value of the empirical game; None: unknown."""
    joins: bool = False
    """Whether it joins the league after this update."""


def oracle(
    state: LeagueState, policies: Sequence[str], update: int, every: int, solver: Solver = "meta_nash"
) -> Oracle:
    """Whose turn it is to train, against which mixture, and whether it then joins (Lanctot et al. 2017).

    The policies take turns of `every` updates. With one policy the empirical game is symmetric; with two, each meets
    the other's members. Raises ValueError for none or more than two.
    """
    if len(policies) not in (1, 2):
        raise ValueError(f"an empirical matrix game has one or two policies, not {len(policies)}")
    place = update // every % len(policies)
    mine, other = policies[place], policies[place - 1]
    own, met = ([one.label for one in state.members if one.policy == policy] for policy in (mine, other))
    joins = (update + 1) % every == 0
    if not met:
        return Oracle(policy=mine, opponents={}, joins=joins)
    if not own:
        return Oracle(policy=mine, opponents=_by_label(met, metagame.uniform(len(met))), joins=joins)
    found = state.solved(solver, own, met)
    gain = None
    if all(state.score(mine, label).n for label, share in zip(met, found.columns, strict=True) if share):
        earned = state.matrix([mine], met)[0]
        gain = fsum(share * each for share, each in zip(found.columns, earned, strict=True)) - found.value
    return Oracle(policy=mine, opponents=_by_label(met, found.columns), gain=gain, joins=joins)


def _by_label(labels: Sequence[str], mixture: Mixture) -> dict[str, float]:
    return {label: share for label, share in zip(labels, mixture, strict=True) if share}
