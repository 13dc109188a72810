"""Credit: advantages as a sum of terms c·(G − b)/s, each with its key, unit, baseline, scale and span.

Rows that the learner cannot learn from (frozen agents', invalid ones) count in returns; they enter no statistic, and
their advantage is 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum
from typing import Annotated, Literal, TypeAlias

from msgspec import Struct
from pydantic import Field, field_validator, model_validator

from sim.scenarios.located import nearest
from sim.scenarios.strict import Many, Strict
from training import options
from training.baselines import Baseline, ByOption, Compared, Critic, One, Scale, keyed_baseline
from training.extras import NO_EXTRAS, Extras, Values
from training.keys import KEYS, key_of, key_value, learnable
from training.option_baseline import Memory, corrected, met
from training.paths import Trajectory, totals, trajectories
from training.returns import GAE, SMDP, BiLevel, Q, Returns, by_decision, decision_value, gains
from training.returns import Tree as TreeReturn
from training.reward import Rewards
from training.schedule import Weight, at
from training.slots import Share
from training.trajectory import Kind, Row


class All(Strict):
    """Every sampled token of the row whose credit it is; a row is a turn."""

    kind: Literal["all"]


class Tag(Strict):
    """The row's tokens in spans of these kinds only."""

    kind: Literal["tag"]
    tags: Many[Kind] = Field(min_length=1)


class Suffix(Strict):
    """Every token of the row; it also gets the credit of the trajectory's later decisions: Σ_{l≥k} γ^{l−k} A_l."""

    kind: Literal["suffix"]
    gamma: Share = 1.0


Span: TypeAlias = Annotated[All | Tag | Suffix, Field(discriminator="kind")]


class Term(Strict):
    """One term of the credit."""

    weight: Weight = 1.0
    """c."""
    rewards: Many[str] = ()
    """Reward sources that G is made of, by kind; empty: the sum of all."""
    only: dict[str, str] = Field(default_factory=dict)
    """Rows that it is about, by the value of a key; `role: solver`."""
    returns: Returns
    """G."""
    key: Many[str] = ()
    """What rows share that are compared."""
    unit: Literal["row", "turn", "episode"] = "episode"
    """What counts once in a statistic: a row, a decision with its G, or a trajectory with the G of its first decision
    (of a tree: with the sum of its own rewards)."""
    baseline: Baseline
    """b."""
    scale: Scale = One(kind="one")
    """s."""
    span: Span = All(kind="all")
    """Whose tokens get it."""

    @field_validator("key")
    @classmethod
    def _known(cls, key: tuple[str, ...]) -> tuple[str, ...]:
        for name in key:
            if name not in KEYS:
                raise ValueError(f"{name!r} is nothing that rows are keyed by; {nearest(name, KEYS)}")
        return key

    @field_validator("only")
    @classmethod
    def _known_only(cls, only: dict[str, str]) -> dict[str, str]:
        cls._known(tuple(only))
        return only

    @model_validator(mode="after")
    def _fits(self) -> Term:
        if isinstance(self.baseline, Critic) and self.scale.kind != "one":
            raise ValueError(f"scale {self.scale.kind} does not go with the critic's baseline; expected one")
        if isinstance(self.baseline, ByOption):
            if not isinstance(self.returns, Q):
                raise ValueError(f"the baseline option needs returns q, not {self.returns.kind}")
            if self.unit != "turn" or self.scale.kind != "one":
                raise ValueError("the baseline option counts decisions, unscaled; expected unit turn and scale one")
        if isinstance(self.returns, SMDP) and not isinstance(self.baseline, Critic):
            raise ValueError(f"returns smdp need the baseline critic, not {self.baseline.kind}")
        if isinstance(self.returns, GAE) and self.returns.level == "token" and not isinstance(self.baseline, Critic):
            raise ValueError(f"returns by token need the baseline critic, not {self.baseline.kind}")
        return self

    @property
    def head(self) -> str:
        """The critic that it reads; empty: none."""
        if isinstance(self.returns, GAE | BiLevel | SMDP):
            return self.returns.head
        return "value" if isinstance(self.baseline, Critic) else ""


class Estimator(Struct, frozen=True, kw_only=True):
    """What credit remembers from one update to the next; a checkpoint holds it."""

    ema: Mapping[str, float] = {}
    """Moving baselines, by the term's number and the key."""
    options: Mapping[str, Memory] = {}
    """Baselines of options, by the term's number and the key."""


START = Estimator()


class Credit(Struct, frozen=True, kw_only=True):
    """What credit comes to."""

    tokens: tuple[tuple[float, ...], ...]
    """Advantage of every one of a row's `ids`."""
    mask: tuple[tuple[bool, ...], ...]
    """Which of them are learnt from; the others' advantage is 0."""
    options: tuple[tuple[float, ...], ...]
    """Advantage of every one of a row's `options`; empty without credit for all legal options."""
    targets: Mapping[str, tuple[tuple[float, ...], ...]]
    """By critic: G of each row, as many numbers as the critic has values there; empty where it has no target."""
    state: Estimator
    """To be handed to the next call."""


def credit(
    rows: Sequence[Row],
    rewards: Rewards,
    terms: Sequence[Term],
    extras: Extras = NO_EXTRAS,
    state: Estimator = START,
    update: int = 0,
) -> Credit:
    """Advantages of the rows, in any order of episodes. Raises ValueError where a term lacks what it reads."""
    paths = trajectories(rows)
    tokens = [[0.0] * len(row.ids) for row in rows]
    mask = [[False] * len(row.ids) for row in rows]
    legal: list[tuple[float, ...]] = [()] * len(rows)
    targets: dict[str, tuple[tuple[float, ...], ...]] = {}
    ema, memories = dict(state.ema), dict(state.options)
    for number, term in enumerate(terms):
        earned = rewards.total(term.rewards)
        kinds = term.span.tags if isinstance(term.span, Tag) else ()
        found = gains(term.returns, rows, earned, extras.values, paths, kinds)
        about = [all(key_value(row, name) == value for name, value in term.only.items()) for row in rows]
        found = [each if here else () for each, here in zip(found, about, strict=True)]
        weight = at(term.weight, update)
        if isinstance(term.returns, Q):
            known = rewards.known(term.rewards)
            rest = _rest(rows, found, known)
            each = _all_legal(number, term, rows, paths, rest, earned, known, extras, ema, memories)
            if isinstance(term.baseline, Critic):
                targets[term.head] = tuple(_target(extras.values, term.head, rest[i], i) for i in range(len(rows)))
            for index, advantages in each.items():
                legal[index] = tuple(weight * advantage for advantage in advantages)
                found[index] = (advantages[options.chosen(rows[index])],)
            found = [value if index in each else () for index, value in enumerate(found)]
        elif isinstance(term.baseline, Critic):
            if kinds:  # a critic learns the states that it is read in
                found = [each if row.has(*kinds) else () for row, each in zip(rows, found, strict=True)]
            targets[term.head] = tuple(_target(extras.values, term.head, found[i], i) for i in range(len(rows)))
            found = _above_critic(term, rows, paths, found, extras.values, kinds)
        else:
            compared = _compared(number, term, rows, paths, found, earned)
            advantages, ema = keyed_baseline([one for _, one in compared], term.baseline, term.scale, ema)
            for (index, _), advantage in zip(compared, advantages, strict=True):
                found[index] = (advantage,)
        if isinstance(term.span, Suffix):
            _accumulate(found, paths, term.span.gamma)
        _assign(tokens, mask, rows, found, term.span, weight)
    return Credit(
        tokens=tuple(map(tuple, tokens)),
        mask=tuple(map(tuple, mask)),
        options=tuple(legal),
        targets=targets,
        state=Estimator(ema=ema, options=memories),
    )


# --- from rows to what is compared, and back to tokens --------------------------------------------------------


def _compared(
    number: int,
    term: Term,
    rows: Sequence[Row],
    paths: Sequence[Trajectory],
    found: Sequence[tuple[float, ...]],
    earned: Sequence[float],
) -> list[tuple[int, Compared]]:
    """The rows that the return reaches, in episode order, each with what its unit puts into the statistics."""
    compared: list[tuple[int, Compared]] = []
    for place, (path, total) in enumerate(zip(paths, totals(paths, earned), strict=True)):
        counted = {index for decision in path for index in decision if learnable(rows[index])}
        first = next((found[index] for decision in path for index in decision if found[index]), (0.0,))
        whole = total if isinstance(term.returns, TreeReturn) else first[0]
        for step, decision in enumerate(path):
            for index in decision:
                if not found[index]:
                    continue
                unit = {"row": (place, step, index), "turn": (place, step), "episode": (place,)}[term.unit]
                alone = f"{place}" if term.unit == "episode" else f"{place} {step}"
                one = Compared(
                    value=found[index][0],
                    stat=whole if term.unit == "episode" else found[index][0],
                    key=f"{number} {key_of(rows[index], term.key, alone)}",
                    unit=unit,
                    family=rows[index].family,
                    counts=bool(counted) if term.unit == "episode" else index in counted,
                )
                compared.append((index, one))
    return compared


def _all_legal(
    number: int,
    term: Term,
    rows: Sequence[Row],
    paths: Sequence[Trajectory],
    rest: Sequence[tuple[float, ...]],
    earned: Sequence[float],
    own: Sequence[Sequence[float]],
    extras: Extras,
    ema: dict[str, float],
    memories: dict[str, Memory],
) -> dict[int, list[float]]:
    """Q(a) − V of every legal option, V = Σ_a π(a)Q(a); moves the baselines that it reads.

    Known values come from `extras.q`. Else Q(a) = own(a) + b(a) + [a = sampled]·(G − own(a) − b(a))/μ(a): unbiased for
    any b that does not depend on what was sampled here. own is the part of the reward that is known for every option
    (the anchor's term), `rest` is G − own(a) of the sampled one, μ the behaviour, π the policy without exploration. A
    baseline that all options share cancels in Q − V but for the sampled one.
    """
    legal = [index for index, row in enumerate(rows) if learnable(row) and row.options and rest[index]]
    if extras.q:
        return {index: _minus_value(extras.q[index], options.policy(rows[index])) for index in legal}
    compared = _compared(number, term, rows, paths, rest, earned)
    below: dict[int, list[float]] = {}
    if isinstance(term.baseline, Critic):
        above = {index: _minus(extras.values, term.head, rest[index], index)[0] for index in legal}
    elif isinstance(term.baseline, ByOption):
        above = {index: rest[index][0] for index in legal}
        mine = {index: one for index, one in compared if index in above}
        below = met(term.key, term.baseline.keep, rows, mine, memories)
    else:
        advantages, after = keyed_baseline([one for _, one in compared], term.baseline, term.scale, ema)
        above = {index: advantage for (index, _), advantage in zip(compared, advantages, strict=True)}
        ema.update(after)
    result: dict[int, list[float]] = {}
    for index in legal:
        row = rows[index]
        taken, even = options.chosen(row), [0.0] * len(row.options)
        chance = options.behaviour(row)[taken]
        values = corrected(own[index] or even, below.get(index, even), taken, above[index], chance)
        result[index] = _minus_value(values, options.policy(row))
    return result


def _rest(
    rows: Sequence[Row], found: Sequence[tuple[float, ...]], own: Sequence[Sequence[float]]
) -> list[tuple[float, ...]]:
    """Each row's return without what is known for every option."""
    paid = [own[index][options.chosen(row)] if row.options and own[index] else 0.0 for index, row in enumerate(rows)]
    return [(value[0] - paid[index],) if value else () for index, value in enumerate(found)]


def _minus_value(values: Sequence[float], policy: Sequence[float]) -> list[float]:
    value = fsum(share * each for share, each in zip(policy, values, strict=True))
    return [each - value for each in values]


def _critic(values: Mapping[str, Values], head: str, index: int) -> tuple[float, ...]:
    if head not in values:
        raise ValueError(f"no values of the critic {head!r}; there are {sorted(values) or 'none'}")
    return values[head].rows[index]


def _target(values: Mapping[str, Values], head: str, found: tuple[float, ...], index: int) -> tuple[float, ...]:
    return found * len(_critic(values, head, index)) if len(found) == 1 else found


def _minus(values: Mapping[str, Values], head: str, found: tuple[float, ...], index: int) -> tuple[float, ...]:
    if not found:
        return ()
    wide = _target(values, head, found, index)
    return tuple(gain - value for gain, value in zip(wide, _critic(values, head, index), strict=True))


def _above_critic(
    term: Term,
    rows: Sequence[Row],
    paths: Sequence[Trajectory],
    found: Sequence[tuple[float, ...]],
    values: Mapping[str, Values],
    kinds: Sequence[str],
) -> list[tuple[float, ...]]:
    """G − V, V being that of the decision where G is made of such values, else that of each token."""
    if not by_decision(term.returns):
        return [_minus(values, term.head, each, index) for index, each in enumerate(found)]
    assert isinstance(term.returns, GAE | SMDP)
    above: list[tuple[float, ...]] = [()] * len(rows)
    for decision in (decision for path in paths for decision in path):
        for index in decision:
            if found[index]:
                above[index] = (found[index][0] - decision_value(term.returns, values, rows, decision, kinds),)
    return above


def _accumulate(found: list[tuple[float, ...]], paths: Sequence[Trajectory], gamma: float) -> None:
    for path in paths:
        later = 0.0
        for decision in reversed(path):
            later = fsum(found[decision[0]]) + gamma * later
            for index in decision:
                found[index] = (later,) if found[index] else ()


def _assign(
    tokens: list[list[float]],
    mask: list[list[bool]],
    rows: Sequence[Row],
    found: Sequence[tuple[float, ...]],
    span: Span,
    weight: float,
) -> None:
    for index, (row, values) in enumerate(zip(rows, found, strict=True)):
        if not values or not learnable(row):
            continue
        wide = values * len(row.ids) if len(values) == 1 else values
        inside: set[int] = set(range(len(row.ids)))
        if isinstance(span, Tag):
            inside = {place for one in row.spans if one.kind in span.tags for place in range(one.start, one.stop)}
        for place in inside:
            tokens[index][place] += weight * wide[place]
            mask[index][place] = True
