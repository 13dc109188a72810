"""Opinions in plain words: short lines that a small model can follow."""

from __future__ import annotations

from collections.abc import Mapping

from sim.types import JSON
from worlds.opinions.settings import OpinionsParams


def rules(params: OpinionsParams) -> str:
    """The rules as told to everybody."""
    against, in_favour = params.ends
    lines = [
        f"You and others say again and again what you think about this: {params.about}. An opinion is a number from -1 "
        f"({against}) to 1 ({in_favour}); 0 is undecided. You see what those you listen to said last, and then say "
        "what you think now. You may stay with your opinion or change it, a little or a lot.",
    ]
    if params.feelings:
        lines.append(
            "You also say how you feel about your own side and about the other side, from -1 (cold) to 1 (warm)."
        )
    return "\n".join(lines)


def news(view: Mapping[str, JSON]) -> str:
    """What is new in the view: the round, words from outside, what others said."""
    return "\n".join([f"Round {view['round']}.", *(f"News: {text}" for text in view["news"]), *_said(view)])


def words(view: Mapping[str, JSON]) -> str:
    """The view in full, and the question."""
    lines = [news(view)]
    lines.append(f"Your own opinion so far: {short(view['opinion'])}.")
    if view["stubbornness"]:
        lines.append(
            f"You began with {short(view['start'])} and do not give it up easily: {short(view['stubbornness'])} on a "
            "scale from 0 to 1."
        )
    return "\n".join([*lines, _question(view)])


def _said(view: Mapping[str, JSON]) -> list[str]:
    """One line for each who is heard."""
    camps = view["camps"] or [None] * len(view["others"])
    return [
        f"{other}{f' (of the {camp} side)' if camp else ''}: {short(opinion)}" + (f', "{text}"' if text else "")
        for (other, opinion, text), camp in zip(view["others"], camps, strict=True)
    ]


def _question(view: Mapping[str, JSON]) -> str:
    if view["chars"]:
        return f"Say what you think, in at most {view['chars']} characters, and give your opinion as a number."
    return "Give your opinion as a number."


def short(value: float) -> str:
    """A number in at most two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
