"""What a teacher is shown before the learner's prompt: demonstrations and skills in words, as a turn of the chat.

The tokens of prompt and answer stay as they were. So a model whose chats all begin with a token of their own reads that
one twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import orjson

from agents.engines.encoding import Encoder
from sim.types import JSON, Message, Tokens
from training.keys import learnable
from training.paths import Trajectory, totals, trajectories
from training.trajectory import Row


class Shown(NamedTuple):
    """What the teacher reads beside the rows."""

    before: tuple[Tokens, ...]
    """Of every row, what stands before its prompt; empty: nothing."""
    numbers: Mapping[str, float]
    """Of the rows that can be learnt from: mean tokens shown, and the share of them whose text was cut."""


def shown(rows: Sequence[Row], texts: Mapping[int, str], encoder: Encoder, most: int, longest: int) -> Shown:
    """The texts, by row, as turns of at most `most` tokens, and of no more than `longest` with prompt and answer."""
    before: list[Tokens] = []
    cut = 0
    learnt = [learnable(row) for row in rows]
    for index, row in enumerate(rows):
        message = Message(role="system", text=texts.get(index, ""))
        room = min(most, longest - len(row.prompt) - len(row.ids))
        fits = learnt[index] and message.text
        before.append(encoder.turn(message, room) if fits else ())
        cut += bool(fits) and len(encoder.turn(message)) > room
    count = max(1, sum(learnt))
    return Shown(tuple(before), {"shown_tokens": sum(map(len, before)) / count, "shown_cut": cut / count})


def example(answer: JSON) -> str:
    """A good answer to the same view, in words."""
    return f"An example of a good answer to what you are asked next:\n{_said(answer)}\nAnswer in your own way."


def exemplary(rows: Sequence[Row]) -> dict[int, str]:
    """The answers of its seat's best episode among those that started alike, by the row, where its own earned less."""
    alike: defaultdict[tuple[str, str], list[Trajectory]] = defaultdict(list)
    for path in trajectories(rows):
        row = rows[path[0][0]]
        if row.group and any(rows[index].trained for decision in path for index in decision):
            alike[row.group, row.seat].append(path)
    found: dict[int, str] = {}
    for paths in alike.values():
        earned = totals(paths, [row.reward for row in rows])
        best = paths[earned.index(max(earned))]
        answers = [_said(rows[decision[-1]].answer) for decision in best if rows[decision[-1]].valid]
        text = "\n".join(["What somebody in your place answered, one time after the other, and did well:", *answers])
        for path, each in zip(paths, earned, strict=True):
            if each < max(earned):
                found |= dict.fromkeys([index for decision in path for index in decision], text)
    return found


def _said(answer: JSON) -> str:
    return answer if isinstance(answer, str) else orjson.dumps(answer).decode()
