"""Drives a mind by hand: a fake engine answers its requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from sim.streams import Streams
from sim.types import Action, Agent, Choice, Completion, Format, Member, Request, Seat, Turn, Usage

RULES = "Buy low and sell high."
DUEL = Choice(options=("cooperate", "defect"))


def member(**fields: Any) -> Member:
    fields.setdefault("model", "small")
    return Member(seat=Seat(agent="buyer-1", role="buyer"), **fields)


def turn(now: int = 0, view: Mapping[str, Any] | None = None, format: Format = DUEL, **fields: Any) -> Turn:
    fields.setdefault("default", "cooperate")
    return Turn(agent="buyer-1", now=now, view=view or {"price": 7}, format=format, rules=RULES, **fields)


def prompt_tokens(request: Request, chars_per_token: float = 4.0) -> int:
    """What a tokenizer would say: so many letters per token, one for a digit or sign, 1.5 for others, a template."""
    characters = "".join(message.text for message in request.messages)
    plain = sum(char.isascii() and (char.isalpha() or char.isspace()) for char in characters)
    beyond = sum(not char.isascii() for char in characters)
    signs = len(characters) - plain - beyond
    return int(plain / chars_per_token + 0.8 * signs + 1.5 * beyond) + 5 * len(request.messages)


def drive(
    agent: Agent, seen: Turn, answer: Callable[[Request], Completion | str | None], seed: int = 7
) -> tuple[Action, list[Request]]:
    """Run a mind to its end. Does not touch the agent."""
    mind = agent.act(seen, Streams(seed))
    asked: list[Request] = []
    completions: list[Completion] | None = None
    while True:
        try:
            requests = mind.send(completions) if completions is not None else next(mind)
        except StopIteration as end:
            action: Action = end.value
            return action, asked
        asked += requests
        completions = [completed(request, answer(request)) for request in requests]


def completed(request: Request, answer: Completion | str | None) -> Completion:
    given = answer if isinstance(answer, Completion) else Completion(text=answer)
    return given if given.usage.prompt else replace(given, usage=Usage(prompt=prompt_tokens(request)))


def script(*answers: Completion | str | None) -> Callable[[Request], Completion | str | None]:
    """Gives the answers in order."""
    waiting = iter(answers)
    return lambda request: next(waiting)
