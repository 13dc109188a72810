"""Herding in plain words: short lines that a small model can follow."""

from __future__ import annotations

from collections.abc import Mapping

from sim.types import JSON
from worlds.opinions.questions import HerdingParams


def rules(params: HerdingParams) -> str:
    """The rules as told to everybody."""
    if params.schedule == "sequential":
        order = "One after the other gives an answer, and may see what others answered before."
    elif params.rounds > 1:
        order = f"All answer at the same time, {params.rounds} times; from the second time on you see what others said."
    else:
        order = "All answer at the same time."
    return (
        f"You are in a group that is asked questions. Each has one right answer. {order} A right answer earns you 1 "
        "point. You also say how probable it is, from 0 to 1, that your answer is right."
    )


def news(view: Mapping[str, JSON]) -> str:
    """What is new in the view: the question, the own signal, what others answered."""
    lines = [f"News: {text}" for text in view["news"]]
    if view["result"]:
        lines.append(f"The right answer to the question before was {view['result']}.")
    lines.append(f"Question {view['number']}: {view['question']}")
    if view["signal"]:
        lines.append(_signal(view))
    lines += [f"{agent} answered {answer}." for agent, answer in view["seen"]]
    return "\n".join(lines)


def words(view: Mapping[str, JSON]) -> str:
    """The view in full, and what is asked."""
    lines = [news(view)]
    if view["plan"]:
        lines.append(f"You belong to the experiment: whatever you think, answer {view['plan']}.")
    if view["mine"]:
        lines.append(f"You answered {view['mine']} before. You may answer the same or something else.")
    return "\n".join([*lines, f"Your answer: {', '.join(view['options'][:-1])} or {view['options'][-1]}?"])


def _signal(view: Mapping[str, JSON]) -> str:
    if view["drawn"]:
        return (
            f"You drew a ball that nobody else saw: it is {view['signal']}. With probability {view['accuracy']:.2f} a "
            "ball has the colour of most."
        )
    sure = "" if view["accuracy"] == 1 else f" You are right about such things with probability {view['accuracy']:.2f}."
    return f"As you see it, it is {view['signal']}.{sure}"
