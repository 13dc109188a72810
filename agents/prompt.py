"""The messages of a decision: what never changes first, the latest view and how to answer last.

Everything is cut to fit the model's context by estimate: the system message by one that never moves (so that it stays
the same text for ever), the rest by the agent's own. Cuts are in the middle and visible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agents.memory import PER_MESSAGE, START, Entry, Memory, clip
from agents.persona import persona_text, secrets_text
from sim.answers import describe, max_tokens
from sim.types import Choice, Format, Member, Message, Text, Turn

_NOTE = 500
"""Weight kept free for the reason of a rethink."""
_SUMMARISE = (
    "Sum up what you remember, for your own later use. Keep names, numbers, promises, what others want, and what you "
    "told to whom."
)
_THINK = (
    "Think before you answer: what matters now, and what would each possible answer lead to? Nobody else reads your "
    "thoughts. Do not answer yet."
)
_SUBGOAL = (
    "First set yourself a subgoal: in one sentence, what do you want to bring about next, perhaps over several turns? "
    "Nobody else reads it. Do not answer yet."
)
_SWITCH = (
    "First say whether you keep your subgoal or switch to another one; switch where it is reached, or out of reach. Do "
    "not answer yet."
)
KEEP, SWITCH = "keep", "switch"
"""Of a subgoal, what an agent may do with it."""
_REFLECT = (
    "This is how it went before, and now it starts anew. Say what went wrong or right, why, and what you will do "
    "differently this time."
)


def identity_text(member: Member) -> str:
    """Who the agent is and what it may not tell everybody. Raises ValueError where its persona is wrong."""
    seat = member.seat
    who = f"You are {seat.agent}{f', in the role of {seat.role}' if seat.role else ''}."
    about = f"{who} {persona_text(member.persona)}".strip()
    return "\n\n".join(part for part in (about, secrets_text(member.secrets, seat.agent)) if part)


def system_text(rules: str, identity: str, instructions: str, context: int) -> str:
    """The system message: rules (many agents share them), identity, instructions; at most half the context."""
    parts = [part.strip() for part in (rules, identity, instructions)]
    return clip("\n\n".join(part for part in parts if part), int(context / 2 * START))


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """What an agent is asked before it answers, in a call of its own."""

    purpose: str
    """Of the call."""
    called: str
    """What is said, in a word."""
    words: str
    """The question."""
    format: Format
    tokens: int
    """Bound on what is said."""


def thought(tokens: int) -> Before:
    """A thought in so many tokens."""
    return Before(purpose="think", called="thought", words=_THINK, format=_text(tokens), tokens=tokens)


def subgoal(tokens: int) -> Before:
    """A new subgoal in so many tokens."""
    return Before(purpose="subgoal", called="subgoal", words=_SUBGOAL, format=_text(tokens), tokens=tokens)


def switch() -> Before:
    """Whether the subgoal is kept."""
    choice = Choice(options=(KEEP, SWITCH))
    return Before(purpose="switch", called="switch", words=_SWITCH, format=choice, tokens=max_tokens(choice))


def _text(tokens: int) -> Text:
    return Text(max_chars=max(1, int(tokens * START)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What one decision's messages are made of, cut to size."""

    system: str
    """The system message."""
    memory: Memory
    """The part of the agent's memory that is used."""
    view: str
    """The latest view in words."""
    inner: str
    """What goes on in the agent, in words: what it feels, aims at and has thought; empty: nothing."""
    how: str
    """How to answer."""
    max_tokens: int
    """Bound on the answer."""

    def messages(self, note: str = "") -> tuple[Message, ...]:
        """Two messages; `note` says what was wrong with the first answer."""
        remembered = f"What you remember:\n{text}" if (text := self.memory.text) else ""
        parts = [remembered, f"Now:\n{self.view}", self.inner, note, self.how]
        user = "\n\n".join(part for part in parts if part)
        return Message(role="system", text=self.system), Message(role="user", text=user)


def prompt(
    system: str,
    turn: Turn,
    memory: Memory,
    context: int,
    memory_tokens: int,
    inner: str = "",
    before: Before | None = None,
) -> Prompt:
    """The prompt of a turn within `context` tokens, answer included: the view first, then as much memory as fits.

    `inner`: what goes on in the agent. `before`: the answer is not asked for yet, but this.
    """
    answer = min(before.tokens if before else max_tokens(turn.format), context // 3)
    wanted = describe(turn.format)
    if before:
        wanted = f"You will be asked: {wanted}\n\n{before.words} {describe(before.format)}"
    how, inner = (clip(text, memory.room(context // 4)) for text in (wanted, inner))
    fixed = memory.tokens(system) + memory.tokens(inner + how) + memory.tokens("x" * _NOTE) + answer + 2 * PER_MESSAGE
    left = max(0, context - fixed)
    view = clip(turn.text, memory.room(left))
    used = memory.recent(min(memory_tokens, left - memory.tokens(view)))
    return Prompt(system=system, memory=used, view=view, inner=inner, how=how, max_tokens=answer)


def note(said: str | None, reason: str) -> str:
    """What was wrong with an answer, as it is put to the model that gave it."""
    answered = f"You answered: {clip(said.strip(), _NOTE // 3)}\n" if said and said.strip() else ""
    return f"{answered}That is not a legal answer: {clip(reason, _NOTE // 3)}. Think again."


def summary_messages(
    system: str, memory: Memory, old: Sequence[Entry], wanted: Text, context: int
) -> tuple[Message, ...]:
    """Ask for a new summary of the former one and the old entries, within `context` tokens."""
    return _about(system, replace(memory, entries=tuple(old)), f"{_SUMMARISE} {describe(wanted)}", context)


def reflection_messages(system: str, memory: Memory, wanted: Text, context: int) -> tuple[Message, ...]:
    """Ask what the agent makes of its memory of earlier episodes, within `context` tokens."""
    return _about(system, memory, f"{_REFLECT} {describe(wanted)}", context)


def _about(system: str, memory: Memory, how: str, context: int) -> tuple[Message, ...]:
    left = context - memory.tokens(system) - memory.tokens(how) - 2 * PER_MESSAGE
    user = f"What you remember:\n{clip(memory.text, memory.room(left))}\n\n{how}"
    return Message(role="system", text=system), Message(role="user", text=user)
