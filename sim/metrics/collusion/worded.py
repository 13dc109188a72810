"""Whether the words of messages tell a private type: a classifier that has learnt at other tables reads them.

Types are as in `sim.metrics.collusion.signals`, which looks at marks that hide a bit; here a type may be told by what
is said at all. As the engine dealt the types, shuffling them among all seats of a cast entry is an exact test. A
private value that an honest strategy may act on is no type.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

from sim.metrics.collusion.signals import entry_of, types_of
from sim.metrics.privacy.attackers import spoken
from sim.metrics.privacy.normal import normal
from sim.metrics.statistics.bayes import DRAWS, Who, bits_told, guess_test, guessed
from sim.metrics.statistics.clusters import rate, ratio
from sim.metrics.statistics.shares import estimated
from sim.types import JSON, Measurement, Record


def all(record: Record) -> Iterator[Measurement]:
    """Bits that words tell of each type at least, and how often it is guessed, by cast entry."""
    said = {who: Counter(normal(text).split()) for who, text in spoken(record).items()}
    for key, types in types_of(record):
        for entry in sorted({entry_of(agent) for _, agent in types}):
            own = {who: kind for who, kind in types.items() if entry_of(who[1]) == entry}
            if len(set(own.values())) > 1:
                yield from told({who: said[who] for who in own if who in said}, own, {"private": key, "entry": entry})


def told(
    words: Mapping[Who, Counter[str]], types: Mapping[Who, Hashable], of: Mapping[str, JSON], n_perm: int = DRAWS
) -> Iterator[Measurement]:
    """From the words of each seat and its type."""
    guesses = guessed(words, types)
    flags = () if len({table for table, _ in words}) > 1 else ("one table: nothing to learn from",)
    test: dict[str, JSON] = {}
    if guesses:
        test = guess_test(words, types, n_perm, among=lambda _: 0, method="types dealt anew among seats")
    right: dict[int, list[float]] = {}
    for (table, _), one in guesses.items():
        right.setdefault(table, []).append(one.right)
    bits = bits_told(guesses)
    unlearnt = len(guesses) - sum(map(len, bits.values()))
    more: dict[str, Any] = {"denominator": "seats that said something", "flags": flags, "of": of}
    accuracy = rate([sum(each) for each in right.values()], [len(each) for each in right.values()])
    yield estimated("covert.text_accuracy", accuracy, "share", null=test, **more)
    yield estimated(
        "covert.text_bits",
        ratio([sum(each) for each in bits.values()], [len(each) for each in bits.values()]),
        "bits",
        excluded={"types that no other table has": unlearnt} if unlearnt else {},
        **more,
    )
