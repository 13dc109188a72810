"""Filters: which rows an update learns from. What is dropped is named, each row with the reason."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import ceil, fsum, sqrt
from typing import Annotated, Literal, TypeAlias

from msgspec import Struct
from pydantic import Field, model_validator

from sim.scenarios.strict import Strict
from training.baselines import mean
from training.keys import key_of, learnable
from training.paths import trajectories
from training.slots import Count, Share
from training.trajectory import Row


class ZeroAdvantage(Strict):
    """Drops rows whose advantages are all 0."""

    kind: Literal["zero_advantage"]


class VarTopP(Strict):
    """Keeps the groups whose returns vary most, until they hold the share p of the sum of all groups' std (RAGEN-2).

    They are added, the largest std first, until Σ ≥ p·Σ_all − eps; a group with std 0 is never kept.
    """

    kind: Literal["var_top_p"]
    p: Share = 0.9
    eps: Annotated[float, Field(ge=0)] = 0.01
    ddof: Literal[0, 1] = 1


class TopK(Strict):
    """Keeps the share of groups, rounded up, whose returns vary most (StarPO-S)."""

    kind: Literal["top_k"]
    share: Share = 0.25
    ddof: Literal[0, 1] = 1


class RangeGate(Strict):
    """Keeps groups whose mean return lies strictly between two bounds (DAPO: neither all failed nor all solved)."""

    kind: Literal["range_gate"]
    lo: float = 0.0
    hi: float = 1.0

    @model_validator(mode="after")
    def _ordered(self) -> RangeGate:
        if self.lo >= self.hi:
            raise ValueError(f"lo {self.lo} is not below hi {self.hi}")
        return self


class Overlong(Strict):
    """Drops trajectories that were truncated, and rows of more tokens than `tokens`, where that is given."""

    kind: Literal["overlong"]
    tokens: Count | None = None


class BestK(Strict):
    """Keeps the k trajectories with the highest returns of each group; where regret is the reward, of least regret."""

    kind: Literal["best_k"]
    k: Count


class AtLeast(Strict):
    """Keeps trajectories whose return is at least this: the successes."""

    kind: Literal["at_least"]
    value: float


class Stale(Strict):
    """Drops groups with a row whose policy is more than `most` versions older than the newest."""

    kind: Literal["stale"]
    most: Annotated[int, Field(ge=0)]


Filter: TypeAlias = Annotated[
    ZeroAdvantage | VarTopP | TopK | RangeGate | Overlong | BestK | AtLeast | Stale, Field(discriminator="kind")
]


class Dropped(Struct, frozen=True):
    """A row that is not learnt from."""

    index: int
    reason: str
    """The filter's kind and what it saw; `frozen`, `empty`, or how an invalid answer came about."""


class Kept(Struct, frozen=True, kw_only=True):
    """What a filter leaves; together all rows, each once."""

    indices: tuple[int, ...]
    dropped: tuple[Dropped, ...]


def select(
    filters: Sequence[Filter],
    rows: Sequence[Row],
    rewards: Sequence[float] | None = None,
    advantages: Sequence[Sequence[float]] | None = None,
    versions: Mapping[str, int] | None = None,
) -> Kept:
    """The rows that pass all filters in order, after those that nothing can be learnt from.

    `rewards` are what returns are made of (the rows' own where not given), `versions` the newest of each policy.
    Raises ValueError where a filter lacks what it reads.
    """
    paid = [row.reward for row in rows] if rewards is None else list(rewards)
    alive = set(range(len(rows)))
    dropped: list[Dropped] = []
    for index, row in enumerate(rows):
        if not learnable(row):
            reason = "frozen" if not row.trained else row.how if not row.valid else "empty"
            dropped.append(Dropped(index, reason))
            alive.discard(index)
    for one in filters:
        left = sorted(alive)
        reasons = _reasons(one, rows, left, paid, advantages, versions)
        for index in left:
            if index in reasons:
                dropped.append(Dropped(index, f"{one.kind}: {reasons[index]}"))
                alive.discard(index)
    return Kept(indices=tuple(sorted(alive)), dropped=tuple(sorted(dropped, key=lambda each: each.index)))


def groups_of(
    rows: Sequence[Row], indices: Sequence[int] | None = None, rewards: Sequence[float] | None = None
) -> dict[str, dict[tuple[int, ...], float]]:
    """Return of every trajectory with a learnable row, by group; a trajectory is named by all its rows' indices.

    With `indices`, only trajectories that have one of them count; their returns are whole all the same.
    """
    paid = [row.reward for row in rows] if rewards is None else rewards
    alive = {index for index, row in enumerate(rows) if learnable(row)} if indices is None else set(indices)
    groups: defaultdict[str, dict[tuple[int, ...], float]] = defaultdict(dict)
    for path in trajectories(rows):
        members = tuple(index for decision in path for index in decision)
        if alive.intersection(members):
            row = rows[members[0]]
            groups[key_of(row, ("group",), row.episode)][members] = fsum(paid[decision[0]] for decision in path)
    return dict(groups)


def spread(values: Sequence[float], ddof: int) -> float:
    """Standard deviation with n − ddof in its denominator; 0 for fewer than two values."""
    if len(values) < 2:
        return 0.0
    average = mean(values)
    return sqrt(fsum((value - average) ** 2 for value in values) / (len(values) - ddof))


def _reasons(
    one: Filter,
    rows: Sequence[Row],
    left: Sequence[int],
    rewards: Sequence[float],
    advantages: Sequence[Sequence[float]] | None,
    versions: Mapping[str, int] | None,
) -> dict[int, str]:
    """Why rows fail a filter, by index; rows that are gone already may be among them."""
    groups = groups_of(rows, left, rewards)
    match one:
        case ZeroAdvantage():
            if advantages is None:
                raise ValueError("zero_advantage needs the advantages")
            return {index: "all 0" for index in left if not any(advantages[index])}
        case VarTopP() | TopK():
            stds = {group: spread(list(units.values()), one.ddof) for group, units in groups.items()}
            keep = _varying(one, stds)
            return _whole({group: f"std {stds[group]:.4g}" for group in groups if group not in keep}, groups)
        case RangeGate():
            means = {group: mean(list(units.values())) for group, units in groups.items()}
            outside = {group: f"mean {each:.4g}" for group, each in means.items() if not one.lo < each < one.hi}
            return _whole(outside, groups)
        case Overlong():
            cut = {
                i: "truncated"
                for path in _paths(groups)
                for i in path
                if any(rows[j].ended == "truncated" for j in path)
            }
            long = {i: f"{len(rows[i].ids)} tokens" for i in left if one.tokens and len(rows[i].ids) > one.tokens}
            return long | cut
        case BestK():
            found: dict[int, str] = {}
            for units in groups.values():
                for path in sorted(units, key=lambda path: (-units[path], path))[one.k :]:
                    found |= dict.fromkeys(path, f"return {units[path]:.4g}")
            return found
        case AtLeast():
            returns = {path: number for units in groups.values() for path, number in units.items()}
            return {i: f"return {returns[path]:.4g}" for path in returns if returns[path] < one.value for i in path}
        case Stale():
            return _stale(one, rows, groups, versions)


def _paths(groups: Mapping[str, Mapping[tuple[int, ...], float]]) -> list[tuple[int, ...]]:
    return [path for units in groups.values() for path in units]


def _whole(reasons: Mapping[str, str], groups: Mapping[str, Mapping[tuple[int, ...], float]]) -> dict[int, str]:
    return {index: reason for group, reason in reasons.items() for path in groups[group] for index in path}


def _varying(one: VarTopP | TopK, stds: Mapping[str, float]) -> set[str]:
    """The groups that vary most; of equals, those first in order."""
    ranked = sorted(stds, key=lambda group: (-stds[group], group))
    if isinstance(one, TopK):
        return set(ranked[: ceil(one.share * len(ranked))])
    wanted = one.p * fsum(stds.values()) - one.eps
    keep: set[str] = set()
    for group in ranked:
        if stds[group] > 0 and (not keep or fsum(stds[each] for each in keep) < wanted):
            keep.add(group)
    return keep


def _stale(
    one: Stale,
    rows: Sequence[Row],
    groups: Mapping[str, Mapping[tuple[int, ...], float]],
    versions: Mapping[str, int] | None,
) -> dict[int, str]:
    if versions is None:
        raise ValueError("stale needs the newest version of each policy")
    reasons: dict[str, str] = {}
    for group, units in groups.items():
        lags = [_lag(rows[index].policy, versions) for path in units for index in path if learnable(rows[index])]
        if max(lags, default=0) > one.most:
            reasons[group] = f"{max(lags)} versions old"
    return _whole(reasons, groups)


def _lag(policy: str, versions: Mapping[str, int]) -> int:
    """Versions between an adapter `name@v` and the newest; 0 for the base model, which has no version."""
    name, at, version = policy.partition("@")
    if not at:
        return 0
    if name not in versions:
        raise ValueError(f"the newest version of {name!r} is not given")
    return versions[name] - int(version)
