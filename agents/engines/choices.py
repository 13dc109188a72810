"""The one choice mask: which tokens may follow when the answer is one of a few strings.

A choice is decoded over exactly one canonical tokenisation of each option plus end-of-turn, so P(option) is the
product of the masked conditionals along its path and all options together have probability 1. Engines, training,
ratings and exploitability take the mask from here. Pure: it knows token ids, not models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import fsum

from sim.types import OptionLogprobs, Tokens

Node = dict[int, "Node"]


class Trie:
    """Token sequences by shared prefix; each must end where no other goes on (with end-of-turn)."""

    __slots__ = ("_root",)

    def __init__(self, sequences: Sequence[Sequence[int]]) -> None:
        self._root: Node = {}
        for sequence in sequences:
            node = self._root
            for token in sequence:
                node = node.setdefault(token, {})

    def allowed(self, prefix: Sequence[int]) -> Tokens:
        """Tokens that may follow the prefix, in the order of the options; none at an end or off the trie."""
        node: Node | None = self._root
        for token in prefix:
            node = node.get(token) if node else None
        return tuple(node or ())


class ChoiceMask:
    """The options of one question as token sequences over one model's vocabulary."""

    __slots__ = ("_option", "_supports", "_trie", "end", "forks", "sequences", "widest")

    def __init__(self, options: Sequence[str], encode: Callable[[str], Sequence[int]], end: int) -> None:
        """`encode` gives the canonical tokens of a text with no special tokens; `end` is the end-of-turn token.

        Raises ValueError where two options are the same tokens, or one holds the end-of-turn token.
        """
        self.end = end
        self.sequences: tuple[Tokens, ...] = tuple((*encode(option), end) for option in options)
        """One per option, in their order, each ending with `end`."""
        for option, sequence in zip(options, self.sequences, strict=True):
            if end in sequence[:-1]:
                raise ValueError(f"option {option!r} holds the end-of-turn token")
        self._option = dict(zip(self.sequences, options, strict=True))
        if not options or len(self._option) < len(options):
            raise ValueError(f"options must be at least one and different as tokens: {list(options)}")
        self._trie = Trie(self.sequences)
        self._supports: dict[Tokens, tuple[Tokens, ...]] = {}
        self.forks: tuple[tuple[tuple[Tokens, int], ...], ...] = tuple(
            tuple((ids[:n], token) for n, token in enumerate(ids) if len(self.allowed(ids[:n])) > 1)
            for ids in self.sequences
        )
        """Of each option, the prefixes after which another token could have come as well, and the one that does."""
        self.widest = max((len(self.allowed(prefix)) for forks in self.forks for prefix, _ in forks), default=1)
        """Most tokens that may follow any prefix."""

    @property
    def longest(self) -> int:
        """Tokens of the longest sequence, end-of-turn included."""
        return max(map(len, self.sequences))

    def allowed(self, prefix: Sequence[int]) -> Tokens:
        """Tokens that may follow the prefix."""
        return self._trie.allowed(prefix)

    def along(self, ids: Sequence[int]) -> tuple[Tokens, ...]:
        """What was allowed at each position of a sampled sequence: the support of its conditionals."""
        key = tuple(ids)
        if key in self._supports:
            return self._supports[key]
        found = tuple(self.allowed(key[:position]) for position in range(len(key)))
        if key in self._option:  # only so many are kept as there are options
            self._supports[key] = found
        return found

    def option_logprobs(self, known: Mapping[Tokens, Mapping[int, float]]) -> OptionLogprobs:
        """log P of each option, given log P of tokens by the prefix that they follow; None where one is missing.

        A token that no other could have replaced has probability 1, so of what was sampled alone follow the
        probabilities of all options that left its path where no other option went on with them.
        """

        def total(forks: Sequence[tuple[Tokens, int]]) -> float | None:
            found = [known[prefix][token] for prefix, token in forks if token in known.get(prefix, ())]
            return fsum(found) if len(found) == len(forks) else None

        return tuple(map(total, self.forks))

    def option(self, ids: Sequence[int]) -> str | None:
        """The option that a whole sampled sequence spells, or None."""
        return self._option.get(tuple(ids))
