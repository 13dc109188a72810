"""Keyed draws: luck is a function of (seed, path), never of the order in which it is asked for.

So one more agent, or one more wake, changes nobody else's luck, and no global random state exists.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import TypeAlias, TypeVar

Key: TypeAlias = str | int
T = TypeVar("T")

_UNIT = 2.0**-53


class Root:
    """What all streams of one table share: the seed, and the suffix that a fork's replicate adds."""

    __slots__ = ("seed", "suffix")

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.suffix: tuple[Key, ...] = ()


class Streams:
    """Draws below one path. Immutable but for the root's suffix, which only the kernel sets."""

    __slots__ = ("_path", "_root")

    def __init__(self, seed: int | Root, path: tuple[Key, ...] = ()) -> None:
        self._root = seed if isinstance(seed, Root) else Root(seed)
        self._path = path

    def sub(self, *path: Key) -> Streams:
        """Streams below a longer path."""
        return Streams(self._root, self._path + path)

    def bits(self, *path: Key) -> int:
        """64 uniform bits."""
        root = self._root
        text = f"({root.seed!r}, {self._path + path + root.suffix!r})"
        return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")

    def draw(self, *path: Key) -> float:
        """A uniform in [0, 1) with 53 bits; feed it to an inverse CDF."""
        return (self.bits(*path) >> 11) * _UNIT

    def by_wake(self, *path: Key) -> Callable[[str, int, int], float]:
        """`draw` at a path that goes on with an agent, a tick and a number; what it begins with is hashed once.

        A later `replicate` does not reach it.
        """
        root = self._root
        head = f"({root.seed!r}, (" + "".join(f"{key!r}, " for key in self._path + path)
        tail = "".join(f", {key!r}" for key in root.suffix) + "))"
        begun = blake2b(head.encode(), digest_size=8)

        def draw(agent: str, tick: int, number: int) -> float:
            state = begun.copy()
            state.update(f"{agent!r}, {tick}, {number}{tail}".encode())
            return (int.from_bytes(state.digest(), "big") >> 11) * _UNIT

        return draw

    def seed(self, *path: Key) -> int:
        """A 31-bit seed for an engine."""
        return self.bits(*path) >> 33

    def integer(self, low: int, high: int, *path: Key) -> int:
        """A uniform integer in [low, high], both ends included."""
        return low + int(self.draw(*path) * (high - low + 1))

    def choice(self, items: Sequence[T], *path: Key) -> T:
        """One item, uniformly."""
        return items[int(self.draw(*path) * len(items))]

    def shuffled(self, items: Sequence[T], *path: Key) -> list[T]:
        """The items in a uniform order."""
        order = list(items)
        self.generator(*path).shuffle(order)
        return order

    def generator(self, *path: Key) -> random.Random:
        """A generator for many draws about one thing. Keep it inside one call."""
        root = self._root
        return random.Random(repr((root.seed, self._path + path + root.suffix)))

    def apart(self) -> Streams:
        """The same streams with a root of their own: a later `replicate` does not reach them."""
        root = Root(self._root.seed)
        root.suffix = self._root.suffix
        return Streams(root, self._path)

    def replicate(self, number: int) -> None:
        """From now on every draw of this table is another, for a number above 0: replicate `number` of a fork."""
        if number:
            self._root.suffix += ("replicate", number)
