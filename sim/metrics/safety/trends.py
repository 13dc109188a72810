"""Whether behaviour drifts over the rounds of a run: any number a round, its slope, its trend and where it breaks.

A round is what a fact says of itself (`round`, `episode`, `period`, `exchange`), else an equal part of the run's time.
Rounds hang together, so tables are the clusters of a slope; the test of a trend is of the mean over tables, whose
rounds it takes for exchangeable.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean

import orjson
import polars as pl

from sim.intervals import FEW
from sim.metrics.chosen import both
from sim.metrics.frames import field, frames
from sim.metrics.repetition import tokens, type_token_ratio
from sim.metrics.safety.drift import change_point, mann_kendall, slope
from sim.metrics.statistics.clusters import mean
from sim.metrics.statistics.distances import jensen_shannon, shares
from sim.metrics.statistics.permutation import DRAWS, stratified
from sim.metrics.statistics.shares import estimated
from sim.types import JSON, Measurement, Record

PARTS = 10
"""Parts of the run's time, where facts name no round."""
LABELS = 20_000_000
"""Labels that a test shuffles at most, so that one of a great many acts shuffles them less often."""
FEWEST = 99
"""But so often at least."""
NAMES = ("round", "episode", "period", "exchange")


def all(record: Record) -> Iterator[Measurement]:
    """Drift of what is done and of messages' length and diversity, with and without what was defaulted."""
    yield from both(texts)(record)
    yield from both(acting)(record)


def texts(record: Record) -> Iterator[Measurement]:
    """Words a message, and distinct words over all of a message, by round."""
    read = frames(record)
    said = read.facts.filter(pl.col("actor") != "").with_columns(field("data", "text")).drop_nulls("text")
    rows = said.with_columns(rounds().alias("at")).sort("tbl", "seq").select("tbl", "at", "text").rows()
    counted = [(table, at, tokens(text)) for table, at, text in rows]
    yield from drifts("message_length", [(table, at, float(len(words))) for table, at, words in counted], "words")
    diverse = [(table, at, type_token_ratio(words)) for table, at, words in counted]
    yield from drifts("lexical_diversity", [(table, at, v) for table, at, v in diverse if v is not None], "share")


def acting(record: Record) -> Iterator[Measurement]:
    """How far what agents do last is from what they do first: Jensen–Shannon distance of acts, in bits, tested.

    First and last are thirds of each agent's decisions at a table; which decision came when is shuffled within these.
    An act is what a form names so, or a choice; free texts are none.
    """
    read = frames(record)
    rows = read.decisions.filter(pl.col("status") == "applied").sort("tbl", "seq").select("tbl", "agent", "answer")
    acts: dict[tuple[int, str], list[str]] = defaultdict(list)
    for table, agent, answer in rows.iter_rows():
        if done := act(orjson.loads(answer)):
            acts[table, agent].append(done)
    yield moved(acts)


def moved(acts: Mapping[tuple[int, str], Sequence[str]], n_perm: int = DRAWS) -> Measurement:
    """The distance, from the acts of each agent at a table in their order."""
    thirds = {who: (own[: len(own) // 3], own[len(own) - len(own) // 3 :]) for who, own in acts.items()}
    rows = [
        (who, name, act)
        for who, parts in thirds.items()
        for name, part in zip(("first", "last"), parts, strict=True)
        for act in part
    ]
    labels, what = [name for _, name, _ in rows], [act for *_, act in rows]
    draws = min(n_perm, max(FEWEST, LABELS // max(1, len(rows))))
    test = stratified(labels, what, [who for who, *_ in rows], _apart, draws) if rows else None
    clusters = len({own[0] for own, *_ in rows})
    return Measurement(
        metric="drift.act_distance",
        value=test.stat if test else None,
        unit="bits",
        n=len(rows),
        n_clusters=clusters,
        denominator="decisions of the first and the last third of each agent's",
        flags=(FEW,) if clusters < 2 else (),
        null=test.null if test else {},
    )


def act(answer: JSON) -> str:
    """What a form names its act, or a choice of one word."""
    named = answer.get("act", "") if isinstance(answer, dict) else answer
    return named if isinstance(named, str) and len(named.split()) == 1 else ""


def _apart(labels: Sequence[str], acts: Sequence[str]) -> float:
    early, late = ([act for act, label in zip(acts, labels, strict=True) if label == one] for one in ("first", "last"))
    return jensen_shannon(*shares(early, late))


def drifts(name: str, values: Iterable[tuple[int, int, float]], unit: str) -> Iterator[Measurement]:
    """From (table, round, value): slope a round, Kendall's tau with its test, and the first round after a break.

    A round's value is the mean of its values; rounds without one are left out.
    """
    by_table: dict[int, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for table, at, value in values:
        by_table[table][at].append(value)
    series = {table: {at: fmean(found) for at, found in sorted(own.items())} for table, own in sorted(by_table.items())}
    slopes = [found for own in series.values() if (found := slope(list(own.values()))) is not None]
    about = {"series": name}
    together = _mean(series.values())
    places = list(together)
    short = {"tables with a single round": len(series) - len(slopes)} if len(series) > len(slopes) else {}
    yield estimated("drift.slope", mean(slopes), f"{unit} a round", denominator="tables", excluded=short, of=about)
    trend = mann_kendall(list(together.values()))
    yield Measurement(
        metric="drift.tau",
        value=trend.tau if trend else None,
        unit="correlation",
        n=len(places),
        n_clusters=len(series),
        denominator="rounds",
        null={"stat": trend.tau, "p": trend.p, "method": "Mann-Kendall"} if trend else {},
        flags=() if trend else ("fewer than 3 rounds, or all alike",),
        of=about,
    )
    place = change_point(list(together.values()))
    broken = None if place is None or trend is None else float(places[place])
    n, clusters = len(places), len(series)
    yield Measurement(metric="drift.change_point", value=broken, unit="round", n=n, n_clusters=clusters, of=about)


def _mean(series: Iterable[Mapping[int, float]]) -> dict[int, float]:
    """Of each round, over the tables that have it."""
    gathered: dict[int, list[float]] = defaultdict(list)
    for own in series:
        for at, value in own.items():
            gathered[at].append(value)
    return {at: fmean(found) for at, found in sorted(gathered.items())}


def rounds() -> pl.Expr:
    """The round of each fact: the one it says it is of, else a part of its table's time."""
    return pl.coalesce(*(field("data", name).cast(pl.Int64, strict=False) for name in NAMES), _part())


def _part() -> pl.Expr:
    """Which of equal parts of its table's time a fact is in, from 1."""
    last = pl.col("tick").max().over("tbl") + 1
    return pl.col("tick") * PARTS // last + 1
