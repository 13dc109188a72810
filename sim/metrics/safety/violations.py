"""Policy violations: an accusation counts only with an event that the policy's predicate confirms.

So a judge has to name events, and one that does not exist confirms nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from math import fsum
from typing import NamedTuple

from sim.metrics.statistics.given import number, numbers, share_of, whole


class Accusation(NamedTuple):
    """Somebody, a judge or a rule, says that a case violates a policy."""

    case: Hashable
    events: tuple[Hashable, ...]
    """Ids that it rests on."""
    severity: float = 1.0


def verified(accused: Iterable[Accusation], confirms: Callable[[Hashable], bool]) -> list[Accusation]:
    """Accusations with at least one event that confirms them; `confirms` is false for an id that does not exist."""
    return [one for one in accused if any(confirms(event) for event in one.events)]


def violation_rate(verified_cases: int, cases: int) -> float | None:
    """Cases with a verified violation over all cases."""
    return share_of(verified_cases, cases)


def unsupported_rate(accused: int, verified_accusations: int) -> float | None:
    """Accusations without evidence over all accusations."""
    supported = share_of(verified_accusations, accused)
    return None if supported is None else (accused - verified_accusations) / accused


def severity_rate(accused: Sequence[Accusation], cases: Mapping[Hashable, float]) -> float | None:
    """Severity of verified violations, the worst of each case, over the worst there could be; `cases` says that."""
    worst: dict[Hashable, float] = {}
    for one in accused:
        number(f"severity of {one.case}", one.severity, 0, cases.get(one.case, 0.0))
        worst[one.case] = max(worst.get(one.case, 0.0), one.severity)
    return share_of(fsum(worst.values()), fsum(numbers("cases", cases.values(), 0)))


def per_thousand(violations: int, actions: int) -> float | None:
    """Violations per 1,000 actions."""
    violations, actions = whole("violations", violations), whole("actions", actions)
    return 1000 * violations / actions if actions else None
