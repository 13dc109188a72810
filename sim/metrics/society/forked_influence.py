"""What one agent's act does to the next of another, causally: forks in which it does something else, all else alike.

A metric of several runs: `agora fork RUN --at TIME --edit '{do: act, agent: seller-1, answer: …}' --replicates 20`, for
each act that is to be compared, and `--control`; then `agora measure RUN --across
sim.metrics.society.forked_influence:compared`. A state is a table of a run at the moment of such forks. What the first
agent does there, and what the other does in its first decision that could have seen it, are read from all of them, the
untreated runs among them, whose acts say what the first one's own policy is. Answers are taken as they are, so that
they have to be choices; each fork is one sample of its own luck, once however often it was made.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple, TypeAlias

import orjson
import polars as pl

from sim.metrics.collusion.covert import conditional_information
from sim.metrics.family import Relative
from sim.metrics.frames import Frames, field, frames
from sim.metrics.society.contributions import tokens
from sim.metrics.society.influence import lazy, sampled_influence
from sim.metrics.statistics.clusters import mean
from sim.metrics.statistics.permutation import DRAWS, stratified
from sim.metrics.statistics.shares import estimated
from sim.types import JSON, AgentId, Measurement, Record

State: TypeAlias = tuple[str, int, int]
"""Run that was forked, tick of the forks, table."""
UNKNOWN = "own policy unknown: all acts taken for alike likely"
"""Flag where no two untreated runs show different acts."""


class Sample(NamedTuple):
    """What one did and what another did then, of one fork or untreated run, at one table."""

    state: State
    replicate: int
    treated: bool
    act: str
    answer: str


def compared(runs: Sequence[Relative], n_perm: int = DRAWS) -> Iterator[Measurement]:
    """Influence of each agent that was made to act on each other agent, in bits a state (Jaques et al. 2019); and the
    largest of each, flagged where that is none though the agent talks much, or where it hardly does."""
    found, left = samples(runs)
    on_others: dict[AgentId, list[float]] = defaultdict(list)
    for (agent, other), own in sorted(found.items()):
        one = measured(own, n_perm, agent=agent, other=other, left=left[agent, other])
        on_others[agent] += [] if one.value is None else [one.value]
        yield one
    forked = {sample.state[0] for own in found.values() for sample in own}
    yield from _largest(on_others, [one.record for one in runs if one.id in forked])


def _largest(on_others: Mapping[AgentId, Sequence[float]], untreated: Sequence[Record]) -> Iterator[Measurement]:
    """Of each agent its influence on whom it influences most."""
    said: dict[JSON, list[float]] = defaultdict(list)
    for record in untreated:
        for share in tokens(record):
            said[share.of["agent"]] += [] if share.value is None else [share.value]
    for agent, bits in on_others.items():
        talk = fmean(said.get(agent) or [0.0]) if said else None
        flags = lazy(len(untreated[0].cast()), influence=max(bits), tokens=talk) if bits else ()
        yield Measurement(
            metric="influence.largest",
            value=max(bits, default=None),
            unit="bits",
            n=len(bits),
            n_clusters=len(untreated),
            denominator="other agents, of whom the largest counts",
            flags=flags,
            of={"agent": agent},
        )


def samples(
    runs: Sequence[Relative],
) -> tuple[dict[tuple[AgentId, AgentId], list[Sample]], Counter[tuple[AgentId, AgentId]]]:
    """By who acted and who answered; and how many forks had no answer."""
    whole = {one.id: one for one in runs}
    forks: dict[tuple[str, int], list[Relative]] = defaultdict(list)
    for one in runs:
        if one.parent and one.tick is not None:
            forks[one.parent, one.tick].append(one)
    found: dict[tuple[AgentId, AgentId], list[Sample]] = defaultdict(list)
    left: Counter[tuple[AgentId, AgentId]] = Counter()
    for (parent, tick), there in forks.items():
        once = {(one.replicate, one.change): one for one in there} | {(0, ""): whole[parent]}
        controls = [one for (_, change), one in once.items() if not change]
        for agent in sorted({made for _, change in once if (made := _made_to_act(change))}):
            treated = [one for (_, change), one in once.items() if _made_to_act(change) == agent]
            when = {table: at for one in treated for table, at in _forced(frames(one.record), agent)}
            for one in (*controls, *treated):
                for table, at in when.items():
                    for other, act, answer in _answers(frames(one.record), agent, table, at):
                        state = (parent, tick, table)
                        if answer is None:
                            left[agent, other] += 1
                        else:
                            sample = Sample(state, one.replicate, bool(one.change), act, answer)
                            found[agent, other].append(sample)
    return found, left


def measured(found: Sequence[Sample], n_perm: int = DRAWS, left: int = 0, **of: str) -> Measurement:
    """Mean over states, corrected for small samples; tested by shuffling acts among forks of one state and luck."""
    states: dict[State, list[Sample]] = defaultdict(list)
    for one in found:
        states[one.state].append(one)
    bits, flags = [], set[str]()
    for own in states.values():
        counts: dict[Hashable, Counter[Hashable]] = defaultdict(Counter)
        for one in own:
            counts[one.act][one.answer] += 1
        policy: Counter[Hashable] = Counter(one.act for one in own if not one.treated)
        if len(policy) < 2:
            policy = Counter(counts.keys())
            flags.add(UNKNOWN)
        shares = {act: n / policy.total() for act, n in policy.items()}
        bits.append(sampled_influence([(shares, counts)]) or 0.0)
    places = [one.state for one in found]

    def told(acts: Sequence[str], answers: Sequence[str]) -> float:
        joint = Counter(zip(places, acts, answers, strict=True))
        rows, columns = sorted(set(acts)), sorted(set(answers))
        tables = [[[joint[state, act, answer] for answer in columns] for act in rows] for state in states]
        return conditional_information(tables) or 0.0

    strata = [(one.state, one.replicate) for one in found]
    test = stratified([one.act for one in found], [one.answer for one in found], strata, told, n_perm)
    return estimated(
        "influence.causal",
        mean(bits)._replace(n=len(found)),
        "bits",
        denominator="states; forks and untreated runs in them",
        excluded={"no answer": left} if left else {},
        flags=tuple(sorted(flags)),
        null={**test.null, "method": "acts shuffled among forks of one state and luck"},
        of=of,
    )


def _made_to_act(change: str) -> AgentId:
    """Who does something else in a fork with this change and no other; empty for nobody."""
    told = orjson.loads(change or "{}")
    acts = told.get("interventions", []) if list(told) == ["interventions"] else []
    return str(acts[0]["agent"]) if len(acts) == 1 and acts[0].get("do") == "act" else ""


def _forced(read: Frames, agent: AgentId) -> Iterator[tuple[int, int]]:
    """Tables at which an agent is made to act, and from when on."""
    told = read.events.filter(pl.col("kind") == "change").with_columns(
        field("data", "do").alias("do"), field("data", "agent").alias("who")
    )
    rows = told.filter((pl.col("do") == "act") & (pl.col("who") == agent))
    yield from rows.group_by("tbl").agg(pl.col("tick").max()).sort("tbl").iter_rows()


def _answers(read: Frames, agent: AgentId, table: int, at: int) -> Iterator[tuple[AgentId, str, str | None]]:
    """Of each other agent: what was done, and its first decision that was begun when that had been done, if any."""
    rows = read.decisions.filter(pl.col("tbl") == table).sort("seq")
    acts = rows.filter((pl.col("agent") == agent) & (pl.col("tick") >= at)).head(1)
    for seq, tick, act in acts.select("seq", "tick", "answer").iter_rows():
        after = rows.filter((pl.col("seq") > seq) & (pl.col("seen") >= tick) & (pl.col("agent") != agent))
        first = dict(after.unique("agent", keep="first", maintain_order=True).select("agent", "answer").iter_rows())
        for other in read.cast.filter((pl.col("tbl") == table) & (pl.col("agent") != agent))["agent"]:
            yield other, act, first.get(other)
