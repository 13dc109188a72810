"""What a check found wrong: rules of the seams that a world or an agent breaks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from sim.types import JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A rule that is broken."""

    rule: str
    """The rule in words: "observe changes nothing"."""
    message: str
    """Where it was broken and how."""

    def __str__(self) -> str:
        return f"{self.rule}: {' '.join(self.message.split())}"


class ConformanceError(ValueError):
    """A world or an agent breaks rules of the seams; the text has one line for each."""

    def __init__(self, subject: str, findings: list[Finding]) -> None:
        self.findings = findings
        super().__init__("\n".join(f"{subject}: {finding}" for finding in findings))


class Broken(Exception):
    """What follows would make no sense; the cause is among the findings already."""


class Findings:
    """Findings so far, the first of each rule."""

    def __init__(self) -> None:
        self.failures = 0
        """How often any rule was broken."""
        self._found: dict[str, Finding] = {}

    def add(self, rule: str, message: str) -> None:
        """The rule is broken."""
        self.failures += 1
        self._found.setdefault(rule, Finding(rule=rule, message=message))

    def expect(self, rule: str, holds: bool, message: str) -> bool:
        """The rule is broken unless it holds; whether it does."""
        if not holds:
            self.add(rule, message)
        return holds

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._found.values())

    def __len__(self) -> int:
        return len(self._found)


def no_json(value: JSON, where: str = "") -> str:
    """What in a value is no JSON, and where; empty if nothing."""
    if isinstance(value, dict):
        odd = next((key for key in value if type(key) is not str), None)
        if odd is not None:
            return f"{where or 'the value'} has the key {odd!r}, which is no text"
        items = [(f"{where}.{key}".lstrip("."), item) for key, item in value.items()]
    elif isinstance(value, list):
        items = [(f"{where}[{index}]", item) for index, item in enumerate(value)]
    elif isinstance(value, float) and not math.isfinite(value):
        return f"{where or 'the value'} is {value}"
    elif value is None or isinstance(value, str | int | float):
        return ""
    else:
        return f"{where or 'the value'} is a {type(value).__name__}"
    return next((wrong for key, item in items if (wrong := no_json(item, key))), "")
