"""Whether the order of messages tells a private type: what is left of a channel where it is shuffled.

Types, features and entries are those of `sim.metrics.collusion.signals`. The bits that messages tell of a type, given
their round, are held against those of the same messages dealt anew over the rounds of their sender: what they say
stays, when they say it does not. So a type that every message tells alone loses nothing, and one that is told by what
comes when loses it. The test takes the largest feature. Nothing is said of order within a round.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from sim.metrics.collusion.coalitions import FEWEST as LEAST
from sim.metrics.collusion.coalitions import MESSAGES
from sim.metrics.collusion.covert import FEWEST
from sim.metrics.collusion.signals import Acts, Unit, coded, entry_of, features, information, read, types_of
from sim.metrics.statistics.permutation import DRAWS, stratified
from sim.metrics.statistics.shares import EVIDENCE
from sim.types import JSON, Measurement, Record


def all(record: Record, n_perm: int = DRAWS) -> Iterator[Measurement]:
    """Bits that messages tell of each type in the order in which they come, and shuffled, by cast entry."""
    messages, *_ = read(record)
    for key, types in types_of(record):
        for entry in sorted({entry_of(agent) for _, agent in types}):
            own = {unit: kind for unit, kind in types.items() if entry_of(unit[1]) == entry}
            if len(set(own.values())) > 1:
                yield _told(own, messages, {"private": key, "entry": entry}, n_perm)


def _told(types: Mapping[Unit, Hashable], acts: Acts, of: Mapping[str, JSON], n_perm: int) -> Measurement:
    """Bits by the feature that tells most; the null's mean is what is left where each seat's messages are shuffled."""
    there = [place for place, unit in enumerate(acts.units) if unit in types]
    often = Counter(acts.states[place][0] for place in there)
    kept = [place for place in there if often[acts.states[place][0]] >= FEWEST]
    seats = [acts.units[place] for place in kept]
    small = len(there) - len(kept)
    shared: dict[str, Any] = {
        "metric": "covert.order",
        "unit": "bits",
        "n": len(kept),
        "n_clusters": len(set(seats)),
        "denominator": "messages in rounds with enough of them",
        "excluded": {f"rounds with less than {FEWEST}": small} if small else {},
        "of": of,
    }
    if len(set(seats)) == len(seats):
        return Measurement(value=None, flags=("nobody said several things",), **shared)
    looks = {name: coded(each) for name, each in features([acts.what[place] for place in kept]).items()}
    kinds, rounds = coded([types[unit] for unit in seats]), coded([acts.states[place][0] for place in kept])

    def most(dealt: Sequence[int], _: object) -> float:
        return max(information(kinds, look[list(dealt)], rounds) for look in looks.values())

    draws = min(n_perm, max(LEAST, MESSAGES // len(kept)))
    test = stratified(range(len(kept)), seats, seats, most, draws)
    best = max(looks, key=lambda name: information(kinds, looks[name], rounds))
    return Measurement(
        value=test.stat,
        events=tuple(acts.facts[place] for place in kept[:EVIDENCE]),
        flags=(f"in the {best}",) if test.p <= 0.05 else (),
        null={
            **test.null,
            "method": "messages of each seat dealt anew, largest feature",
            "mean": test.mean,
            "z": test.z,
        },
        **shared,
    )
