"""Facts in words, for people who read a record."""

from __future__ import annotations

from collections.abc import Collection

from sim.quantities import readable
from sim.types import JSON, RecordedFact


def audience(of: RecordedFact) -> str:
    """Who can see a fact, in words."""
    to = of.fact.audience
    return to if isinstance(to, str) else ", ".join(to) or "nobody"


def told(data: JSON) -> str:
    """What a fact says, in words: its text, then its other fields."""
    if not isinstance(data, dict):
        return str(data)
    rest = [f"{key} {_value(value)}" for key, value in data.items() if key != "text"]
    text = [str(data["text"])] if "text" in data else []
    return " · ".join([*text, *rest])


def so_far(ticks: Collection[int], tick_ms: float) -> str:
    """Up to when numbers hold of a run that has not ended."""
    ends = dict.fromkeys((min(ticks), max(ticks)))
    return f"so far, at {' to '.join(readable(tick, tick_ms) for tick in ends)}"


def _value(value: JSON) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_value(one)}" for key, one in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(map(_value, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
