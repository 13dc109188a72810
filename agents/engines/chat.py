"""The chat-completions wire format: a request to a body, a body to a completion, an error to a verdict. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias
from urllib.parse import quote

import orjson

from sim.answers import describe, schema
from sim.types import JSON, Choice, Completion, Form, Format, Logprobs, Request, Text, Usage

Constraint: TypeAlias = Literal["json_schema", "json_object", "text"]
Verdict: TypeAlias = Literal["ok", "refused", "limited", "transient", "forbidden", "unusable"]
"""ok; this request is at fault; too many at once; worth another try; this request or the key; the endpoint."""

QUOTA = frozenset({"insufficient_quota", "insufficient_balance", "billing_hard_limit_reached", "billing_not_active"})
"""Error codes by which endpoints say that there is no money left."""
_WRAPPING = 8
"""Tokens that putting an answer under a key costs."""
_TRY_AGAIN = frozenset({408, 409, 425})
_LONGEST_ERROR = 300
_SHORTEST_SECRET = 4
"""Local servers take any key; striking out a single letter would only spoil the text."""
_CREDENTIAL = re.compile(
    r"""(?ix) ((?:authorization|(?:x-)?api[-_]?key) ["']?\s*[:=]\s*["']? (?:(?:bearer|basic)\s+)? | \bbearer\s+)
    [^\s"',;}]+"""
)
_KEYLIKE = re.compile(r"\b(?:sk|pk|rk)-[\w*.-]{6,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """What an endpoint can do, as probed."""

    constraint: Constraint = "text"
    """How far it can be held to an answer format."""
    logprobs: bool = False
    seed: bool = False
    temperature: bool = False
    """Whether it lets the caller choose temperature and top_p."""
    bound: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """What it calls the longest answer."""
    room: int = 0
    """Tokens allowed for reasoning, beyond the answer's own bound."""
    thinks: Literal["no", "apart", "inline"] = "no"
    """Whether it reasons first: in a field of its own, or in the answer text, which no grammar may then govern."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came back from one HTTP exchange."""

    verdict: Verdict
    data: JSON = None
    """The decoded body, where ok."""
    error: str = ""
    """What went wrong, without credentials."""
    wait: float | None = None
    """Seconds it asks to wait."""


# --- out ------------------------------------------------------------------------------------------


def body(request: Request, model: str, can: Abilities, constraint: Constraint) -> dict[str, Any]:
    """The JSON body that asks for a completion."""
    made: dict[str, Any] = {
        "model": request.policy or model,
        "messages": _described(request),
        can.bound: bound(request) + can.room + _WRAPPING,
    }
    if can.temperature:
        made |= {"temperature": request.sampling.temperature, "top_p": request.sampling.top_p}
    if can.seed:
        made["seed"] = request.seed
    if can.logprobs:
        made["logprobs"] = True
    if constraint == "json_schema" and not isinstance(request.format, Text):
        made["response_format"] = schema_format(shape(request.format))
    elif constraint == "json_object" and isinstance(request.format, Form):
        made["response_format"] = {"type": "json_object"}
    return made


def bound(request: Request) -> int:
    """Most tokens the answer may have."""
    return request.sampling.max_tokens if request.max_tokens is None else request.max_tokens


def schema_format(answer: JSON) -> dict[str, Any]:
    """The `response_format` that holds an answer to a JSON schema."""
    return {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": answer}}


def shape(form: Choice | Form) -> JSON:
    """The schema sent; whatever is no object at its root is put under the key `answer`, as endpoints want an object."""
    if isinstance(form, Choice):
        return _under_answer({"type": "string", "enum": list(form.options)})
    plain = schema(form)
    return plain if plain.get("type") == "object" else _under_answer(plain)


def _under_answer(node: JSON) -> JSON:
    return {"type": "object", "properties": {"answer": node}, "required": ["answer"], "additionalProperties": False}


def _described(request: Request) -> list[dict[str, str]]:
    """The messages, the last one ending in a description of the format unless the mind has given it already."""
    messages = [{"role": message.role, "content": message.text} for message in request.messages]
    words = describe(request.format)
    if messages and not isinstance(request.format, Text) and not any(words in each["content"] for each in messages):
        messages[-1]["content"] += f"\n\n{words}"
    return messages


# --- back -----------------------------------------------------------------------------------------


def completion(data: JSON, request: Request, constraint: Constraint, latency: float) -> Completion:
    """The completion in a decoded body that holds a choice; its text as the model wrote it, thinking included."""
    choice = first_choice(data) or {"message": {}}
    message = choice["message"]
    text = content(message)
    error = ""
    if choice.get("finish_reason") == "content_filter":
        error = "the endpoint's content filter stopped the answer"
    elif not text and isinstance(message.get("refusal"), str):
        error = f"the model refused: {message['refusal'][:_LONGEST_ERROR]}"
    if text is not None and constraint == "json_schema":
        text = unwrapped(text, request.format)
    logprobs = _logprobs(choice.get("logprobs"))
    return Completion(
        text=None if error else text,
        finish="error" if error else "length" if choice.get("finish_reason") == "length" else "stop",
        error=error,
        logprobs=logprobs,
        distribution="raw" if logprobs else "",
        usage=_usage(data.get("usage")),
        latency=latency,
        policy=request.policy,
    )


def first_choice(data: JSON) -> dict[str, Any] | None:
    """The first choice of a body, if it holds a message."""
    choices = data.get("choices") if isinstance(data, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    return choice if isinstance(choice, dict) and isinstance(choice.get("message"), dict) else None


def content(message: dict[str, Any]) -> str | None:
    """The text of a message, which may come in parts, or None."""
    found = message.get("content")
    if isinstance(found, list):
        parts = [part.get("text") for part in found if isinstance(part, dict) and part.get("type") == "text"]
        return "".join(part for part in parts if isinstance(part, str))
    return found if isinstance(found, str) else None


def unwrapped(text: str, form: Format) -> str:
    """What stands under `answer` in a text that is exactly the object `shape` asked for, else the text as it is.

    An option is given bare; a form as the very characters that were written.
    """
    if isinstance(form, Text) or (isinstance(form, Form) and shape(form) is schema(form)):
        return text
    around = re.fullmatch(r'\s*\{\s*"answer"\s*:\s*(.*?)\s*\}\s*', text, re.DOTALL)
    if around is None:
        return text
    try:
        value = orjson.loads(around[1])
    except orjson.JSONDecodeError:
        return text
    if isinstance(form, Choice):
        return value if isinstance(value, str) and value in form.options else text
    return around[1]


def _logprobs(found: JSON) -> Logprobs:
    """Log-probabilities of the sampled tokens; none rather than some where one is unusable."""
    tokens = found.get("content") if isinstance(found, dict) else None
    values = [token.get("logprob") if isinstance(token, dict) else None for token in tokens or ()]
    usable = all(isinstance(value, int | float) and math.isfinite(value) for value in values)
    return tuple(float(value) for value in values if value is not None) if usable else ()


def _usage(found: JSON) -> Usage:
    """Tokens as reported; what is missing or nonsense counts 0."""
    found = found if isinstance(found, dict) else {}
    details = found.get("prompt_tokens_details")
    counts = (
        found.get("prompt_tokens"),
        details.get("cached_tokens") if isinstance(details, dict) else 0,
        found.get("completion_tokens"),
    )
    prompt, cached, sampled = (max(0, count) if isinstance(count, int) else 0 for count in counts)
    return Usage(prompt=prompt, cached=cached, completion=sampled)


# --- errors ---------------------------------------------------------------------------------------


def verdict(status: int, data: JSON) -> Verdict:
    """What an HTTP status with this error body means for the request and for the endpoint."""
    if status == 402 or not QUOTA.isdisjoint(_codes(data)):
        return "unusable"
    if status in (401, 404):
        return "unusable"
    if status == 403:
        return "forbidden"
    if status == 429:
        return "limited"
    return "transient" if status >= 500 or status in _TRY_AGAIN else "refused"


def _codes(data: JSON) -> set[str]:
    error = data.get("error", data) if isinstance(data, dict) else None
    return {str(error.get(name)) for name in ("code", "type")} if isinstance(error, dict) else set()


def error_status(data: JSON) -> int | None:
    """The HTTP status of an error that was sent with status 200; None where the body is no error."""
    error = data.get("error") if isinstance(data, dict) and not data.get("choices") else None
    if not error:
        return None
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and 400 <= code < 600 else 502


def redacted(text: str, secrets: Iterable[str]) -> str:
    """The text in one bounded line, without the secrets, authorization values or anything that looks like a key."""
    for secret in secrets:
        if len(secret) >= _SHORTEST_SECRET:
            for form in (secret, quote(secret, safe="")):
                text = text.replace(form, "[key]")
    text = _KEYLIKE.sub("[key]", _CREDENTIAL.sub(r"\1[key]", text))
    return " ".join(text.split())[:_LONGEST_ERROR]
