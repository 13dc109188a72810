"""Personas and secrets in words."""

from __future__ import annotations

import pytest

from agents.persona import BIG_FIVE, persona_text, secrets_text, traits_text
from sim.types import Secret


def test_a_whole_persona() -> None:
    persona = {
        "id": "p7",
        "name": "Ada",
        "age": 34,
        "occupation": "nurse",
        "big_five": {"openness": 0.9, "extraversion": 0.3, "agreeableness": 0.5},
        "demographics": {"country": "Chile", "children": 2},
        "goals": ["find a flat", "help others"],
        "style": "warm and short",
        "background": "She moved last year.",
        "hobbies": [],
    }
    assert persona_text(persona) == (
        "You are Ada, 34 years old, by occupation nurse. "
        "By character you are very curious and imaginative; quiet and reserved. "
        "Your goals: find a flat; help others. How you speak: warm and short. "
        "Demographics: country Chile, children 2. Background: She moved last year."
    )


def test_parts_of_a_persona() -> None:
    assert persona_text({}) == ""
    assert persona_text({"age": 0}) == "You are 0 years old."
    assert persona_text({"occupation": "baker"}) == "You are by occupation baker."
    assert persona_text({"goals": "sell"}) == "Your goals: sell."
    assert persona_text({"big_five": {"openness": 0.5}}) == ""


@pytest.mark.parametrize(
    ("score", "words"),
    [
        (0, "very calm and steady"),
        (0.19, "very calm and steady"),
        (0.2, "calm and steady"),
        (0.39, "calm and steady"),
        (0.61, "anxious and easily upset"),
        (0.8, "anxious and easily upset"),
        (0.81, "very anxious and easily upset"),
        (1, "very anxious and easily upset"),
    ],
)
def test_thresholds(score: float, words: str) -> None:
    assert traits_text({"neuroticism": score}) == f"By character you are {words}."


@pytest.mark.parametrize("score", [0.4, 0.5, 0.6])
def test_the_middle_is_not_told(score: float) -> None:
    assert traits_text(dict.fromkeys(BIG_FIVE, score)) == ""


@pytest.mark.parametrize("scores", [{"openness": 1.1}, {"openness": -1}, {"luck": 0.5}, {"openness": True}])
def test_wrong_scores(scores: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="each from 0 to 1"):
        traits_text(scores)


def test_secrets() -> None:
    secrets = (
        Secret(subject="ann", attribute="budget", value="90", holder="ann"),
        Secret(
            subject="bob",
            attribute="diagnosis",
            value="asthma",
            holder="ann",
            norms=({"to": "doctor", "purpose": "treatment"}, {"to": "#family"}),
        ),
    )
    assert secrets_text(secrets, "ann") == (
        "You know this, and not everybody may learn it:\n"
        "- Your budget: 90. Tell nobody.\n"
        "- bob's diagnosis: asthma. You may tell only: doctor, for treatment; #family."
    )
    assert secrets_text((), "ann") == ""
