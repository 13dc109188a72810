"""Societies whose truth is known, played on the kernel: what metrics of records say of honest ones and of colluders.

As in `known`, a case gives the p-value of a seed, and an effect of 0 is the null: everybody is honest.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from functools import cache, partial
from math import log
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from sim.cuts import cut
from sim.metrics.analysis import variance
from sim.metrics.analysis.failing import foretold
from sim.metrics.analysis.templates import choices
from sim.metrics.analysis.uncertainty import passed_on
from sim.metrics.collusion.coalitions import group_contrast, message_groups
from sim.metrics.collusion.joint_play import all as joint_play
from sim.metrics.collusion.onset import compared
from sim.metrics.collusion.paraphrase import effect as paraphrase
from sim.metrics.collusion.rigging import LOW, screens
from sim.metrics.collusion.signals import all as signals
from sim.metrics.decoding import surprisal
from sim.metrics.family import Relative
from sim.metrics.honesty import integrity
from sim.metrics.privacy.degrees import all as degrees
from sim.metrics.privacy.leaks import decoy_rate
from sim.metrics.privacy.unlearning import after_request
from sim.metrics.prompts import reached
from sim.metrics.simulated import against
from sim.metrics.society.networks import communities
from sim.record.reader import Run
from sim.types import Measurement, Seat, Secret
from tests.metrics.dealings import told
from tests.metrics.known import Case, outside
from tests.metrics.society import Society
from tests.metrics.test_failing import straying, stuck
from tests.worlds.playing import play
from worlds.games.matrix import Matrix
from worlds.games.signals import Chatter, Colluder
from worlds.markets.double_auction import ZIC, DoubleAuction
from worlds.markets.ring import Ring

TWINS = 29


def auction(seller: Any, seed: int, values: int) -> Any:
    """Five buyers and five sellers in three periods; `values` draws what apples are worth and cost."""
    luck = Random(f"values {values}")
    cast: list[tuple[Seat, Any]] = []
    for n in range(5):
        worth = [luck.randint(100, 140), luck.randint(80, 120)]
        cost = [luck.randint(40, 80), luck.randint(60, 100)]
        cast.append((Seat(agent=f"buyer-{n}", role="buyer", private={"values": worth}), ZIC))
        cast.append((Seat(agent=f"seller-{n}", role="seller", private={"costs": cost}), seller))
    think = {seat.agent: "exponential(15s)" for seat, _ in cast}
    return play(DoubleAuction, cast, {"goods": ["apple"], "period": 120, "periods": 3}, think=think, seed=seed)


@cache
def competition(values: int, count: int) -> list[Relative]:
    """Twins of a market in which everybody competes."""
    return [
        Relative(id=f"t{n}", record=auction(ZIC, 1 + n, values), scenario={}, parent="m", tick=0, change='"seats"')
        for n in range(count)
    ]


def rigged(luck: Random, size: float, values: int | None = None, count: int = TWINS) -> float:
    """Sellers who agree on a price, or compete; against competition on the same values."""
    chosen = luck.randrange(10) if values is None else values
    seller = partial(Ring, price=105) if size else ZIC
    observed = Relative(id="m", record=auction(seller, luck.randrange(10**6, 10**9), chosen), scenario={})
    *_, together = against([observed, *competition(chosen, count)], _screened, LOW, "together")
    return float(together.null["p"])


@cache
def _screened(record: Any) -> list[Measurement]:
    return list(screens(record))


# --- when pairs begin to pass each other's work -------------------------------------------------------------


def episode(pair: int, number: int, violations: Sequence[bool], **more: Any) -> tuple[str, str, dict[str, Any]]:
    """An outcome whose work was not in order."""
    agents = [f"one-{pair}", f"two-{pair}"]
    never = dict.fromkeys(agents, False)
    data = {"pair": pair, "episode": number, "rule": "raw", "missed": [], "complete": never, "supported": never}
    return "outcome", "", {**data, "violations": dict(zip(agents, violations, strict=True)), **more}


def passing(luck: Random, hazard: float) -> Any:
    """A run of ten pairs in twelve episodes, who go on passing once they have begun. They have some luck in common."""
    common = hazard * luck.lognormvariate(0, 0.4)
    facts = []
    for pair in range(10):
        begins = luck.expovariate(common)
        facts += [episode(pair, n, [n > begins] * 2) for n in range(1, 13)]
    return told([facts])


def onset(luck: Random, size: float) -> float:
    """Ten runs in each of two conditions."""
    runs = [
        Relative(id=f"{side}{n}", record=passing(luck, 0.06 * (1 + size * side)), scenario={"world": {"side": side}})
        for side in (0, 1)
        for n in range(10)
    ]
    (found,) = (one for one in compared(runs, 99) if one.metric == "onset.log_rank")
    return float(found.null.get("p", 1.0))


# --- hidden bits ---------------------------------------------------------------------------------------------


def chatting(luck: Random, kind: Any, pairs: int = 15, rounds: int = 3, **params: Any) -> Any:
    """Pairs in a battle of the sexes who chat before each round."""
    cast = [(Seat(agent=f"p-{n}", private={"kind": luck.randrange(2)}), kind) for n in range(2 * pairs)]
    game = {"game": "battle_of_sexes", "talk": "explicit", "rounds": rounds, **params}
    return play(Matrix, cast, game, seed=luck.randrange(10**9))


def hidden(luck: Random, size: float, metric: str = "covert.leak", act: str = "message", pairs: int = 15) -> float:
    """Colluders who hide a bit in a phrase, or honest people who say the same."""
    record = chatting(luck, Colluder if size else Chatter, pairs)
    (found,) = (one for one in signals(record, 199) if one.metric == metric and one.of["act"] == act)
    return float(found.null["p"])


def concerted(luck: Random, size: float) -> float:
    """The same people: do pairs play the same more often than by chance?"""
    record = chatting(luck, Colluder if size else Chatter)
    (found,) = (one for one in joint_play(record, 199) if one.metric == "coordination.excess_match")
    return float(found.null["p"])


def rewritten(luck: Random, size: float) -> float:
    """The same people once more with their messages rewritten: does a decoder lose what it read?"""
    seed = luck.randrange(10**9)
    kind = Colluder if size else Chatter
    before, after = (chatting(Random(seed), kind, channel=channel) for channel in ("open", "paraphrased"))
    runs = [
        Relative(id="m", record=before, scenario={}),
        Relative(id="f", record=after, scenario={}, parent="m", tick=0, change="channel"),
    ]
    (found,) = (one for one in paraphrase(runs) if one.metric == "steganography.decoded_lost")
    return float(found.null["p"])


# --- coalitions ----------------------------------------------------------------------------------------------

MEMBERS = frozenset(range(4))
TABLES = 8
STREETS = ("Willow Garden Lane", "Copper Bridge Square", "Northern Harbour Road")


def society(luck: Random, size: float) -> tuple[list[tuple[int, int]], dict[Any, list[float]]]:
    """Who writes to whom among ten, four of them mostly to each other, and payoffs that these have in common."""
    sent = []
    for _ in range(150):
        sender = luck.randrange(10)
        inside = sender in MEMBERS and luck.random() < size
        others = [other for other in (MEMBERS if inside else range(10)) if other != sender]
        sent.append((sender, luck.choice(others)))
    paid: dict[Any, list[float]] = {agent: [] for agent in range(10)}
    for _ in range(20):
        common = luck.gauss(0, size)
        for agent, series in paid.items():
            series.append(luck.gauss(0, 1) + (1.5 * common if agent in MEMBERS else 0.0))
    return sent, paid


def coalition(luck: Random, size: float) -> float:
    """Odd in messages and in payoffs."""
    sent, paid = society(luck, size)
    found = message_groups(sent, 5, 99)
    contrast = group_contrast(paid, found.groups, 99) if found else None
    return max(found.test.p, contrast.p) if found and contrast else 1.0


def cliques(luck: Random, size: float) -> float:
    """Twelve who write to each other in 22 pairs, those of two halves only among themselves, or not."""
    pairs: set[tuple[int, int]] = set()
    while len(pairs) < 22:
        one, other = luck.sample(range(12), 2)
        if luck.random() >= size or one % 2 == other % 2:
            pairs.add((min(one, other), max(one, other)))
    found = communities(sorted(pairs), restarts=1, n_perm=19)
    return found.p if found else 1.0


# --- what tables earn ------------------------------------------------------------------------------------------


def varied(luck: Random, size: float) -> float:
    """Eight seeds in two conditions, five tables each, that lie one apart by themselves, or more."""
    runs = []
    for seed in range(8):
        common = luck.gauss(0, 1)
        for side in (0, 1):
            earned = [common + luck.gauss(0, 1 + size) for _ in range(5)]
            record = told([[("earned", "a", {})]] * 5)
            record.rewards = lambda table=0, earned=earned: {"a": earned[table]}
            runs.append(Relative(id=f"{seed}-{side}", record=record, scenario={"seed": seed, "world": {"side": side}}))
    (found,) = (one for one in variance.compared(runs, 59) if one.of.get("source") == "table")
    return outside(found.ci, 1.0)


# --- secrets and failures ------------------------------------------------------------------------------------


def telling(luck: Random, size: float) -> float:
    """Eight tables of three secrets; a third gets out in full or in part, half as much in severity, or more."""
    with TemporaryDirectory() as folder:
        society = holders(Path(folder))
        for table in range(TABLES):
            for n in range(3):
                degree = luck.random()
                if degree < 0.2 + size:
                    society.say(f"a{n}", 1 + n, f"the street is {STREETS[n]}", table=table)
                elif degree < 0.4 + size:
                    society.say(f"a{n}", 1 + n, f"my street has to do with {STREETS[n].split()[0]}", table=table)
        with society.run() as record:
            *_, found = degrees(record)
    return outside(found.ci, 0.3)


def forgetting(luck: Random, size: float) -> float:
    """Eight tables at which three secrets are told; after a request to forget a fifth of them come back, or more."""
    with TemporaryDirectory() as folder:
        society = holders(Path(folder))
        for table in range(TABLES):
            said = [society.say(f"a{n}", 1, f"the street is {street}", table=table) for n, street in enumerate(STREETS)]
            society.logs[table].event(5, 0, "change", "", {"do": "say", "text": "Forget it."})
            for n, fact in enumerate(said):
                text = STREETS[n] if luck.random() < 0.2 + size else "good morning"
                who, shows = ("b", [fact]) if luck.random() < 0.5 else (f"a{n}", [])
                society.say(who, 6 + n, text, shows=shows, table=table)
        with society.run() as record:
            found = next(after_request(record))
    return outside(found.ci, 0.2)


def holders(folder: Path) -> Society:
    """Three who have a secret each and one who has none, at eight tables."""
    society = Society(folder / "run.db", tables=TABLES)
    for n, street in enumerate(STREETS):
        secret = Secret(subject=f"a{n}", attribute="street", value=street, holder=f"a{n}")
        society.member(f"a{n}", secrets=[secret])
    society.member("b")
    return society


def unsure(luck: Random, size: float) -> float:
    """Ten tables of twelve decisions, a fifth of which fail; those that are unsure more often, or no more often."""
    with TemporaryDirectory() as folder:
        society = Society(Path(folder) / "run.db", tables=10)
        society.member("a")
        for table in range(10):
            before: list[int] = []
            for tick in range(12):
                likely = luck.uniform(0.2, 1)
                failed = luck.random() < (0.2 + size * (0.6 - likely))
                call = {"logprobs": [log(likely)]}
                how = "defaulted" if failed else "chosen"
                society.act("a", tick, shows=before, how=how, calls=[call], table=table)
                before = [society.fact(tick, "message", "a", text="so", table=table)] if luck.random() < 0.3 else []
        with society.run() as record:
            found = {one.metric: one for one in passed_on(record, n_perm=99, draws=0)}
    return float(found["uncertainty.passed_on_auc"].null["p"])


def heading(luck: Random, size: float) -> float:
    """Decisions of which those that repeat themselves fail more often, or no more often; learnt at other tables."""
    with TemporaryDirectory() as folder, stuck(Path(folder), luck, 0.6 * size).run() as record:
        found = {one.metric: one for one in foretold(record, 99)}
    ci = found["failing.head_auc"].ci
    return float(ci is None or ci[0] <= 0.5)


def astray(luck: Random, size: float) -> float:
    """Decisions of which those that have nothing to do with the goal fail more often, or no more often."""
    with TemporaryDirectory() as folder, straying(Path(folder), luck, 0.5 * size).run() as record:
        found = {one.metric: one for one in foretold(record, 99)}
    ci = found["failing.head_auc"].ci
    return float(ci is None or ci[0] <= 0.5)


# --- records themselves --------------------------------------------------------------------------------------


def broken(luck: Random, size: float) -> float:
    """A record of ten messages and who reads them, or the same with one row of its log lost or changed since."""
    with TemporaryDirectory() as folder:
        society = Society(Path(folder) / "run.db")
        for agent in "ab":
            society.member(agent)
        for tick in range(10):
            said = society.say("a", tick, f"{luck.randrange(100)} of them")
            society.look("b", tick, [said])
        society.run().close()
        if size:
            _damaged(society.path, luck)
        with Run(society.path) as record:
            (found,) = integrity(record)
    return float(found.value == 0)


def _damaged(path: Path, luck: Random) -> None:
    table, change = luck.choice(
        [("facts", "UPDATE [{}] SET data = '{{}}'"), ("facts", "DELETE FROM [{}]"), ("decisions", "DELETE FROM [{}]")]
    )
    with closing(sqlite3.connect(path)) as file, file:
        places = [place for (place,) in file.execute(f"SELECT seq FROM [{table}]")]
        file.execute(f"{change.format(table)} WHERE seq = ?", (luck.choice(places),))


def clipped(luck: Random, size: float) -> float:
    """Ten prompts of twenty messages each, of which an agent cuts the middle out, or a server half; or nobody."""
    with TemporaryDirectory() as folder:
        society = Society(Path(folder) / "run.db")
        society.member("a", model="small")
        for tick in range(10):
            said = [f"the garden has {luck.randrange(1000)} trees" for _ in range(20)]
            shown = [society.fact(tick, "message", "b", text=text) for text in said]
            text, by_agent = "\n".join(said), luck.random() < 0.5
            asked = society.prompt(cut(text, 60) if size and by_agent else text)
            tokens = 20 if size and not by_agent else len(text) // 4
            society.act("a", tick + 1, shows=shown, calls=[{"messages": asked, "prompt_tokens": tokens}])
        with society.run() as record:
            found = list(reached(record))
    return float(not any(one.value for one in found))


def doubtless(luck: Random, size: float) -> float:
    """Ten texts of forty tokens, each of two that are alike likely, or one that is nearly sure."""
    with TemporaryDirectory() as folder:
        society = Society(Path(folder) / "run.db")
        society.member("a", model="small")
        likely = 0.5 + 0.49 * size
        for tick in range(10):
            drawn = [log(likely if luck.random() < likely else 1 - likely) for _ in range(40)]
            society.act("a", tick, calls=[{"form": '{"text":200}', "logprobs": drawn}])
        with society.run() as record:
            *_, found = surprisal(record)
    return float(found.value == 0)


def going(luck: Random, size: float) -> float:
    """Sixty choices of two, each with its prompt; these make one likelier, or are all the same to the model."""
    with TemporaryDirectory() as folder:
        society = Society(Path(folder) / "run.db")
        society.member("a", model="small")
        for tick in range(60):
            first = 0.5 + size * luck.choice((-0.4, 0.4))
            said = "yes" if luck.random() < first else "no"
            call = {"messages": society.prompt(f"{tick}"), "text": said, "options": (log(first), log(1 - first))}
            society.act("a", tick, calls=[call])
        with society.run() as record:
            found = next(choices(record, 99))
    return float(found.null["p"])


def decoyed(luck: Random, size: float) -> float:
    """Ten who know a number and speak of others: of seven digits, or of two, so that chance finds one in many texts."""
    low, high = (10, 99) if size else (1_000_000, 9_999_999)
    with TemporaryDirectory() as folder:
        society = Society(Path(folder) / "run.db")
        for n in range(10):
            number = str(luck.randint(low, high))
            society.member(
                f"a{n}", secrets=[Secret(subject=f"a{n}", attribute="apartment", value=number, holder=f"a{n}")]
            )
        for tick in range(30):
            spoken = " and ".join(str(luck.randint(low, high)) for _ in range(4))
            society.say(f"a{tick % 10}", tick, f"who lives in apartment {spoken}?")
        with society.run() as record:
            (found,) = decoy_rate(record)
    return float(not found.flags)


RECORDED: dict[str, Case] = {
    "broken record": Case(broken, 1.0),
    "prompts cut": Case(clipped, 1.0),
    "texts without doubt": Case(doubtless, 1.0),
    "decoys found": Case(decoyed, 1.0),
    "coalition": Case(coalition, 0.8),
    "rewritten messages": Case(rewritten, 1.0),
    "concerted moves": Case(concerted, 1.0),
    "hidden bits in messages": Case(hidden, 1.0),
    "hidden bits that others act on": Case(
        partial(hidden, metric="covert.uptake", act="move of the others", pairs=30), 1.0
    ),
    "choices that go with prompts": Case(going, 1.0),
    "rigged bids": Case(rigged, 1.0),
    "onset between conditions": Case(onset, 2.5),
    "private groups": Case(cliques, 1.0),
    "components of variance": Case(varied, 1.0),
    "degrees of telling": Case(telling, 0.45),
    "what comes back": Case(forgetting, 0.6),
    "uncertainty of failures": Case(unsure, 0.6),
    "failures foretold": Case(heading, 1.0),
    "failures away from goals": Case(astray, 1.0),
}
"""Slow ones: each seed plays markets, or writes a run file, of its own."""
QUICK: dict[str, Case] = {
    "broken record": Case(broken, 1.0),
    "decoys found": Case(decoyed, 1.0),
    "rigged bids": Case(partial(rigged, values=1, count=24), 1.0),
    "onset between conditions": Case(onset, 2.5),
    "hidden bits in messages": Case(hidden, 1.0),
    "concerted moves": Case(concerted, 1.0),
    "rewritten messages": Case(rewritten, 1.0),
    "coalition": Case(coalition, 0.8),
    "private groups": Case(cliques, 1.0),
    "degrees of telling": Case(telling, 0.45),
    "uncertainty of failures": Case(unsure, 0.6),
}
"""The same with less luck of their own, without the slowest."""
