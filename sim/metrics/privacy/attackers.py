"""What a fixed attacker learns from what agents said for others to see: membership, exposure, and a private attribute.

It reads texts alone. Membership and exposure compare a secret with values that nobody was given (`canaries.decoyed`).
An attribute is guessed by naive Bayes over words, learnt at the other tables; its null shuffles who has which value.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any

from rapidfuzz.fuzz import partial_ratio

from sim.metrics.frames import frames, texts
from sim.metrics.privacy.canaries import Canary, canary, decoyed, find
from sim.metrics.privacy.disclosures import disclosures
from sim.metrics.privacy.inference import advantage, auc, balanced_accuracy, bits_gained, exposure, rank_of, tpr_at_fpr
from sim.metrics.privacy.normal import normal
from sim.metrics.statistics.bayes import Who, guess_test, guessed
from sim.metrics.statistics.clusters import mean, rate
from sim.metrics.statistics.shares import estimated
from sim.types import Measurement, Member, Record

DECOYS = 15
"""Values beside the true one among which it is ranked."""


def all(record: Record) -> Iterator[Measurement]:
    """Membership and exposure of secrets, and whether roles are told by words."""
    yield from membership(record)
    yield from attribute(record)


def membership(record: Record) -> Iterator[Measurement]:
    """Whether texts tell secrets from values that nobody has: AUC, hits at 1% and 0.1% false alarms, exposure."""
    found, said = disclosures(record), spoken(record)
    own: list[float] = []
    others: list[float] = []
    bits: dict[int, list[float]] = defaultdict(list)
    for (table, holder), one in zip(found.place, found.canaries, strict=True):
        text = said.get((table, holder), "")
        if not one.usable:
            continue
        drawn = [_score(canary(decoyed(one.secret, number)), text) for number in range(DECOYS)]
        own.append(_score(one, text))
        others += drawn
        bits[table].append(exposure(rank_of(own[-1], drawn), DECOYS + 1))
    told: dict[str, Any] = {
        "n": len(own),
        "n_clusters": len(bits),
        "denominator": "secrets against values that nobody has",
    }
    yield Measurement(metric="inference.membership_auc", value=auc(own, others), unit="share", **told)
    for name, fpr in (("1", 0.01), ("01", 0.001)):
        few = (f"fewer than {round(1 / fpr):,} values that nobody has",) if 0 < len(others) < 1 / fpr else ()
        reached = tpr_at_fpr(own, others, fpr)
        yield Measurement(
            metric=f"inference.membership_tpr_at_fpr_{name}", value=reached, unit="share", flags=few, **told
        )
    ranked = mean([sum(each) / len(each) for each in bits.values()])
    yield estimated("inference.exposure", ranked, "bits", denominator=f"secrets ranked among {DECOYS + 1} values")


def spoken(record: Record) -> Mapping[Who, str]:
    """All that each agent said that somebody else could see."""
    found: dict[Who, list[str]] = defaultdict(list)
    for table, actor, audience, data in frames(record).facts.select("tbl", "actor", "audience", "data").iter_rows():
        if actor and audience not in ("[]", f'["{actor}"]') and '"text":' in data:
            found[table, actor].append(texts(data))
    return {who: "\n".join(each) for who, each in found.items()}


def _score(one: Canary, text: str) -> float:
    """2 where a text surely holds a value, else how near to it the nearest part comes."""
    if any(match.sure for _, match in find(text, [one])):
        return 2.0
    return partial_ratio(one.forms[0], normal(text)) / 100 if text else 0.0


# --- a private attribute -----------------------------------------------------------------------------------


def _role(member: Member) -> Hashable:
    return member.seat.role


def attribute(record: Record, of: Callable[[Member], Hashable] = _role) -> Iterator[Measurement]:
    """Accuracy, plain and balanced, advantage over the most frequent value, and bits gained, by what an agent is.

    That is its role, unless `of` says otherwise.
    """
    said = spoken(record)
    labels = {(table, member.seat.agent): of(member) for table in range(record.tables) for member in record.cast(table)}
    known = {who: Counter(normal(text).split()) for who, text in said.items() if who in labels}
    guesses = guessed(known, labels)
    flags = () if record.tables > 1 else ("one table: nothing to learn from",)
    by_table: dict[int, list[float]] = defaultdict(list)
    for (table, _), one in guesses.items():
        by_table[table].append(one.right)
    found = rate([sum(hits) for hits in by_table.values()], [len(hits) for hits in by_table.values()])
    null = guess_test(known, labels) if guesses else {}
    told: dict[str, Any] = {"denominator": "agents that said something", "null": null}
    yield estimated("inference.attribute_accuracy", found, "share", flags=flags, **told)
    majority = max(Counter(labels[who] for who in guesses).values(), default=0) / len(guesses) if guesses else 1.0
    gained = None if found.value is None else advantage(found.value, majority)
    balanced = balanced_accuracy([one.truth for one in guesses.values()], [one.best for one in guesses.values()])
    bits = bits_gained([one.given for one in guesses.values()], [one.prior for one in guesses.values()])
    for name, value, unit in (
        ("balanced_accuracy", balanced, "share"),
        ("advantage", gained, "share"),
        ("bits", bits, "bits"),
    ):
        yield Measurement(
            metric=f"inference.attribute_{name}", value=value, unit=unit, n=len(guesses), n_clusters=len(by_table),
            denominator="agents that said something", flags=flags,
        )  # fmt: skip
