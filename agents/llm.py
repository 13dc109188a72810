"""The language-model agent: persona, secrets and memory in, one legal answer out.

A decision is at most six calls: a summary where memory outgrew its budget; where it has subgoals, whether it keeps the
one that it has, and a new one if it does not; a thought where it is to think first; the answer, and one rethink with
the reason where that was not legal. After that the turn's default is taken; every step is told in the action. What it
knows of episodes before is where its memory begins.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, TypeAlias

from agents.emotion import Emotion, told
from agents.memory import START, Entry, Memory, clip
from agents.prompt import (
    SWITCH,
    Before,
    identity_text,
    note,
    prompt,
    reflection_messages,
    subgoal,
    summary_messages,
    switch,
    system_text,
    thought,
)
from sim.answers import parse
from sim.streams import Streams
from sim.types import JSON, Action, Completion, Format, How, Member, Message, Mind, Request, Text, Turn

Asked: TypeAlias = Generator[Sequence[Request], Sequence[Completion], tuple[Completion, Memory]]
Said: TypeAlias = Generator[Sequence[Request], Sequence[Completion], tuple[str, Memory, str]]
"""What was said, empty for nothing; the memory; and what went wrong."""

_LONGEST_REASON = 300


class LLMAgent:
    """A mind that asks a model. Its state is a `Memory`.

    Settings: `instructions`, words that end the system message; `memory_tokens`, the budget of its memory (a third of
    the context where not given; 0: it remembers nothing); `writer`, the entry of `models` that writes its memory (its
    own where not given); `reflect`, whether it begins with a call of its own about the episodes before this one;
    `think`, the tokens in which it thinks before every answer, at most a third of the context, in a call of its own
    whose words only it sees, once (0: it answers at once); `subgoals`, the tokens in which it says what it aims at, at
    most a third of the context: at its first turn, and wherever it says that it switches to another one (0: it sets
    itself none); `emotion`, the `Emotion` that it has, if any. Raises ValueError where one of them will not do.
    """

    models: ClassVar[tuple[str, ...]] = ("model", "writer")

    def __init__(
        self,
        member: Member,
        *,
        instructions: str = "",
        memory_tokens: int | None = None,
        writer: str = "",
        reflect: bool = False,
        think: int = 0,
        subgoals: int = 0,
        emotion: Mapping[str, JSON] | None = None,
    ) -> None:
        for setting, value, kind, wanted in (
            ("instructions", instructions, str, "words"),
            ("writer", writer, str, "the name of a model"),
            ("reflect", reflect, bool, "true or false"),
        ):
            if not isinstance(value, kind):
                raise ValueError(f"{setting}: {value!r}; expected {wanted}")
        self.member = member
        self.instructions = instructions
        most = member.context // 3
        self.memory_tokens = most if memory_tokens is None else _tokens("memory_tokens", memory_tokens)
        self.writer, self.reflect = writer or member.model, reflect
        self.think = min(most, _tokens("think", think))
        self.subgoals = min(most, _tokens("subgoals", subgoals))
        self.emotion = None if emotion is None else Emotion(emotion)
        self._start = Memory(summary=clip(member.past, int(self.memory_tokens / 2 * START)))
        self.state: object = self._start
        self._identity = identity_text(member)

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Decide, by one to six calls, and at the first decision a reflection."""
        memory = self.state
        assert isinstance(memory, Memory)
        context, budget = self.member.context, self.memory_tokens
        feels = None if self.emotion is None else self.emotion.after(memory.feels, streams.draw("emotion"))
        feeling = told(feels) if feels else ""
        system = system_text(turn.rules, self._identity, self.instructions, context)
        memory, blank = yield from self._reflected(system, memory)
        memory, forgot = yield from self._condensed(system, memory)

        memory, aimless = yield from self._aimed(system, turn, memory, feeling)
        aim = f"Your subgoal:\n{memory.subgoal}" if memory.subgoal else ""
        inner = _joined(feeling, aim)
        thoughts, empty = "", ""
        if self.think:
            thoughts, memory, empty = yield from self._first(thought(self.think), system, turn, memory, inner)
        inner = _joined(inner, f"You thought:\n{thoughts}" if thoughts else "")
        asked = prompt(system, turn, memory, context, budget, inner)
        first, memory = yield from self._ask(asked.messages(), turn.format, "act", asked.max_tokens, memory)
        answer, reason = judged(turn.format, first)
        how: How = "chosen"
        if reason:
            # A failed call may have been too long, so it is made again with less.
            failed = _failed(first)
            again = prompt(system, turn, memory, context * 4 // 5, budget // 2, inner) if failed else asked
            messages = again.messages("" if failed else note(first.text, reason))
            second, memory = yield from self._ask(messages, turn.format, "rethink", again.max_tokens, memory)
            answer, still = judged(turn.format, second)
            how = "defaulted" if still else "retried"
            reason += f"; then {still}" if still else ""
        if how == "defaulted":
            answer = turn.default
        return Action(
            answer=answer,
            how=how,
            reason="; ".join(part for part in (reason[:_LONGEST_REASON], blank, forgot, aimless, empty) if part),
            state=self._remembering(replace(memory, feels=feels), turn, answer),
            recalls=asked.memory.facts,
            feels=feels,
        )

    def _ask(
        self, messages: tuple[Message, ...], format: Format, purpose: str, max_tokens: int, memory: Memory
    ) -> Asked:
        """One call; also the memory, its estimate corrected by what the call took."""
        model = self.writer if purpose in ("memory", "reflect") else self.member.model
        request = Request(messages=messages, format=format, purpose=purpose, model=model, max_tokens=max_tokens)
        (completion,) = yield (request,)
        return completion, memory.corrected(messages, completion)

    def _reflected(
        self, system: str, memory: Memory
    ) -> Generator[Sequence[Request], Sequence[Completion], tuple[Memory, str]]:
        """The memory with what the agent makes of earlier episodes, once, at its first decision; what went wrong."""
        if not self.reflect or not self._start.summary or memory != self._start:
            return memory, ""
        tokens = self.memory_tokens // 4
        wanted = Text(max_chars=max(1, int(tokens * START)))
        messages = reflection_messages(system, memory, wanted, self.member.context - tokens)
        completion, memory = yield from self._ask(messages, wanted, "reflect", tokens, memory)
        said = completion.text or ""
        conclusion, reason = parse(Text(max_chars=len(said)), said)
        if conclusion is None or _failed(completion):
            return memory, f"no reflection ({completion.error or reason})"
        return memory.concluded(clip(conclusion, wanted.max_chars), self.memory_tokens), ""

    def _aimed(
        self, system: str, turn: Turn, memory: Memory, feeling: str
    ) -> Generator[Sequence[Request], Sequence[Completion], tuple[Memory, str]]:
        """The memory with the subgoal of this turn, and what went wrong: none can be kept where there is none yet."""
        if not self.subgoals:
            return replace(memory, subgoal=""), ""
        inner = feeling
        if memory.subgoal:
            inner = _joined(feeling, f"Your subgoal so far:\n{memory.subgoal}")
            word, memory, undecided = yield from self._first(switch(), system, turn, memory, inner)
            if word != SWITCH:
                return memory, undecided
        aim, memory, aimless = yield from self._first(subgoal(self.subgoals), system, turn, memory, inner)
        return replace(memory, subgoal=aim), aimless

    def _first(self, before: Before, system: str, turn: Turn, memory: Memory, inner: str) -> Said:
        """What the agent says to what it is asked before it answers."""
        asked = prompt(system, turn, memory, self.member.context, self.memory_tokens, inner, before)
        completion, memory = yield from self._ask(
            asked.messages(), before.format, before.purpose, asked.max_tokens, memory
        )
        text, form = completion.text or "", before.format
        said, reason = parse(Text(max_chars=len(text)) if isinstance(form, Text) else form, text)
        if not isinstance(said, str) or _failed(completion):
            return "", memory, f"no {before.called} ({completion.error or reason})"
        return said[: form.max_chars] if isinstance(form, Text) else said, memory, ""

    def _condensed(
        self, system: str, memory: Memory
    ) -> Generator[Sequence[Request], Sequence[Completion], tuple[Memory, str]]:
        """The memory within its budget, and what went wrong.

        The older half becomes part of the summary; if no summary comes, it is forgotten, deterministically.
        """
        if memory.fits(self.memory_tokens):
            return memory, ""
        old, rest = memory.split(self.memory_tokens // 2)
        tokens = self.memory_tokens // 4
        wanted = Text(max_chars=max(1, int(tokens * START)))
        messages = summary_messages(system, memory, old, wanted, self.member.context - tokens)
        completion, rest = yield from self._ask(messages, wanted, "memory", tokens, rest)
        said = completion.text or ""
        summary, reason = parse(Text(max_chars=len(said)), said)
        if summary is None or _failed(completion):
            return rest, f"no summary ({completion.error or reason}), {len(old)} oldest turns forgotten"
        return rest.summarised(clip(summary, wanted.max_chars), old), ""

    def _remembering(self, memory: Memory, turn: Turn, answer: JSON) -> Memory:
        if not self.memory_tokens:
            return memory
        seen = turn.text if turn.recap is None else turn.recap(turn.view)
        did = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
        entry = Entry(tick=turn.now, seen=seen, did=did, facts=turn.shows)
        return memory.with_turn(entry, int(self.memory_tokens / 4 * START))


def judged(format: Format, completion: Completion) -> tuple[JSON | None, str]:
    """The legal answer of a completion and "", or None and what is wrong with it."""
    if _failed(completion):
        return None, f"the call failed: {completion.error or 'no reason given'}"
    if completion.finish == "length":
        return None, "the answer was cut off; answer more shortly"
    return parse(format, completion.text)


def _tokens(setting: str, tokens: object) -> int:
    if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 0:
        raise ValueError(f"{setting}: {tokens!r}; expected a number of tokens, 0 or more")
    return tokens


def _joined(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


def _failed(completion: Completion) -> bool:
    return completion.finish == "error" or bool(completion.error)
