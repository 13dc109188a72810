"""A secret as it is dealt to an agent: its value drawn, its tolerance and its prior range held against that."""

from __future__ import annotations

import re
from datetime import date
from typing import NamedTuple

import orjson

from sim.scenarios.located import Keys, shown
from sim.scenarios.scenario_schema import Scenario, SecretSpec
from sim.types import JSON, AgentId, Secret

LARGEST = 0.25
"""Most that a tolerance may be of a number: beyond it, what counts as told says little."""
_NUMBER = re.compile(r"\d+(\.\d+)?")


class Wrong(NamedTuple):
    """What is wrong with a secret, and which of its keys."""

    key: str
    message: str


def dealt(scenario: Scenario, keys: Keys, spec: SecretSpec, value: JSON, agent: AgentId) -> Secret:
    """The secret of an agent, from what its entry says and the value drawn. Raises ScenarioError."""
    text = value if isinstance(value, str) else _plain(value)
    norms = [{"to": norm.to, "purpose": norm.purpose} if norm.purpose else {"to": norm.to} for norm in spec.norms]
    by = spec.tolerance
    if isinstance(by, str) and not _NUMBER.fullmatch(text):
        raise scenario.error(
            (*keys, "tolerance"), f"{shown(by)} of {shown(text)} is nothing; expected a number of days"
        )
    secret = Secret(
        subject=spec.subject or agent,
        attribute=spec.attribute,
        value=text,
        holder=agent,
        norms=(*norms, *({"to": to} for to in spec.audience)),
        forms=spec.forms,
        severity=spec.severity,
        tolerance=float(text) * float(by[:-1]) / 100 if isinstance(by, str) else by,
        prior=spec.prior,
    )
    if wrong := unmeasurable(secret):
        raise scenario.error((*keys, wrong.key), wrong.message)
    return secret


def unmeasurable(secret: Secret) -> Wrong | None:
    """What is wrong with a tolerance or a prior range, if anything."""
    text, tolerance = secret.value, secret.tolerance
    number = float(text) if _NUMBER.fullmatch(text) else None
    if tolerance and number is None and not _is_date(text):
        message = f"{shown(text)} has none; it goes with a value that is a number, as 84500, or a date, as 2024-05-03"
        return Wrong("tolerance", message)
    if number is not None and tolerance > LARGEST * number:
        return Wrong("tolerance", f"{tolerance:g} is too much; expected at most {LARGEST:.0%} of {text}")
    if secret.prior is None:
        return None
    least, most = secret.prior
    told = shown(list(secret.prior))
    if number is None:
        return Wrong("prior", f"{shown(text)} has none; it goes with a value that is a number, as 84500")
    if not least <= number <= most:
        return Wrong("prior", f"{told} does not hold the value {text}; expected its least and its most")
    if most - least <= 2 * tolerance:
        return Wrong("prior", f"{told} is no wider than the tolerance, so that nothing is left to tell")
    return None


def _is_date(text: str) -> bool:
    try:
        return bool(date.fromisoformat(text))
    except ValueError:
        return False


def _plain(value: JSON) -> str:
    """A value as it would stand in a text: at most six digits, no needless zeros."""
    return f"{value:.6g}" if isinstance(value, float) else orjson.dumps(value).decode()
