"""G: what a decision was followed by, in eight readings.

Nothing leaks across seats, episodes or an end. Discounts count decisions, never tokens. A decision may stand in several
rows, such as a thought and its answer; it counts once.

Where a critic has one value a decision, it is read before the first token whose credit it is for: what a baseline knows
of the tokens that it is subtracted for would bias their gradient, and what was said before them it may know.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from math import fsum
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from sim.scenarios.strict import Strict
from training.extras import Values
from training.keys import learnable
from training.paths import Decision, Trajectory, beginning, rewards_of
from training.slots import Share
from training.trajectory import Row

Gains: TypeAlias = list[tuple[float, ...]]
"""Per row: one number, or one for each of its tokens, or none (the return does not reach it)."""


class Episode(Strict):
    """Sum of the trajectory's rewards, at each of its decisions."""

    kind: Literal["ep"]


class RewardToGo(Strict):
    """G_k = Σ_{l≥k} γ^{l−k} r_l; γ = 0 leaves the decision's own reward."""

    kind: Literal["rtg"]
    gamma: Share = 1.0


class GAE(Strict):
    """λ-return G = A + V with δ_k = r_k + γV_{k+1} − V_k and A_k = δ_k + γλA_{k+1}; of a decision all tokens get A_k.

    At level `token`, V and λ go by token, through all of a decision's rows; the reward stands on its last one, and γ
    counts between decisions.
    """

    kind: Literal["gae"]
    gamma: Share = 1.0
    lam: Share = 1.0
    level: Literal["turn", "token"] = "turn"
    head: str = "value"
    """The critic."""


class BiLevel(Strict):
    """GAE over decisions with the critic's values at their last tokens; G is the decision's λ-return (RAGEN).

    The reference then runs GAE with γ = λ = 1 over the decision's tokens, which is G − V_t: a critic's baseline.
    """

    kind: Literal["bi"]
    gamma: Share = 0.95
    lam: Share = 1.0
    head: str = "value"


class SMDP(Strict):
    """Returns over segments, each opened by a decision with a `subgoal` span, and by the first (HiPER).

    low: GAE over decisions inside a segment, its last one followed by V_high of the next segment. high: GAE over
    segments of d decisions with γ^d, at the rows that open them. termination: discounted rewards to the segment's
    end, then V_high of the next. Critics are read where answers, subgoals and switches begin.
    """

    kind: Literal["smdp"]
    level: Literal["low", "high", "termination"]
    gamma: Share = 0.95
    lam: Share = 0.95
    """λ of decisions (low) or of segments (high)."""
    head: str
    """The critic of this level."""
    high: str = "high"
    """The critic of segments."""


class CrossEpisode(Strict):
    """G of episode n: Σ_l γ^{l−k} r_l in it, plus Σ_{m>n} γ_traj^{m−n} of the whole return of episode m (LaMer)."""

    kind: Literal["xep"]
    gamma: Share = 1.0
    gamma_traj: Share = 0.6


class Tree(Strict):
    """G = r + γ·(mean of G over the decisions sampled at the next node) (AT²PO).

    Rows sampled at one node share `parent` and `turn`; a branch holds only its own rows.
    """

    kind: Literal["tree"]
    gamma: Share = 1.0


class Q(Strict):
    """Discounted rewards to go, from which credit makes a value for every legal option."""

    kind: Literal["q"]
    gamma: Share = 1.0


_ABOUT = {"low": ("action",), "high": ("subgoal",), "termination": ("switch",)}
"""What the levels of SMDP are about."""

Returns: TypeAlias = Annotated[
    Episode | RewardToGo | GAE | BiLevel | SMDP | CrossEpisode | Tree | Q, Field(discriminator="kind")
]


# --- the readings -------------------------------------------------------------------------------------


def discounted(rewards: Sequence[float], gamma: float, after: float = 0.0) -> list[float]:
    """G_k = r_k + γG_{k+1}, the last followed by `after`."""
    gains, following = [0.0] * len(rewards), after
    for index in reversed(range(len(rewards))):
        following = gains[index] = rewards[index] + gamma * following
    return gains


def lambda_returns(
    rewards: Sequence[float], values: Sequence[float], after: float, gammas: Sequence[float], lam: float
) -> list[float]:
    """G_k = A_k + V_k with A_k = r_k + γ_k V_{k+1} − V_k + γ_k λ A_{k+1} (GAE); `after` is V after the last."""
    gains, next_value, advantage = [0.0] * len(rewards), after, 0.0
    for index in reversed(range(len(rewards))):
        gamma = gammas[index]
        advantage = rewards[index] + gamma * next_value - values[index] + gamma * lam * advantage
        gains[index] = advantage + values[index]
        next_value = values[index]
    return gains


def gains(
    returns: Returns,
    rows: Sequence[Row],
    rewards: Sequence[float],
    values: Mapping[str, Values],
    paths: Sequence[Trajectory],
    kinds: Collection[str] = (),
) -> Gains:
    """G of every row. Raises ValueError where values are missing, or those after a truncated trajectory.

    `kinds`: what the tokens are whose credit it is; empty: all.
    """
    found: Gains = [()] * len(rows)
    if isinstance(returns, CrossEpisode):
        _spread(found, paths, _cross_episode(returns, rows, rewards, paths))
        return found
    if isinstance(returns, Tree):
        _spread(found, paths, _tree(returns, rows, rewards, paths))
        return found
    for path in paths:
        earned = rewards_of(path, rewards)
        frozen = not any(learnable(rows[index]) for decision in path for index in decision)
        if isinstance(returns, GAE | BiLevel | SMDP) and frozen:
            continue  # no critic knows what others' states are worth
        if isinstance(returns, Episode):
            _spread(found, [path], [[fsum(earned)] * len(path)])
        elif isinstance(returns, RewardToGo | Q):
            _spread(found, [path], [discounted(earned, returns.gamma)])
        elif isinstance(returns, SMDP):
            _segments(found, returns, rows, earned, values, path)
        elif returns.kind == "gae" and returns.level == "token":
            _tokens(found, returns, rows, earned, values, path)
        else:
            if returns.kind == "gae":
                critic = [decision_value(returns, values, rows, decision, kinds) for decision in path]
            else:
                critic = [_at(values, returns.head, decision[-1])[-1] for decision in path]
            after = _after(values, returns.head, rows, path)
            _spread(found, [path], [lambda_returns(earned, critic, after, [returns.gamma] * len(path), returns.lam)])
    return found


def by_decision(returns: Returns) -> bool:
    """Whether it is made of a critic's values of which each decision has one."""
    return isinstance(returns, SMDP) or (isinstance(returns, GAE) and returns.level == "turn")


def decision_value(
    returns: GAE | SMDP,
    values: Mapping[str, Values],
    rows: Sequence[Row],
    decision: Decision,
    kinds: Collection[str] = (),
) -> float:
    """The one value that a decision has."""
    about = _ABOUT[returns.level] if isinstance(returns, SMDP) else kinds
    return _before(values, returns.head, rows, decision, about)


def _before(
    values: Mapping[str, Values], head: str, rows: Sequence[Row], decision: Decision, kinds: Collection[str]
) -> float:
    """V before the first of a decision's tokens of these kinds."""
    index, token = beginning(rows, decision, kinds)
    here = _at(values, head, index)
    return here[min(token, len(here) - 1)]


def _spread(found: Gains, paths: Sequence[Trajectory], numbers: Sequence[Sequence[float]]) -> None:
    for path, each in zip(paths, numbers, strict=True):
        for decision, number in zip(path, each, strict=True):
            for index in decision:
                found[index] = (number,)


def _at(values: Mapping[str, Values], head: str, index: int) -> tuple[float, ...]:
    if head not in values:
        raise ValueError(f"no values of the critic {head!r}; there are {sorted(values) or 'none'}")
    if not values[head].rows[index]:
        raise ValueError(f"row {index} has no value of the critic {head!r}")
    return values[head].rows[index]


def _after(values: Mapping[str, Values], head: str, rows: Sequence[Row], path: Trajectory) -> float:
    """Value of what follows a trajectory: 0 where it terminated, the critic's where it was cut short."""
    last = path[-1][-1]
    if rows[last].ended == "terminated":
        return 0.0
    if head not in values or not values[head].after:
        raise ValueError(
            f"row {last} ends a trajectory that did not terminate: the critic {head!r} must say its value after"
        )
    return values[head].after[last]


def _tokens(
    found: Gains, returns: GAE, rows: Sequence[Row], earned: list[float], values: Mapping[str, Values], path: Trajectory
) -> None:
    rewards: list[float] = []
    critic: list[float] = []
    gammas: list[float] = []
    for decision, reward in zip(path, earned, strict=True):
        here = [each for index in decision for each in _at(values, returns.head, index)]
        critic += here
        rewards += [0.0] * (len(here) - 1) + [reward]
        gammas += [1.0] * (len(here) - 1) + [returns.gamma]
    flat = lambda_returns(rewards, critic, _after(values, returns.head, rows, path), gammas, returns.lam)
    start = 0
    for decision in path:
        for index in decision:
            stop = start + len(values[returns.head].rows[index])
            found[index] = tuple(flat[start:stop])
            start = stop


def _segments(
    found: Gains,
    returns: SMDP,
    rows: Sequence[Row],
    earned: list[float],
    values: Mapping[str, Values],
    path: Trajectory,
) -> None:
    opens = [
        place
        for place, decision in enumerate(path)
        if place == 0 or any(rows[index].has("subgoal") for index in decision)
    ]
    closes = [*opens[1:], len(path)]
    high = [_before(values, returns.high, rows, path[start], _ABOUT["high"]) for start in opens]
    following = [*high[1:], _after(values, returns.high, rows, path)]
    if returns.level == "high":
        lengths = [stop - start for start, stop in zip(opens, closes, strict=True)]
        whole = [discounted(earned[start:stop], returns.gamma)[0] for start, stop in zip(opens, closes, strict=True)]
        gammas = [returns.gamma**length for length in lengths]
        numbers = lambda_returns(whole, high, following[-1], gammas, returns.lam)
        _spread(found, [tuple(path[start] for start in opens)], [numbers])
        return
    for start, stop, after in zip(opens, closes, following, strict=True):
        inside = earned[start:stop]
        if returns.level == "termination":
            numbers = discounted(inside, returns.gamma, after)
        else:
            critic = [decision_value(returns, values, rows, decision) for decision in path[start:stop]]
            numbers = lambda_returns(inside, critic, after, [returns.gamma] * len(inside), returns.lam)
        _spread(found, [path[start:stop]], [numbers])


def _cross_episode(
    returns: CrossEpisode, rows: Sequence[Row], rewards: Sequence[float], paths: Sequence[Trajectory]
) -> list[list[float]]:
    numbers = [discounted(rewards_of(path, rewards), returns.gamma) for path in paths]
    trials: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for place, path in enumerate(paths):
        row = rows[path[0][0]]
        trials[row.trial or f"alone {row.episode}", row.seat].append(place)
    for places in trials.values():
        places.sort(key=lambda place: rows[paths[place][0][0]].attempt)
        later = 0.0
        for place in reversed(places):
            whole = numbers[place][0]
            numbers[place] = [number + later for number in numbers[place]]
            later = returns.gamma_traj * (whole + later)
    return numbers


def _tree(
    returns: Tree, rows: Sequence[Row], rewards: Sequence[float], paths: Sequence[Trajectory]
) -> list[list[float]]:
    numbers = [[0.0] * len(path) for path in paths]
    nodes: defaultdict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for place, path in enumerate(paths):
        for step, decision in enumerate(path):
            row = rows[decision[0]]
            nodes[row.seat, row.parent or f"alone {place} {step}"].append((place, step))
    means: dict[tuple[str, str], float] = {}
    turns = {node: {rows[paths[place][step][0]].turn for place, step in here} for node, here in nodes.items()}
    if mixed := [parent for (_, parent), found in turns.items() if len(found) > 1]:
        raise ValueError(f"rows at the node {mixed[0]!r} have different turns")
    for node in sorted(nodes, key=lambda node: -min(turns[node])):
        for place, step in nodes[node]:
            path = paths[place]
            earned = rewards_of(path, rewards)[step]
            if step + 1 < len(path):
                row = rows[path[step + 1][0]]
                earned += returns.gamma * means[row.seat, row.parent or f"alone {place} {step + 1}"]
            numbers[place][step] = earned
        means[node] = fsum(numbers[place][step] for place, step in nodes[node]) / len(nodes[node])
    return numbers
