"""Riddles in plain words: short lines that a very small model can follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sim.types import JSON
from worlds.games.riddles_problems import RiddlesParams


def rules(role: str, params: RiddlesParams) -> str:
    """The rules as told to one side."""
    if role == "solver":
        return (
            f"Somebody makes up a problem of arithmetic. You see it with {params.options} possible answers, of which "
            "one is right. You get 1 point if you choose that one, otherwise nothing."
        )
    lost = f"lose {params.penalty:g} points" if params.penalty else "get nothing"
    return (
        "You make up a problem of arithmetic for others: a number, an operation and another number. Numbers are from "
        f"{params.least} to {params.most}; the operation is {_either(params.operations)}. The answer must be a whole "
        f"number, else nobody is given the problem and you {lost}. The others choose among {params.options} possible "
        "answers. You get 1 point less the share of them who are right: nothing if all are, 1 point if nobody is."
    )


def words(view: Mapping[str, JSON]) -> str:
    """The view in full, and what is asked."""
    lines = [f"News: {text}" for text in view["news"]]
    if view["role"] == "solver":
        asked = f"How much is {view['left']} {view['operation']} {view['right']}?"
        return "\n".join([*lines, asked, f"Your answer: {_either(view['candidates'])}?"])
    first = view["left"] is None
    if not first:
        lines.append(f"Your problem so far: {view['left']} {view['operation'] or '?'} ?")
    if not first and not view["operation"]:
        return "\n".join([*lines, f"Choose the operation: {_either(view['operations'])}."])
    place = "first" if first else "second"
    return "\n".join([*lines, f"Choose the {place} number, from {view['least']} to {view['most']}."])


def _either(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else words[0]
