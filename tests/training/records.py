"""Tiny records whose advantages can be worked out by hand, each with what the recipes read beside it."""

from __future__ import annotations

from math import log

from msgspec.structs import replace

from training.extras import Extras, Values
from training.trajectory import Row, Span


def game() -> list[Row]:
    """Two episodes of group g and one, cut short, of group h; seat A first, seat B second.

    | index | episode | seat | turn | reward |                                     |
    |-------|---------|------|------|--------|-------------------------------------|
    | 0     | e0      | A    | 0    | 2      | two tokens                          |
    | 1     | e0      | B    | 0    | 1      |                                     |
    | 2     | e0      | A    | 1    | 6      | three tokens: think, action, action |
    | 3     | e0      | B    | 1    | 3      | invalid                             |
    | 4, 5  | e1      | A    | 0    | −1     | one decision in two rows            |
    | 6     | e1      | B    | 0    | −4     |                                     |
    | 7     | e1      | A    | 1    | −3     |                                     |
    | 8     | e2      | A    | 0    | 5      | truncated, alone in its group       |
    | 9     | e2      | B    | 0    | −5     | a frozen policy's                   |

    Returns: e0 A 8, e0 B 4, e1 A −4, e1 B −4, e2 A 5. Of the first four: mean 1, deviations 7, 3, −5, −5, their squares
    108, so the standard deviation with n − 1 is 6; with roles apart it is 6√2 (A) and 4√2 (B).
    """

    def row(episode: str, seat: str, turn: int, reward: float, ids: tuple[int, ...], key: str, ended: str = "") -> Row:
        version = {"e0": 5, "e1": 4, "e2": 1}[episode]
        group = "h" if episode == "e2" else "g"
        surprise = 2.0 if seat == "B" else 1.0
        return Row(
            episode=f"run:{episode[1]}",
            group=group,
            task=group,
            family="duel",
            seat=seat,
            role="first" if seat == "A" else "second",
            turn=turn,
            reward=reward,
            prompt=(9, 9),
            ids=ids,
            logprobs=(-surprise,) * len(ids),
            key=key,
            state=f"{episode}{seat}{turn}",
            policy=f"duelist@{version}",
            options=("x", "y"),
            answer="x",
            ended=ended,  # type: ignore[arg-type]
        )

    tags = (Span(kind="think", start=0, stop=1), Span(kind="action", start=1, stop=3))
    return [
        row("e0", "A", 0, 2, (1, 2), "deal"),
        row("e0", "B", 0, 1, (3,), "reply"),
        replace(row("e0", "A", 1, 6, (4, 5, 6), "late", "terminated"), spans=tags),
        replace(row("e0", "B", 1, 3, (7,), "later", "terminated"), how="defaulted"),
        row("e1", "A", 0, -1, (1, 8), "deal"),
        row("e1", "A", 0, -1, (1, 8), "deal"),
        row("e1", "B", 0, -4, (9,), "reply", "terminated"),
        row("e1", "A", 1, -3, (4, 8), "end", "terminated"),
        row("e2", "A", 0, 5, (2,), "deal", "truncated"),
        replace(row("e2", "B", 0, -5, (), "reply", "truncated"), trained=False),
    ]


NEWEST = {"duelist": 5}

TOKEN_VALUES = Values(
    rows=((1, 2), (0,), (3, 2, 1), (1,), (0, -1), (0, -1), (-2,), (-1, -2), (4,), ()),
    after=(0, 0, 0, 0, 0, 0, 0, 0, 2, 0),
)
TURN_VALUES = Values(
    rows=((1,), (0,), (3,), (1,), (0,), (0,), (-2,), (-1,), (4,), ()), after=(0, 0, 0, 0, 0, 0, 0, 0, 2, 0)
)

GAME = Extras(
    values={"value": TOKEN_VALUES},
    # log π − log π_ref of a row's tokens: .5 + .25, −.5, 1 + 0 + 1, 0, .25 + .25 (twice), 1, 0 + −1, 2
    reference=(
        *((-1.5, -1.25), (-1.5,), (-2.0, -1.0, -2.0), (-2.0,), (-1.25, -1.25), (-1.25, -1.25)),
        *((-3.0,), (-1.0, 0.0), (-3.0,), ()),
    ),
    truth_before=tuple(map(log, (0.1, 0.2, 0.4, 0.1, 0.1, 0.1, 0.2, 0.6, 0.1, 0.1))),
    truth_after=tuple(map(log, (0.4, 0.1, 0.9, 0.1, 0.6, 0.6, 0.9, 0.1, 0.9, 0.1))),
    judge=(0, 0, 1, 3, 0, 0, -1, 5, 2, 0),
    # what x and y would have earned; x was said everywhere
    counterfactual=((1, 2), (2, 0), (0, 3), (1, 1), (0, 1), (0, 1), (1, 3), (0, 0), (0, 0), (0, 0)),
)
GAME_TURNS = Extras(values={"value": TURN_VALUES})


def memories() -> list[Row]:
    """`game` as written into memories; row 2 is a thought and an action, as it was."""
    rows = game()
    return [rows[2] if i == 2 else replace(row, spans=(_whole(row),)) for i, row in enumerate(rows)]


def _whole(row: Row) -> Span:
    return Span(kind="summary", start=0, stop=len(row.ids))


def unit_game() -> list[Row]:
    """`game` with a tenth of the rewards: the mean of group g is 0.1, inside DAPO's gate."""
    return [replace(row, reward=row.reward / 10) for row in game()]


def _row(episode: str, seat: str, turn: int, reward: float, **more: object) -> Row:
    fields = {"group": "g", "task": "g", "family": "f", "role": seat, "ids": (1,), "logprobs": (-1.0,), **more}
    return Row(episode=episode, seat=seat, turn=turn, reward=reward, **fields)  # type: ignore[arg-type]


def proposals() -> list[Row]:
    """Two problems proposed from one source task, each tried by two solvers.

    Rewards: problem 0: proposer 0.5, solvers 1 and 0. Problem 1: proposer 0, solvers 1 and 1.
    """
    rewards = {"run:0": (0.5, 1, 0), "run:1": (0, 1, 1)}
    return [
        _row(episode, seat, 0, reward, role=seat.split("-")[0], group=episode, task="source", ended="terminated")
        for episode, earned in rewards.items()
        for seat, reward in zip(("proposer", "solver-1", "solver-2"), earned, strict=True)
    ]


def trials() -> list[Row]:
    """Two trials of two episodes each. Trial 1: rewards 1, 2, then 4. Trial 2: 0, then 2."""
    return [
        _row("run:0", "a", 0, 1, trial="1", attempt=0),
        _row("run:0", "a", 1, 2, trial="1", attempt=0, ended="terminated"),
        _row("run:1", "a", 0, 4, trial="1", attempt=1, ended="terminated"),
        _row("run:2", "a", 0, 0, trial="2", attempt=0, ended="terminated"),
        _row("run:3", "a", 0, 2, trial="2", attempt=1, ended="terminated"),
    ]


def tree() -> list[Row]:
    """Two trunks from the root; the first branches before its second decision. Leaves earn 4, 0 and 1."""
    return [
        _row("run:0", "a", 0, 0, parent="root"),
        _row("run:0", "a", 1, 4, parent="n1", ended="terminated"),
        _row("run:1", "a", 1, 0, parent="n1", ended="terminated"),
        _row("run:2", "a", 0, 0, parent="root"),
        _row("run:2", "a", 1, 1, parent="n2", ended="terminated"),
    ]


def segments() -> list[Row]:
    """Three decisions in two segments: the first and the third open one. Rewards 1, 2, 4."""
    switch, action = Span(kind="switch", start=1, stop=2), Span(kind="action", start=3, stop=4)
    opening = (switch, Span(kind="subgoal", start=2, stop=3), action)
    keeping = (Span(kind="switch", start=0, stop=1), Span(kind="action", start=1, stop=2))
    return [
        _row("run:0", "a", 0, 1, ids=(1, 2, 3, 4), spans=opening),
        _row("run:0", "a", 1, 2, ids=(1, 2), spans=keeping),
        _row("run:0", "a", 2, 4, ids=(1, 2, 3, 4), spans=opening, ended="terminated"),
    ]


SEGMENTS = Extras(
    values={
        "low": Values(rows=((1,), (2,), (1,))),
        "high": Values(rows=((3,), (0,), (2,))),
        "termination": Values(rows=((1,), (1,), (1,))),
    }
)


def choices() -> list[Row]:
    """Two episodes: A bets and B calls in both; A earns 1, then 3, and B as much less.

    A's policy is even; B's is 0.8 for a call, with ε = 0.1 it calls with 0.9·0.8 + 0.05 = 0.77.
    """

    def row(episode: str, seat: str, reward: float, said: tuple[str, str], behaviour: tuple[float, float]) -> Row:
        return _row(
            episode,
            seat,
            0,
            reward,
            key=seat,
            options=said,
            answer=said[0],
            option_logprobs=tuple(map(log, behaviour)),
            explored=0.1,
            ended="terminated",
        )

    return [
        one
        for episode, earned in (("run:0", 1.0), ("run:1", 3.0))
        for one in (
            row(episode, "A", earned, ("bet", "pass"), (0.5, 0.5)),
            row(episode, "B", -earned, ("call", "fold"), (0.77, 0.23)),
        )
    ]


CHOICES = Extras(reference_options=((log(0.25), log(0.75)), (log(0.4), log(0.6))) * 2)
