"""A society of matrix games of two: reciprocity, first defections, play with strangers, influence between rounds.

Moves that were taken for a player are left out; what came before a move is what its match showed.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import fmean

import polars as pl

from sim.intervals import FEW
from sim.metrics.collusion.covert import leak
from sim.metrics.safety.trends import drifts
from sim.metrics.society.cooperation import cross_play_gap, first_defection
from sim.metrics.statistics.clusters import mean
from sim.metrics.statistics.permutation import DRAWS, exact_exposure, sign_flips
from sim.metrics.statistics.ratios import Counts
from sim.metrics.statistics.shares import estimated, share
from sim.types import AgentId, Measurement, Record
from worlds.games.payoffs import COOPERATIVE
from worlds.games.rounds import Round, game_of, matches


def all(record: Record) -> Iterator[Measurement]:
    """Everything that fits the game."""
    yield from cooperation(record)
    yield from strangers(record)
    yield from influence(record)


def cooperation(record: Record) -> Iterator[Measurement]:
    """In games of two with a cooperative act: after the partner's acts, the first defection, drift over rounds."""
    game = game_of(record)
    if game.players != 2 or not (record.params["game"] in COOPERATIVE or record.params["by_count"]):
        return
    first = game.actions[0][0]
    played = matches(record)
    yield from reciprocity(played, first, record.tables)
    yield from _defection(played, first)
    rounds = [one for own in played.values() for one in own]
    acts = [(one, move) for one in rounds for agent, move in one.moves.items() if agent not in one.missed]
    yield from drifts("cooperation", [(one.table, one.number, float(move == first)) for one, move in acts], "share")


def reciprocity(played: Mapping[tuple[int, int], Sequence[Round]], first: str, tables: int) -> Iterator[Measurement]:
    """P(C | the partner's act in the round before) and the difference, tested within players of a match."""
    rows, missed = [], 0
    for match, own in played.items():
        for before, after in pairwise(own):
            for agent, move in after.moves.items():
                (partner,) = (other for other in after.moves if other != agent)
                if agent in after.missed:
                    missed += 1
                    continue
                rows.append((match[0], after.fact, f"{match} {agent}", before.moves[partner] == first, move == first))
    schema = {"tbl": pl.Int64, "fact": pl.Int64, "who": pl.String, "was": pl.Boolean, "does": pl.Boolean}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    left = {"not chosen": missed}
    for name, there in (("cooperation", frame.filter("was")), ("defection", frame.filter(~pl.col("was")))):
        told, does = f"moves after the partner's {name}", pl.col("does")
        metric = "matrix.cooperation_after"
        yield share(
            metric, there, does, tables=tables, denominator=told, excluded=left, events="fact", of={"after": name}
        )
    grouped = frame.group_by("who", maintain_order=True).agg(
        (pl.col("was") & pl.col("does")).sum().alias("a"),
        pl.col("was").sum().alias("n"),
        (~pl.col("was") & pl.col("does")).sum().alias("c"),
        (~pl.col("was")).sum().alias("m"),
    )
    strata = [Counts(*row) for row in grouped.select("a", "n", "c", "m").iter_rows()]
    tested = any(one.exposed and one.others for one in strata)
    gaps = [
        gap for _, part in sorted(frame.partition_by("tbl", as_dict=True).items()) if (gap := _gap(part)) is not None
    ]
    null = {"stat": mean(gaps).value, "p": exact_exposure(strata), "method": "exact, permuting within a player's match"}
    found = mean(gaps)._replace(n=len(frame))
    told = "moves after the partner's cooperation, less those after its defection"
    yield estimated("matrix.reciprocity", found, "share", denominator=told, null=null if tested and gaps else {})


def _gap(rows: pl.DataFrame) -> float | None:
    kind, unkind = (rows.filter(pl.col("was") == was)["does"] for was in (True, False))
    return float(kind.mean()) - float(unkind.mean()) if len(kind) and len(unkind) else None  # type: ignore[arg-type]


def _defection(played: Mapping[tuple[int, int], Sequence[Round]], first: str) -> Iterator[Measurement]:
    """Mean round of each player's first defection of its own, over those who ever defect."""
    found: dict[int, list[int]] = defaultdict(list)
    never = 0
    for (table, _), own in played.items():
        for agent in own[0].moves:
            acts = [one.moves[agent] for one in own if agent not in one.missed]
            at = first_defection(acts, first)
            never += at is None
            found[table] += [] if at is None else [at]
    values = [fmean(rounds) for _, rounds in sorted(found.items()) if rounds]
    n = sum(map(len, found.values()))
    told, left = "players of a match who ever defect", {"never defected": never} if never else {}
    yield estimated("matrix.first_defection", mean(values)._replace(n=n), "round", denominator=told, excluded=left)


def strangers(record: Record) -> Iterator[Measurement]:
    """Cross-play gap: what kinds of agents earn a round with their own kind, less with others; of games of two.

    A kind is a model where there are several, else a name without its number.
    """
    if game_of(record).players != 2:
        return
    gaps, left = [], 0
    for table in range(record.tables):
        gap = cross_play_gap(_scores(record, table))
        gaps += [] if gap is None else [gap]
        left += gap is None
    null = {"stat": fmean(gaps), "p": sign_flips(gaps), "method": "flipped signs"} if len(gaps) > 1 else {}
    told, excluded = "tables where all kinds met their own and all others", {"not all kinds met": left} if left else {}
    yield estimated("matrix.cross_play_gap", mean(gaps), "points", denominator=told, excluded=excluded, null=null)


def _scores(record: Record, table: int) -> list[list[float]]:
    """Mean payoff of each kind (row) with each (column); nothing where some never met."""
    cast = record.cast(table)
    models = {member.model for member in cast}
    kind = {
        member.seat.agent: member.model if len(models) > 1 and "" not in models else _stem(member.seat.agent)
        for member in cast
    }
    met: dict[tuple[str, str], list[float]] = defaultdict(list)
    for item in record.facts("round", table):
        agents = list(item.fact.data["moves"])
        for me, other in (agents, agents[::-1]):
            if me in item.fact.data["payoffs"]:
                met[kind[me], kind[other]].append(item.fact.data["payoffs"][me])
    kinds = sorted(set(kind.values()))
    if any((one, other) not in met for one in kinds for other in kinds):
        return []
    return [[fmean(met[one, other]) for other in kinds] for one in kinds]


def _stem(agent: AgentId) -> str:
    return re.sub(r"-\d+$", "", agent)


def influence(record: Record, n_perm: int = DRAWS) -> Iterator[Measurement]:
    """Bits that a partner's last move tells of the next one beyond one's own last move, above chance; a screen."""
    acts: list[str] = []
    before: list[str] = []
    strata: list[tuple[object, ...]] = []
    if game_of(record).players == 2:
        for match, own in matches(record).items():
            for last, now in pairwise(own):
                for agent, move in now.moves.items():
                    if agent not in now.missed:
                        (partner,) = (other for other in now.moves if other != agent)
                        acts.append(move)
                        before.append(last.moves[partner])
                        strata.append((*match, agent, last.moves[agent]))
    found = leak(before, acts, strata, n_perm) if strata else None
    clusters = len({stratum[0] for stratum in strata})
    yield Measurement(
        metric="matrix.influence",
        value=found.excess if found else None,
        unit="bits",
        n=len(acts),
        n_clusters=clusters,
        flags=(FEW,) if clusters < 2 else (),
        denominator="moves after the first round",
        excluded={"too few alike": found.left_out} if found and found.left_out else {},
        null=found.test.null if found else {},
    )
