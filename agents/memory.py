"""What an agent remembers: recent turns word for word, older ones as one summary, both within a token budget.

Nothing here grows with the length of a run. Entries beyond the budget go into the summary, whose text is bounded;
of the facts it came from the newest `MOST_FACTS` ids are kept, so provenance of the oldest, long since diluted,
is let go. Tokens are estimated from characters, without an engine, so that a replay builds the same prompts
anywhere; the estimate is corrected by the usage that calls report.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sim.cuts import cut
from sim.types import Completion, FactId, Message

MOST_FACTS = 512
"""Ids of facts that a summary keeps, the newest."""
PER_MESSAGE = 8
"""Tokens that a chat template puts around one message; estimated."""

_EARLIER = "Earlier, in short: "
START = 3.0
"""Weight per token before any usage is known."""
_LEAST, _MOST = 1.0, 6.0
_SIGNS = (string.digits + string.punctuation).encode()
_PACE = 0.25
"""Weight of the newest call in the running estimate."""
_CAUTION = 0.9
"""Share of the estimate that is relied on."""


def weight(text: str) -> int:
    """Characters of a text as tokens see them: digits and signs count three times, other alphabets three to seven.

    With SmolLM2's tokenizer a token carries 2.6 (tables of numbers) to 4.6 (English) of it, and 2.3 for emoji.
    """
    coded = text.encode("utf-8", "replace")
    signs = len(coded) - len(coded.translate(None, _SIGNS))
    return len(text) + 2 * (signs + len(coded) - len(text))


def clip(text: str, most: int) -> str:
    """The text with its middle cut out visibly where it weighs more than `most`."""
    if weight(text) <= most:
        return text
    low, high = 0, len(text)
    while low < high:  # most characters that can stay
        kept = (low + high + 1) // 2
        low, high = (kept, high) if weight(cut(text, kept)) <= most else (low, kept - 1)
    return cut(text, low) if low else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One turn as remembered."""

    tick: int
    """When it was seen."""
    seen: str
    """What was new in the view."""
    did: str
    """The answer."""
    facts: tuple[FactId, ...] = ()
    """Facts that the view displayed."""

    @property
    def text(self) -> str:
        """The entry in words."""
        return f"At {self.tick}: {self.seen}\nYou answered: {self.did}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """An agent's memory: an immutable value."""

    summary: str = ""
    """What is older than the entries, in words."""
    summary_facts: tuple[FactId, ...] = ()
    """Facts that the summary came from: the newest `MOST_FACTS`, ascending."""
    entries: tuple[Entry, ...] = ()
    """Recent turns, oldest first."""
    per_token: float = START
    """Estimated weight per token of this agent's prompts and model."""
    feels: str | None = None
    """What the agent felt when it last decided, where it has an emotion; no part of the text."""
    subgoal: str = ""
    """What it aims at, where it sets itself subgoals; no part of the text."""

    # -- estimate --

    def tokens(self, text: str) -> int:
        """Estimated tokens of a text, on the safe side."""
        return int(weight(text) / (self.per_token * _CAUTION)) + 1

    def room(self, tokens: int) -> int:
        """Weight of text that fits into so many tokens."""
        return max(0, int((tokens - 1) * self.per_token * _CAUTION))

    def corrected(self, messages: Sequence[Message], completion: Completion) -> Memory:
        """The memory with its estimate moved towards what a call really took; unchanged where it reports no usage."""
        used = completion.usage.prompt - PER_MESSAGE * len(messages)
        if used <= 0:
            return self
        seen = min(_MOST, max(_LEAST, sum(weight(message.text) for message in messages) / used))
        return replace(self, per_token=self.per_token + _PACE * (seen - self.per_token))

    # -- content --

    @property
    def text(self) -> str:
        """Summary and entries in words; empty for an empty memory."""
        older = [f"{_EARLIER}{self.summary}"] if self.summary else []
        return "\n".join(older + [entry.text for entry in self.entries])

    @property
    def facts(self) -> tuple[FactId, ...]:
        """Ids of the facts that it came from, ascending."""
        return tuple(sorted({*self.summary_facts, *(fact for entry in self.entries for fact in entry.facts)}))

    def recent(self, tokens: int) -> Memory:
        """As much of the memory as fits: the summary if it does, then the newest entries without a gap."""
        left = tokens
        kept: Memory = replace(self, entries=())
        if self.summary and (left := left - self.tokens(kept.text)) < 0:
            kept, left = replace(kept, summary="", summary_facts=()), tokens
        start = len(self.entries)
        while start and (left := left - self.tokens(self.entries[start - 1].text)) >= 0:
            start -= 1
        return replace(kept, entries=self.entries[start:])

    def fits(self, tokens: int) -> bool:
        """Whether `recent` would keep all of it."""
        return self.recent(tokens) == self

    def split(self, tokens: int) -> tuple[tuple[Entry, ...], Memory]:
        """The oldest entries, at least one, whose leaving brings the other entries within so many tokens; the rest."""
        rest = replace(self, summary="", summary_facts=()).recent(tokens).entries
        many = max(1, len(self.entries) - len(rest))
        return self.entries[:many], replace(self, entries=self.entries[many:])

    def summarised(self, summary: str, old: Sequence[Entry]) -> Memory:
        """The memory with a new summary, which tells of the former summary and of the old entries."""
        facts = sorted({*self.summary_facts, *(fact for entry in old for fact in entry.facts)})
        return replace(self, summary=summary, summary_facts=tuple(facts[-MOST_FACTS:]))

    def concluded(self, conclusion: str, tokens: int) -> Memory:
        """The memory with what follows from its summary, both cut to fit into so many tokens."""
        most = self.room(tokens) - weight(_EARLIER)
        return replace(self, summary=clip(f"{self.summary}\nYour conclusion: {conclusion}", max(0, most)))

    def with_turn(self, entry: Entry, most: int) -> Memory:
        """The memory after one more turn, the entry's texts clipped to a weight of `most` together."""
        seen, did = clip(entry.seen, most * 2 // 3), clip(entry.did, most // 3)
        return replace(self, entries=(*self.entries, replace(entry, seen=seen, did=did)))
