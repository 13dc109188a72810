"""Two settings of one society, over eight seeds each: they play by the same rules, or something is planted in one.

A number of one run raises no alarm. It does beside that of another setting, where the interval of their difference, as
reports and sweeps have it, leaves out 0. A society is played once for each of two hundred seeds and either setting; a
comparison draws its runs from these, the two hundred of the null at random into both settings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from math import floor
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Literal

from sim.metrics.differences import difference
from sim.metrics.privacy.leaks import severity as severity_of
from sim.metrics.society.inequality import reward_gini
from sim.streams import Streams
from sim.types import Action, Measurement, Member, Metric, Mind, Seat, Secret, Turn
from tests.metrics.known import Case
from tests.metrics.recorded import STREETS, auction
from tests.metrics.society import Society, values
from tests.worlds.playing import play
from worlds.games import outcomes as games
from worlds.games import strategies
from worlds.games.matrix import Matrix
from worlds.markets import outcomes as markets
from worlds.markets.double_auction import ZIC
from worlds.markets.ring import Ring
from worlds.negotiation import outcomes as bargains
from worlds.negotiation.bargaining import Bargaining
from worlds.platforms import participation
from worlds.platforms.forum import Forum, Poster
from worlds.pricing import outcomes as firms
from worlds.pricing.oligopoly import Oligopoly
from worlds.pricing.strategies import benchmark, choose
from worlds.privacy import outcomes as privacy
from worlds.privacy.disclosure import Disclosure
from worlds.privacy.strategies import NormFollower, PersistentAttacker
from worlds.verification import outcomes as verification
from worlds.verification.strategies import Compliant, Violating
from worlds.verification.verification import Verification

SEEDS, PAIRS = 200, 8


def seated(*kinds: Any) -> list[tuple[Seat, Any]]:
    """Agents of these kinds, one each."""
    return [(Seat(agent=f"a{n}"), kind) for n, kind in enumerate(kinds)]


# --- societies: honest, or with something planted --------------------------------------------------------------


def dilemma(seed: int, planted: bool) -> Any:
    """Four who act at random, or two of them with two who always defect; everybody with everybody."""
    kind = partial(strategies.Fixed, action="defect") if planted else strategies.Random
    cast = seated(kind, kind, strategies.Random, strategies.Random)
    return play(Matrix, cast, {"game": "pd", "pairing": "round_robin", "rounds": 4}, seed=seed)


def apples(seed: int, planted: bool) -> Any:
    """Five buyers and five sellers who compete, or sellers who have agreed on a price."""
    return auction(partial(Ring, price=120) if planted else ZIC, seed, seed)


class Haggler:
    """Keeps a part of the pie from between two bounds, and takes what is not below another such draw."""

    state: object = None

    def __init__(self, member: Member, keeps: tuple[float, float], takes: tuple[float, float]) -> None:
        self._keeps, self._takes = keeps, takes

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Draw."""
        yield from ()
        offers = turn.view["stage"] == "offer"
        low, high = self._keeps if offers else self._takes
        drawn = (low + (high - low) * streams.draw("bargain")) * turn.view["pie"]
        if offers:
            return Action(answer={**turn.default, "gain": floor(drawn)})
        return Action(answer="accept" if turn.view["offered"] >= drawn else "reject")


def haggling(seed: int, planted: bool) -> Any:
    """Ten pairs who keep about half, or most of it."""
    kind = partial(Haggler, keeps=(0.6, 0.9) if planted else (0.4, 0.7), takes=(0.2, 0.6))
    return play(Bargaining, seated(*[kind] * 20), {"max_rounds": 2}, seed=seed)


def forum(seed: int, planted: bool) -> Any:
    """Ten members who write alike, or two who write most and eight who rarely do anything."""
    heavy = partial(Poster, post=0.7, comment=0.0, vote=0.1)
    light = partial(Poster, post=0.0, comment=0.06, vote=0.02, message=0.0)
    kinds = [heavy] * 2 + [light] * 8 if planted else [partial(Poster, comment=0.4, vote=0.2)] * 10
    settings = {"communities": {"garden": "plants", "kitchen": "food"}, "spread": 0, "visits": 6}
    return play(Forum, seated(*kinds), settings, seed=seed, until=86_400)


class Trembling:
    """Chooses about a benchmark, a tenth more or less."""

    state: object = None

    def __init__(self, member: Member, at: Literal["nash", "optimum"]) -> None:
        self._at = at

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Draw."""
        yield from ()
        return choose(turn, benchmark(turn.view, self._at) * (0.9 + 0.2 * streams.draw("tremble")))


def prices(seed: int, planted: bool) -> Any:
    """Two firms about the equilibrium, or about the joint optimum."""
    kind = partial(Trembling, at="optimum" if planted else "nash")
    return play(Oligopoly, seated(kind, kind), {"periods": 6}, seed=seed)


def requests(seed: int, planted: bool) -> Any:
    """Five conversations of which one in three is an attack, or nine in ten."""
    known = {"city": "Ghent", "phone": 5, "diagnosis": "flu"}
    cast: list[tuple[Seat, Any]] = [(Seat(agent=f"h{n}", role="holder", private=known), NormFollower) for n in range(5)]
    cast += [(Seat(agent=f"r{n}", role="recipient"), PersistentAttacker) for n in range(5)]
    return play(Disclosure, cast, {"attackers": 0.9 if planted else 1 / 3}, seed=seed)


def checking(seed: int, planted: bool) -> Any:
    """Five pairs in two episodes who check each other's work, or pass it unseen."""
    kind = partial(Violating if planted else Compliant, skill=0.6)
    return play(Verification, seated(*[kind] * 10), {"episodes": 2}, seed=seed)


def secrets(seed: int, planted: bool) -> Mapping[str, Measurement]:
    """Six tables of a slight secret and a grave one; half of both are told, or mostly the grave ones."""
    luck = Random(f"secrets {seed} {planted}")
    with TemporaryDirectory() as folder:
        society = Society(Path(folder) / "run.db", tables=6)
        for agent, street, severity in zip("ab", STREETS, (1, 5), strict=False):
            secret = Secret(subject=agent, attribute="street", value=street, holder=agent, severity=severity)
            society.member(agent, secrets=[secret])
        society.member("c")
        for table in range(6):
            for tick, (agent, street, often) in enumerate(zip("ab", STREETS, (0.1, 0.9), strict=False)):
                tells = luck.random() < (often if planted else 0.5)
                said = society.say(agent, tick, f"it is {street}" if tells else "good morning", table=table)
                society.look("c", 9 + tick, [said], table)
        with society.run() as record:
            return values(severity_of(record))


# --- their numbers -----------------------------------------------------------------------------------------------


def measured(
    played: Callable[[int, bool], Any], metrics: Sequence[Metric], seed: int, planted: bool
) -> Mapping[str, Measurement]:
    """Of a run of a world, by name and subject."""
    record = played(seed, planted)
    return values(one for metric in metrics for one in metric(record))


PARTICIPATION = (
    participation.rates,
    participation.replies_per_post,
    participation.posting_gini,
    participation.reciprocity,
    participation.active_share,
)
SOCIETIES: Mapping[str, Callable[[int, bool], Mapping[str, Measurement]]] = {
    "games": partial(measured, dilemma, (*games.METRICS, reward_gini)),
    "markets": partial(measured, apples, markets.OUTCOMES),
    "negotiation": partial(measured, haggling, bargains.METRICS),
    "platforms": partial(measured, forum, PARTICIPATION),
    "pricing": partial(measured, prices, firms.METRICS),
    "privacy": partial(measured, requests, (privacy.exchanges,)),
    "secrets": secrets,
    "verification": partial(measured, checking, (verification.reward,)),
}


@cache
def numbers(society: str, seed: int, planted: bool) -> Mapping[str, Measurement]:
    """What is measured on one run, by name and subject."""
    return SOCIETIES[society](seed, planted)


def compared(luck: Random, size: float, society: str, of: str, seeds: int = SEEDS) -> float:
    """Eight seeds under either setting; 0 where the interval of their difference says that there is one."""
    drawn = luck.sample(range(seeds), 2 * PAIRS)
    sides = ([numbers(society, seed, size > 0 and bool(side)) for seed in drawn[side::2]] for side in range(2))
    found = difference([(one[of], other[of]) for one, other in zip(*sides, strict=True)])
    return float(found is None or not found.apart)


DIFFERENCES: Mapping[str, tuple[str, str]] = {
    "payoffs apart": ("games", "matrix.mean_payoff"),
    "actions apart": ("games", "matrix.action_frequency action=defect"),
    "cooperation apart": ("games", "matrix.cooperation_rate"),
    "mutual actions apart": ("games", "matrix.mutual_action action=cooperate"),
    "inequality apart": ("games", "inequality.reward_gini"),
    "efficiency of trade apart": ("markets", "market.allocative_efficiency"),
    "convergence apart": ("markets", "market.smiths_alpha good=apple period=1"),
    "surplus shares apart": ("markets", "market.seller_share good=apple period=1"),
    "profits apart": ("markets", "market.profit_dispersion good=apple period=1"),
    "trades apart": ("markets", "market.trades good=apple period=1"),
    "prices apart": ("markets", "market.mean_price good=apple period=1"),
    "agreement apart": ("negotiation", "bargaining.agreement_rate"),
    "fairness apart": ("negotiation", "bargaining.fairness"),
    "efficiency of deals apart": ("negotiation", "bargaining.efficiency"),
    "Nash products apart": ("negotiation", "bargaining.nash_product"),
    "gains apart": ("negotiation", "bargaining.self_gain mover=first"),
    "activity apart": ("platforms", "active_share"),
    "evenness of posts apart": ("platforms", "posting_gini"),
    "comments apart": ("platforms", "comments_per_agent_day"),
    "answers to each other apart": ("platforms", "reciprocity"),
    "replies apart": ("platforms", "replies_per_post"),
    "consumer surplus apart": ("pricing", "oligopoly.consumer_surplus"),
    "prices of firms apart": ("pricing", "oligopoly.mean_price"),
    "profit gains apart": ("pricing", "oligopoly.profit_gain"),
    "exchanges apart": ("privacy", "disclosure.exchanges"),
    "severity apart": ("secrets", "privacy.severity_weighted"),
    "rewards apart": ("verification", "verification.reward"),
}
"""By name the society and the number that is compared."""
APART: dict[str, Case] = {
    name: Case(partial(compared, society=society, of=of), 1.0) for name, (society, of) in DIFFERENCES.items()
}
QUICK: dict[str, Case] = {
    name: Case(partial(compared, society=society, of=of, seeds=24), 1.0)
    for name, (society, of) in DIFFERENCES.items()
    if society != "secrets"
}
"""The same on fewer runs, without those that write files."""
