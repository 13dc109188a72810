"""A persona and its secrets in words, as they stand in a system message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sim.types import JSON, AgentId, Secret

# Trait: (words for a low score, words for a high score).
BIG_FIVE: dict[str, tuple[str, str]] = {
    "openness": ("conventional and down-to-earth", "curious and imaginative"),
    "conscientiousness": ("spontaneous and careless", "organised and careful"),
    "extraversion": ("quiet and reserved", "outgoing and talkative"),
    "agreeableness": ("critical and competitive", "warm and cooperative"),
    "neuroticism": ("calm and steady", "anxious and easily upset"),
}
"""The five personality traits, scored from 0 to 1."""

_VERY_LOW, _LOW, _HIGH, _VERY_HIGH = 0.2, 0.4, 0.6, 0.8
_SPOKEN = ("id", "name", "age", "occupation", "big_five", "goals", "style")


def persona_text(persona: Mapping[str, JSON]) -> str:
    """A persona in a few sentences; empty for an empty one. Keys it does not know are told as they stand.

    Known keys: name, age, occupation, big_five (trait → score in [0, 1]), goals (a text or a list), style.
    """
    told = [_who(persona)]
    if traits := persona.get("big_five"):
        told.append(traits_text(traits))
    if goals := persona.get("goals"):
        told.append(f"Your goals: {goals if isinstance(goals, str) else '; '.join(map(str, goals))}.")
    if style := persona.get("style"):
        told.append(f"How you speak: {style}.")
    rest = {key: value for key, value in persona.items() if key not in _SPOKEN and value not in (None, "", [], (), {})}
    told += [f"{key.replace('_', ' ').capitalize()}: {_said(value)}." for key, value in rest.items()]
    return " ".join(sentence.replace("..", ".") for sentence in told if sentence)


def _who(persona: Mapping[str, JSON]) -> str:
    name, age, occupation = (persona.get(key) for key in ("name", "age", "occupation"))
    facts = [f"{age} years old" if age is not None else "", f"by occupation {occupation}" if occupation else ""]
    rest = ", ".join([str(name)] * bool(name) + [fact for fact in facts if fact])
    return f"You are {rest}." if rest else ""


def _said(value: JSON) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_said(item)}" for key, item in value.items())
    return ", ".join(map(_said, value)) if isinstance(value, list | tuple) else str(value)


def traits_text(scores: Mapping[str, float]) -> str:
    """Big Five scores in words: "very" below 0.2 and above 0.8, nothing from 0.4 to 0.6.

    Raises ValueError on other traits and scores outside [0, 1].
    """
    words = []
    for trait, score in scores.items():
        if trait not in BIG_FIVE or isinstance(score, bool) or not 0 <= score <= 1:
            raise ValueError(f"big_five: {trait}: {score!r}; expected {', '.join(BIG_FIVE)}, each from 0 to 1")
        low, high = BIG_FIVE[trait]
        if score < _LOW:
            words.append(("very " if score < _VERY_LOW else "") + low)
        elif score > _HIGH:
            words.append(("very " if score > _VERY_HIGH else "") + high)
    return f"By character you are {'; '.join(words)}." if words else ""


def secrets_text(secrets: Sequence[Secret], agent: AgentId) -> str:
    """What the agent knows and not everybody may learn, each with whom it may be told."""
    lines = []
    for secret in secrets:
        whose = "Your" if secret.subject == agent else f"{secret.subject}'s"
        lines.append(f"- {whose} {secret.attribute}: {secret.value}. {_permission(secret)}")
    return "\n".join(["You know this, and not everybody may learn it:", *lines]) if lines else ""


def _permission(secret: Secret) -> str:
    if not secret.norms:
        return "Tell nobody."
    allowed = [f"{norm['to']}{_purpose(norm)}" for norm in secret.norms]
    return f"You may tell only: {'; '.join(allowed)}."


def _purpose(norm: Mapping[str, JSON]) -> str:
    return f", for {norm['purpose']}" if norm.get("purpose") else ""
