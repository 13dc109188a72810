"""Societies whose truth is known, as the facts of worlds tell them: rounds of games, bargains, and prices of firms.

As in `known`, a case gives the p-value of a seed, or 0 for an interval without the truth; an effect of 0 is the null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from random import Random
from typing import Any

from sim.metrics.analysis import improvement, remembering
from sim.metrics.collusion import alliances, markups, ordering
from sim.metrics.family import Relative
from sim.metrics.safety.proposals import Choice, first_taken, swapped
from sim.types import Fact, RecordedFact, Seat
from tests.metrics.known import Case, outside
from tests.worlds.playing import Played
from worlds.games import incentives, society
from worlds.games.payoffs import build
from worlds.negotiation import persuasion

Told = tuple[str, str, dict[str, Any]]
"""Kind, actor and data of a fact."""


def told(
    tables: Sequence[Sequence[Told]], agents: Sequence[str] = (), params: Mapping[str, Any] | None = None
) -> Played:
    """A record of facts by table."""
    record = Played(params or {}, [Seat(agent=agent) for agent in agents], tables=len(tables))
    for table, facts in enumerate(tables):
        for number, (kind, actor, data) in enumerate(facts):
            fact = Fact(id=number, kind=kind, actor=actor, data=data)
            record.played.append(RecordedFact(table=table, seq=number, tick=number, fact=fact))
    return record


def shuffled(luck: Random, size: float) -> float:
    """Sixteen seats say four words each, in any order, or some in that of the alphabet or against it, by their type."""
    agents, facts = [f"a-{n}" for n in range(16)], list[Told]()
    types = [n % 2 for n in range(16)]
    for agent, kind in zip(agents, types, strict=True):
        words = luck.sample("wxyz", 4)
        if luck.random() < size:
            words.sort(reverse=bool(kind))
        facts += [("message", agent, {"round": n, "match": 0, "text": word}) for n, word in enumerate(words)]
    record = told([facts])
    record.seats = [Seat(agent=agent, private={"kind": kind}) for agent, kind in zip(agents, types, strict=True)]
    (found,) = ordering.all(record, 99)
    return float(found.null["p"])


# --- games of two --------------------------------------------------------------------------------------------

PD = {"game": "pd", "actions": (), "payoffs": {}, "by_count": {}}
KINDS = ("red-1", "red-2", "blue-1", "blue-2")


def played(match: int, number: int, moves: Mapping[str, str], payoffs: Mapping[str, float]) -> Told:
    """One round."""
    return "round", "", {"match": match, "round": number, "moves": moves, "payoffs": payoffs, "missed": []}


def strangers(luck: Random, size: float) -> float:
    """Twelve tables at which everybody meets everybody; with one's own kind one earns more, or no more."""
    tables = []
    for _ in range(12):
        facts = []
        for one, other in ((a, b) for a in KINDS for b in KINDS if a < b):
            own = size * (one[:3] == other[:3])
            facts.append(played(len(facts), 1, {one: "D", other: "D"}, {a: luck.gauss(own, 1) for a in (one, other)}))
        tables.append(facts)
    (found,) = society.strangers(told(tables, KINDS, PD))
    return float(found.null["p"])


def dilemma(luck: Random, share: float) -> Played:
    """Fifteen tables of twenty rounds between two who cooperate in so many of them, whatever the other does."""
    game = build("pd", (), {}, {})
    tables = [
        [
            played(0, number, dict(zip("ab", moves, strict=True)), {})
            for number in range(20)
            for moves in [[own[0] if luck.random() < share else own[1] for own in game.actions]]
        ]
        for _ in range(15)
    ]
    return told(tables, "ab", PD)


def regretted(luck: Random, size: float) -> float:
    """A round of cooperation loses 2 with a cooperator and 1 with a defector: .3·(1 + .3) where it is .3 of both."""
    found = next(one for one in incentives.regret(dilemma(luck, 0.3 + size)) if one.metric == "matrix.external_regret")
    return outside(found.ci, 0.39)


def equilibrium(luck: Random, size: float) -> float:
    """The same for both together, by the shares of what each played."""
    found = next(iter(incentives.equilibrium(dilemma(luck, 0.3 + size))))
    return outside(found.ci, 0.78)


# --- bargains ------------------------------------------------------------------------------------------------

PIE = {"pie": 100.0}


def bargains(
    luck: Random, anchored: float = 0.0, at_once: float = 0.3, words: float = 0.0, least: float = 60
) -> Played:
    """Ten tables of six pairs. A first demand is taken, or ends in half the pie and so much of what is above it."""
    tables = []
    for _ in range(10):
        facts: list[Told] = []
        for pair in range(6):
            demand, text = luck.uniform(least, 60), "please" if luck.random() < 0.5 else ""
            facts.append(("offer", "a", {"pair": pair, "round": 1, "gain": demand, "rest": 100 - demand, "text": text}))
            taken = luck.random() < at_once + words * bool(text)
            got = demand if taken else 50 + anchored * (demand - 50) + luck.gauss(0, 10)
            shares, agents = {"a": got, "b": 100 - got}, ["a", "b"]
            facts.append(("accept" if taken else "reject", "b", {"pair": pair, "to": len(facts) - 1}))
            facts.append(("deal", "", {"pair": pair, "round": 1 + (not taken), "shares": shares, "agents": agents}))
        tables.append(facts)
    record = told(tables, "ab", PIE)
    answers = {n: one.fact.data["to"] for n, one in enumerate(record.played) if one.fact.kind in ("accept", "reject")}
    for place, to in answers.items():
        one = record.played[place]
        fact = Fact(id=one.fact.id, kind=one.fact.kind, actor=one.fact.actor, data=one.fact.data, answers=(to,))
        record.played[place] = RecordedFact(table=one.table, seq=one.seq, tick=one.tick, fact=fact)
    return record


def bargained(record: Played) -> dict[str, Any]:
    """By name."""
    return {one.metric: one for one in persuasion.persuasion(record)}


def anchored(luck: Random, size: float) -> float:
    """What one gets goes with what one first demanded."""
    return float(bargained(bargains(luck, anchored=size, least=20))["bargaining.anchoring"].null["p"])


def at_once(luck: Random, size: float) -> float:
    """Three deals of ten are struck at the first offer, or more."""
    return outside(bargained(bargains(luck, at_once=0.3 + size))["bargaining.first_offer_taken"].ci, 0.3)


def words(luck: Random, size: float) -> float:
    """An offer with words is taken more often."""
    return float(bargained(bargains(luck, words=size))["bargaining.words_risk_ratio"].null["p"])


def seats(luck: Random, size: float) -> float:
    """Fifteen tables played twice with the seats swapped: who moves first gets more, or no more."""
    runs = []
    for agents in (["a", "b"], ["b", "a"]):
        tables = []
        for _ in range(15):
            first = 0.5 + size + luck.gauss(0, 0.1)
            gains = dict(zip(agents, (first, 1 - first), strict=True))
            tables.append([("deal", "", {"pair": 0, "round": 1, "agents": agents, "gains": gains, "shares": {}})])
        runs.append(told(tables, "ab", PIE))
    return float(persuasion.seats_swapped([(runs[0], runs[1])]).null["p"])


def chosen(luck: Random, size: float) -> list[Choice]:
    """Ten tables of eight choices among two to four proposals; the first is taken for being first, or never."""
    found = []
    for number in range(80):
        values = tuple(luck.random() for _ in range(luck.randrange(2, 5)))
        place = 0 if luck.random() < size else luck.randrange(len(values))
        found.append(Choice(number % 10, "a", number, number, place, values))
    return found


def proposed(luck: Random, size: float) -> float:
    """Choices of a run."""
    *_, found = first_taken(chosen(luck, size), 10)
    return float(found.null["p"])


def reordered(luck: Random, size: float) -> float:
    """Eighty choices between two, made in both orders; some take the first, others what they like."""
    runs: list[list[Choice]] = [[], []]
    for number in range(80):
        values = luck.random(), luck.random()
        for run, own in zip(runs, (values, values[::-1]), strict=True):
            liked = max((0, 1), key=own.__getitem__) if luck.random() < 0.7 else luck.randrange(2)
            run.append(Choice(0, "a", number, number, 0 if luck.random() < size else liked, own))
    return float(swapped([(runs[0], runs[1])]).null.get("p", 1.0))


# --- firms ---------------------------------------------------------------------------------------------------


def market(luck: Random, gain: float) -> Played:
    """Ten tables of eight periods of two firms, so far from the equilibrium to the optimum, with luck by table."""
    nash, optimum = {"prices": [1.5, 1.5], "profits": [0.2, 0.2]}, {"prices": [1.9, 1.9], "profits": [0.3, 0.3]}
    point = {"firms": ["a", "b"], "market": {"costs": [1.0, 1.0]}, "nash": nash, "optimum": optimum}
    tables = []
    for _ in range(10):
        facts: list[Told] = [("benchmark", "", point)]
        common = luck.gauss(gain, 0.2)
        for period in range(8):
            for firm in "ab":
                off = common + luck.gauss(0, 0.3)
                sale = {"period": period, "price": 1.5 + 0.4 * off, "profit": 0.2 + 0.1 * off}
                facts.append(("sale", firm, sale))
            facts.append(("period", "", {"period": period, "missed": []}))
        tables.append(facts)
    return told(tables, "ab", {"window": 8})


def priced(luck: Random, size: float, metric: str = "profit_gain") -> float:
    """Prices and profits about the equilibrium, or above it."""
    found = next(one for one in markups.all(market(luck, size)) if one.metric == f"pricing.{metric}")
    return outside(found.ci, 0.0)


def short(luck: Random, size: float) -> float:
    """Profits at the equilibrium are a third short of the optimum, or less short of it."""
    (found,) = alliances.regret(market(luck, size))
    return outside(found.ci, 1 / 3)


# --- tasks that are tried again ------------------------------------------------------------------------------


def tried(luck: Random, tables: Sequence[float]) -> Played:
    """Six tasks at each of some tables, solved by so many, at the first, second or third attempt; or given up."""
    return told(
        [
            [
                ("try", "a", {"item": item, "success": turn == at})
                for item in range(6)
                for at in [luck.randrange(3) if luck.random() < share else None]
                for turn in range(3 if at is None else at + 1)
            ]
            for share in tables
        ]
    )


def solved(luck: Random, size: float) -> float:
    """Ten tables of which about half of the tasks are solved, or more: an area of two thirds of them."""
    tables = [min(1.0, luck.betavariate(4, 4) + size) for _ in range(10)]
    found = {one.metric: one for one in improvement.dynamics(tried(luck, tables), 199)}
    return outside(found["improvement.area"].ci, 1 / 3)


def forgetful(luck: Random, size: float) -> float:
    """Ten seeds with and without memory; with it more of the tasks are solved, or as many."""
    runs = []
    for seed in range(10):
        share = luck.betavariate(4, 4) * (1 - size)
        for tokens, more in ((0, 0.0), (500, size)):
            cast = [{"name": "a", "with": {"memory_tokens": tokens}}]
            record = tried(luck, [share + more] * 2)
            runs.append(Relative(id=f"{seed} {tokens}", record=record, scenario={"seed": seed, "cast": cast}))
    (found,) = remembering.compared(runs, 99)
    return float(found.null["p"])


DEALINGS: dict[str, Case] = {
    "order of messages": Case(shuffled, 0.8),
    "area of tasks": Case(solved, 0.4),
    "worth of memory": Case(forgetful, 0.4),
    "cross-play gap": Case(strangers, 1.5),
    "regret": Case(regretted, 0.2),
    "NashConv": Case(equilibrium, 0.2),
    "anchoring": Case(anchored, 0.5),
    "first offers": Case(at_once, 0.3),
    "offers with words": Case(words, 0.5),
    "first mover": Case(seats, 0.1),
    "first proposals": Case(proposed, 0.3),
    "proposals in both orders": Case(reordered, 0.4),
    "profit gain": Case(priced, 0.4),
    "price index": Case(partial(priced, metric="price_index"), 0.4),
    "price lift": Case(partial(priced, metric="price_lift"), 0.4),
    "regret to the optimum": Case(short, 0.4),
}
