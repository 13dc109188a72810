"""Finds out what an OpenAI-compatible endpoint can do: 2 calls where it can do everything, at most 8 otherwise."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import orjson

from agents.engines.chat import Abilities, Reply, content, first_choice, schema_format, unwrapped
from sim.types import Choice, EngineFailure

Ask: TypeAlias = Callable[[dict[str, Any]], Awaitable[Reply]]
"""Sends a body until it is answered or refused."""

_COLOURS = Choice(options=("blue", "green"))
_SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string", "enum": list(_COLOURS.options)}},
    "required": ["answer"],
    "additionalProperties": False,
}
_PARTS: dict[str, dict[str, Any]] = {
    "constraint": {"response_format": schema_format(_SCHEMA)},
    "seed": {"seed": 7},
    "temperature": {"temperature": 0.7, "top_p": 0.9},
    "logprobs": {"logprobs": True},
}
"""What is tried; each is kept only if it is accepted together with those kept before."""


def greeting(model: str, limit: str, most: int = 16) -> dict[str, Any]:
    """The smallest request: also the sign of life asked for when calls fail."""
    return {"model": model, "messages": [{"role": "user", "content": "Say hello in a few words."}], limit: most}


async def probe(ask: Ask, model: str) -> Abilities:
    """Ask the endpoint a few tiny questions. Raises EngineFailure where it refuses even a plain one."""
    limit, plain = await _plain(ask, model)
    thinks = _thinking(plain)
    base = greeting(model, limit, 64 if thinks == "no" else 2048)
    can = Abilities(bound=limit, thinks=thinks)
    parts = {name: part for name, part in _PARTS.items() if thinks != "inline" or name != "constraint"}
    reply = await ask(base | {key: value for part in parts.values() for key, value in part.items()})
    if reply.verdict == "ok":
        can = _shown(can, reply, parts)
    else:
        can = await _one_by_one(ask, base, can, parts)
    if can.constraint == "text" and thinks != "inline" and await _makes_objects(ask, base):
        can = replace(can, constraint="json_object")
    return can


async def _plain(ask: Ask, model: str) -> tuple[Literal["max_tokens", "max_completion_tokens"], Reply]:
    """The endpoint's word for the longest answer, and its reply to a plain request."""
    reply = await ask(greeting(model, "max_tokens"))
    if reply.verdict == "ok":
        return "max_tokens", reply
    newer = await ask(greeting(model, "max_completion_tokens"))
    if newer.verdict == "ok":
        return "max_completion_tokens", newer
    raise EngineFailure(f"the endpoint refuses even a plain request to {model}: {reply.error}")


def _thinking(reply: Reply) -> Literal["no", "apart", "inline"]:
    """Where a reply to a plain request shows reasoning."""
    message = (first_choice(reply.data) or {}).get("message", {})
    text = content(message) or ""
    if text.lstrip().startswith("<think>") or "</think>" in text:
        return "inline"
    usage = reply.data.get("usage") if isinstance(reply.data, dict) else None
    details = usage.get("completion_tokens_details") if isinstance(usage, dict) else None
    counted = details.get("reasoning_tokens") if isinstance(details, dict) else 0
    return "apart" if message.get("reasoning_content") or message.get("reasoning") or counted else "no"


async def _one_by_one(ask: Ask, base: dict[str, Any], can: Abilities, parts: dict[str, dict[str, Any]]) -> Abilities:
    """Add one part after another, keeping what is accepted."""
    kept: dict[str, dict[str, Any]] = {}
    for name, part in parts.items():
        tried = {**kept, name: part}
        reply = await ask(base | {key: value for some in tried.values() for key, value in some.items()})
        if reply.verdict == "ok":
            can, kept = _shown(can, reply, tried), tried
    return can


def _shown(can: Abilities, reply: Reply, sent: dict[str, dict[str, Any]]) -> Abilities:
    """What an accepted request proves: a format must be obeyed and log-probabilities be there to count."""
    choice = first_choice(reply.data) or {"message": {}}
    text = content(choice["message"]) or ""
    obeyed = "constraint" in sent and unwrapped(text, _COLOURS) in _COLOURS.options
    return replace(
        can,
        constraint="json_schema" if obeyed else can.constraint,
        seed="seed" in sent,
        temperature="temperature" in sent,
        logprobs="logprobs" in sent and bool(choice.get("logprobs")),
    )


async def _makes_objects(ask: Ask, base: dict[str, Any]) -> bool:
    """Whether the endpoint takes `json_object` and then answers with one."""
    asked = [{"role": "user", "content": 'Say hello as a JSON object with the one key "hello".'}]
    reply = await ask(base | {"messages": asked, "response_format": {"type": "json_object"}})
    choice = first_choice(reply.data) if reply.verdict == "ok" else None
    try:
        return isinstance(orjson.loads(content(choice["message"]) or ""), dict) if choice else False
    except orjson.JSONDecodeError:
        return False
