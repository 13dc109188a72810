"""What only an episode's world knows of its rows, from the episodes told again: what else would have been earned, what
was true, and the whole state that a critic may see.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from sim.log import dumps
from sim.streams import Streams
from sim.types import JSON, Action, Agent, AgentId, Member, Tokens, Turn
from training.constraint import Masks
from training.critic import following
from training.extras import PerOption, PerRow
from training.forward import Weights
from training.keys import learnable
from training.matchup import name_of
from training.paths import Trajectory, answering, trajectories
from training.readout import read_tokens
from training.retold import Past
from training.trajectory import Row

Encode: TypeAlias = Callable[[str], Sequence[int]]
"""A text as token ids, without special ones."""
Truth: TypeAlias = Callable[[JSON, AgentId], str | None]
"""From the world's whole state and an agent: what that agent has to find out, in words; None: nothing."""


def counterfactual(rows: Sequence[Row], past: Past) -> PerOption:
    """What each option of an answer would have earned, all other answers as they were; rows without one have none.

    Raises Otherwise where the others' answers do not fit another one's.
    """
    found = []
    answers = answering(rows)
    for index, row in enumerate(rows):
        episode, options = past[row.episode], row.options if index in answers else ()
        was = episode.told().earned.get(row.seat, 0.0) if options else 0.0
        instead = dict.fromkeys(options, row.reward)
        for option in options:
            if option != row.answer:
                instead[option] += episode.earned((row.seat, row.turn), option).get(row.seat, 0.0) - was
        found.append(tuple(instead.values()))
    return tuple(found)


class States(NamedTuple):
    """What critics read that see everything; empty for rows of seats that do not learn."""

    before: tuple[Tokens, ...] = ()
    """Each row's state, as its seat has it."""
    after: tuple[Tokens, ...] = ()
    """The state at its seat's next decision, or at the end."""


def states(rows: Sequence[Row], past: Past, encode: Encode, most: int) -> States:
    """At every decision of a learning seat what its policy was asked, then the world's whole state, as tokens.

    Raises ValueError where one takes more than `most` tokens.
    """
    learning = {(row.episode, row.seat) for row in rows if row.trained}
    next_of = following(rows)

    def read(state: JSON, row: Row) -> Tokens:
        ids = (*row.prompt, *encode(dumps(state)))
        if len(ids) > most:
            raise ValueError(f"{row.episode}: the world's state takes {len(ids)} tokens, the model reads {most}")
        return ids

    before, after = [], []
    for row in rows:
        told = past[row.episode].told() if (row.episode, row.seat) in learning else None
        before.append(read(told.moments[row.seat, row.turn].state, row) if told else ())
    for index, row in enumerate(rows):
        last = () if not before[index] or index in next_of else read(past[row.episode].told().last, row)
        after.append(before[next_of[index]] if index in next_of else last)
    return States(tuple(before), tuple(after))


def known(
    rows: Sequence[Row],
    past: Past,
    truth: Truth,
    lead: str,
    encode: Encode,
    weights: Mapping[str, Weights],
    masks: Masks,
) -> tuple[PerRow, PerRow]:
    """Mean log-probability of the true answer's tokens before each row, and after it, under its policy's weights.

    The answer is put in the policy's mouth where it spoke, after the words `lead`. After a row is before its seat's
    next one; what there is none of, and where nothing is to be found out, is as before.
    """
    asked = []
    for row in rows:
        wanted = truth(past[row.episode].told().moments[row.seat, row.turn].state, row.seat) if learnable(row) else None
        asked.append(_spoken(row, lead, wanted, encode) if wanted else replace(row, ids=()))
    said = read_tokens(asked, weights, masks)
    means = [sum(one.logprobs) / len(one.logprobs) if one.logprobs else None for one in said]
    next_of = following(rows)
    later = [means[next_of[index]] if index in next_of else None for index in range(len(rows))]
    before = tuple(mean or 0.0 for mean in means)
    after = tuple(
        was if mean is None or then is None else then for was, mean, then in zip(before, means, later, strict=True)
    )
    return before, after


def telling(rows: Sequence[Row], part: Trajectory, past: Past) -> str:
    """Decisions of one seat in one episode in words: the rules, then what it was told and answered."""
    parts: list[str] = []
    for decision in part:
        row = rows[decision[-1]]  # what it wrote into its memory comes before
        turn = past[row.episode].told().moments[row.seat, row.turn].turn
        if not parts and turn.rules:
            parts.append(f"The rules:\n{turn.rules}")
        answer = row.answer if isinstance(row.answer, str) else dumps(row.answer)
        parts.append(f"The agent was told:\n{turn.text}\n\nThe agent answered:\n{answer}")
    return "\n\n".join(parts)


def demonstrations(rows: Sequence[Row], past: Past, mind: Callable[[Member], Agent], luck: Streams) -> dict[int, JSON]:
    """What a scripted agent answers in each learning seat, by the answer's row: one of its own for each, every episode.

    It remembers what it would have said itself. Raises ValueError where it asks a model.
    """
    found: dict[int, JSON] = {}
    for path in trajectories(rows):
        row = rows[path[0][0]]
        if not any(rows[index].trained for decision in path for index in decision):
            continue
        moments = past[row.episode].told().moments
        agent = mind(moments[row.seat, row.turn].member)
        for decision in path:
            turn = rows[decision[0]].turn
            action = _said(agent, moments[row.seat, turn].turn, luck.sub(row.episode, row.seat, turn))
            found[decision[-1]] = action.answer
            agent.state = agent.state if action.state is None else action.state
    return found


def _said(agent: Agent, turn: Turn, luck: Streams) -> Action:
    thought = agent.act(turn, luck)
    try:
        while not next(thought):
            pass
    except StopIteration as decided:
        action: Action = decided.value
        return action
    raise ValueError(f"{type(agent).__name__} asks a model, so it is no scripted teacher")


def _spoken(row: Row, lead: str, wanted: str, encode: Encode) -> Row:
    """The row as if the policy had said the lead, and now says what is true."""
    head, whole = list(encode(lead)), list(encode(lead + wanted))
    same = next((n for n, (a, b) in enumerate(zip(head, whole, strict=False)) if a != b), len(head))
    same = min(same, len(whole) - 1)
    spoken = {"prompt": (*row.prompt, *whole[:same]), "ids": tuple(whole[same:]), "policy": name_of(row.policy)}
    return replace(row, **spoken, trained=True, options=(), bounds=None, distribution="", temperature=1.0)
