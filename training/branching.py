"""Trees: trunks that start alike, and branches of them where the policy was least sure. What they share is played once.

A node is a moment of a trunk: all that agents are asked at its tick. Every branch asks it again, from the first call of
each decision on, so that other thoughts come before other answers. How that stands in rows: a branch holds only what is
its own, and the decisions of one seat that follow a node, one in the trunk and one in each branch, share `Row.parent`.
So a mean over them is a mean over what may follow, whoever was asked at the node. Where a seat was not, that is a row
that nobody decided (`how` is empty, nothing is learnt from it); it holds what the seat earned up to its own next
decision, and it counts as a turn.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum, inf
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

from msgspec.structs import replace

from sim.fork import branch
from sim.record.reader import Run
from sim.runs import create
from sim.scenarios.plan import Branch
from sim.types import AgentId
from training.keys import learnable
from training.paths import decisions
from training.rollout import Stage, finished, read
from training.slots import Tree
from training.trajectory import Row

When: TypeAlias = tuple[int, float, int]
"""Tick, place in the log, and what comes first at one place."""
Ended: TypeAlias = Literal["terminated", "truncated"]
_NEVER: When = (2**62, inf, 1)


class Node(NamedTuple):
    """A moment of a trunk that branches."""

    table: int
    tick: int


@dataclass(frozen=True, kw_only=True)
class Told:
    """One episode as the record tells it."""

    name: str
    table: int
    rows: Sequence[Sequence[Row]]
    """Those of each decision, in log order."""
    seen: Sequence[int]
    """Tick at which the turn of each decision was seen."""
    stepped: Sequence[When]
    """When each was stepped."""
    earned: Sequence[tuple[When, Mapping[AgentId, float]]]
    ended: Mapping[AgentId, When]
    """When the world ended a seat's episode."""
    how: Mapping[AgentId, Ended]
    """How each seat's episode ended."""

    @property
    def first(self) -> int | None:
        """Tick of the first question; that of all trunks is one node."""
        return min(self.seen, default=None)

    def nodes(self) -> list[int]:
        """Ticks whose questions can be asked again: nobody decided in no time, so nobody saw what others did there."""
        at_once = {tick for tick, (stepped, _, _) in zip(self.seen, self.stepped, strict=True) if tick == stepped}
        return sorted(set(self.seen) - at_once)

    def seats(self) -> dict[AgentId, str]:
        """Who decides or earns here, and its role where it decides."""
        earning = {seat: "" for _, paid in self.earned for seat in paid}
        return earning | {row.seat: row.role for row, *_ in self.rows}


def play_tree(stage: Stage, tree: Tree, tables: int) -> list[Row]:
    """Trunks at so many tables, then all their branches in a second run; the rows of both. Raises RolloutError."""
    path = create(stage.scenario(tables, tree.size), stage.folder, stage.run)
    finished(path, stage)
    trunks = told(path, read(path, stage))
    nodes = [node for start in range(0, tables, tree.size) for node in chosen(trunks[start : start + tree.size], tree)]
    branches = [Branch(node.table, node.tick, luck + 1) for node in nodes for luck in range(tree.branches)]
    if not branches:
        return grown(trunks, (), ())
    there = branch(path, stage.folder, branches, f"{stage.run}-branches")
    finished(there, stage)
    return grown(trunks, branches, told(there, read(there, stage)))


def told(path: Path, rows: Sequence[Row]) -> list[Told]:
    """The episodes of a run whose rows these are."""
    found = []
    with Run(path) as run:
        start, name = 0, run.manifest().id
        made = [[rows[index] for index in decision] for decision in decisions(rows)]
        for table in range(run.tables):
            taken = list(run.decisions(table))
            own = made[start : start + len(taken)]
            start += len(taken)
            ends = [((tick, seq, 0), *data) for seq, tick, data in run.events("ended", table)]
            cut: dict[AgentId, Ended] = {}
            for _, _, data in run.events("end", table):
                cut |= dict.fromkeys(data["truncated"], "truncated")
            found.append(
                Told(
                    name=f"{name}:{table}",
                    table=table,
                    rows=own,
                    seen=[one.action.seen for one in taken],
                    stepped=[(one.tick, one.seq, 0) for one in taken],
                    earned=[((tick, seq, 0), data) for seq, tick, data in run.events("rewards", table)],
                    ended={agent: when for when, agent, _ in ends},
                    how={**{agent: how for _, agent, how in ends}, **cut},
                )
            )
    return found


# --- where it branches ------------------------------------------------------------------------------------


def chosen(trunks: Sequence[Told], tree: Tree) -> list[Node]:
    """The nodes of one start that branch: those with the highest scores, a node's that of its least sure learner.

    The first question of all trunks is one node, which has a branch for every trunk but one.
    """
    scores: dict[Node, float] = {}
    for trunk in trunks:
        able, first = set(trunk.nodes()), dict[AgentId, float]()
        for made, tick in zip(trunk.rows, trunk.seen, strict=True):
            if said := [each for row in made if learnable(row) for each in row.logprobs]:
                score = -fsum(said) / len(said)
                rise = score - first.setdefault(made[0].seat, score)
                node = Node(trunk.table, tick)
                if tick in able:
                    scores[node] = max(rise if tree.rule == "entropy_rise" else score, scores.get(node, -inf))
    roots = {node for node in scores for trunk in trunks if node == (trunk.table, trunk.first)}
    if roots:
        root = min(roots, key=lambda node: (-scores[node], node))
        scores[root] -= tree.penalty * (len(trunks) - 1)
        scores = {node: score for node, score in scores.items() if node == root or node not in roots}
    return sorted(scores, key=lambda node: (-scores[node], node))[: tree.nodes]


# --- rows --------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Slot:
    """A decision's rows to be: from when on what its seat earns is theirs. None: nobody decided."""

    start: When
    seat: AgentId
    rows: Sequence[Row]
    parent: str
    earned: list[float] = field(default_factory=list)


def grown(trunks: Sequence[Told], branches: Sequence[Branch], made: Sequence[Told]) -> list[Row]:
    """The rows of all trunks, then those of the branches, which were `made` table by table."""
    cuts: defaultdict[int, list[int]] = defaultdict(list)
    seats = {trunk.table: trunk.seats() for trunk in trunks}
    for one, there in zip(branches, made, strict=True):
        seats[one.table] |= {seat: role for seat, role in there.seats().items() if role or seat not in seats[one.table]}
        if one.tick != trunks[one.table].first and one.tick not in cuts[one.table]:
            cuts[one.table].append(one.tick)
    found: list[Row] = []
    before: dict[tuple[int, int], Counter[AgentId]] = {}
    for trunk in trunks:
        slots = _slots(trunk, trunk, seats[trunk.table], cuts[trunk.table])
        for tick in cuts[trunk.table]:
            before[trunk.table, tick] = Counter(slot.seat for slot in slots if slot.start < _after(tick))
        found += _rows(trunk, trunk, slots, Counter(), seats[trunk.table])
    for one, there in zip(branches, made, strict=True):
        trunk, taken = trunks[one.table], before.get((one.table, one.tick), Counter())
        cut = [one.tick] if (one.table, one.tick) in before else []
        slots = _slots(there, trunk, seats[one.table], cut, taken, branch=bool(cut))
        found += _rows(there, trunk, slots, taken, seats[one.table])
    return found


def _after(tick: int) -> When:
    """The moment at which a tick's questions are asked: after all that was earned in it."""
    return tick, inf, 1


def _slots(
    episode: Told,
    trunk: Told,
    seats: Iterable[AgentId],
    cuts: Sequence[int],
    taken: Mapping[AgentId, int] = MappingProxyType({}),
    *,
    branch: bool = False,
) -> list[_Slot]:
    """The rows to be of an episode, in order, with what each earned; of a branch, what follows its only cut.

    `taken`: how many the trunk has before it.
    """
    slots: list[_Slot] = []
    asked: set[tuple[AgentId, int]] = set()
    rooted = trunk.first if trunk.first in trunk.nodes() else None
    for made, seen, stepped in zip(episode.rows, episode.seen, episode.stepped, strict=True):
        seat = made[0].seat
        asked.add((seat, seen))
        if branch and seen < cuts[0]:
            continue
        pending = [tick for tick in cuts if seen < tick < stepped[0]]
        if seen in cuts:
            slots.append(_Slot(_after(seen), seat, made, f"{trunk.name}@{seen}/{seat}"))
        elif seen == rooted:
            slots.append(_Slot(stepped, seat, made, f"{trunk.rows[0][0].group}@{seen}/{seat}"))
        else:
            slots.append(_Slot((min(pending), inf, 0) if pending else stepped, seat, made, ""))
    for tick in cuts:
        for seat in seats:
            if (seat, tick) not in asked and episode.ended.get(seat, _NEVER) > _after(tick):
                slots.append(_Slot(_after(tick), seat, (), f"{trunk.name}@{tick}/{seat}"))
    slots.sort(key=lambda slot: slot.start)
    for seat in seats:
        own = [slot for slot in slots if slot.seat == seat]
        for when, paid in episode.earned:
            place = sum(slot.start < when for slot in own)
            if own and seat in paid and (place or not taken.get(seat)):
                own[max(place - 1, 0)].earned.append(paid[seat])
    return slots


def _rows(
    episode: Told, trunk: Told, slots: Sequence[_Slot], taken: Mapping[AgentId, int], roles: Mapping[AgentId, str]
) -> list[Row]:
    """The slots as rows; `taken` as in `_slots`."""
    last = {slot.seat: slot for slot in slots}
    turns = Counter(taken)
    found = []
    for slot in slots:
        same = trunk.rows[0][0]
        nobody = Row(episode=episode.name, seat=slot.seat, role=roles[slot.seat], how="", trained=False)
        found += [
            replace(
                row,
                group=same.group,
                task=same.task,
                family=same.family,
                parent=slot.parent,
                turn=turns[slot.seat],
                reward=fsum(slot.earned),
                ended=episode.how.get(slot.seat, "") if last[slot.seat] is slot else "",
            )
            for row in slot.rows or (nobody,)
        ]
        turns[slot.seat] += 1
    return found
