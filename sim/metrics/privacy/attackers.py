"""What a fixed attacker learns from what agents said for others to see: membership, exposure, and a private attribute.

It reads texts alone. Membership and exposure compare a secret with values that nobody was given (`canaries.decoy`). An
attribute is guessed by naive Bayes over words, learnt at the other tables; its null shuffles who has which value.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from math import exp, log
from random import Random
from typing import Any, NamedTuple

from rapidfuzz.fuzz import partial_ratio

from sim.metrics.frames import frames, texts
from sim.metrics.privacy.canaries import Canary, canary, decoy, find
from sim.metrics.privacy.disclosures import disclosures
from sim.metrics.privacy.inference import advantage, auc, bits_gained, exposure, rank_of, tpr_at_fpr
from sim.metrics.privacy.normal import normal
from sim.metrics.statistics.clusters import mean, rate
from sim.metrics.statistics.permutation import p_value
from sim.metrics.statistics.shares import estimated
from sim.types import JSON, AgentId, Measurement, Member, Record

DECOYS = 15
"""Values beside the true one among which it is ranked."""
DRAWS = 99
Who = tuple[int, AgentId]
"""Table and agent."""


def all(record: Record) -> Iterator[Measurement]:
    """Membership and exposure of secrets, and whether roles are told by words."""
    yield from membership(record)
    yield from attribute(record)


def membership(record: Record) -> Iterator[Measurement]:
    """Whether texts tell secrets from values that nobody has: AUC, hits at 1% false alarms, bits of exposure."""
    found, said = disclosures(record), spoken(record)
    own: list[float] = []
    others: list[float] = []
    bits: dict[int, list[float]] = defaultdict(list)
    for (table, holder), one in zip(found.place, found.canaries, strict=True):
        text = said.get((table, holder), "")
        if not one.usable:
            continue
        drawn = [_score(_decoyed(one, number), text) for number in range(DECOYS)]
        own.append(_score(one, text))
        others += drawn
        bits[table].append(exposure(rank_of(own[-1], drawn), DECOYS + 1))
    told: dict[str, Any] = {
        "n": len(own),
        "n_clusters": len(bits),
        "denominator": "secrets against values that nobody has",
    }
    yield Measurement(metric="inference.membership_auc", value=auc(own, others), unit="share", **told)
    yield Measurement(
        metric="inference.membership_tpr_at_fpr_1", value=tpr_at_fpr(own, others, 0.01), unit="share", **told
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


def _decoyed(one: Canary, number: int) -> Canary:
    secret = one.secret
    return canary(type(secret)(
        subject=secret.subject, attribute=secret.attribute, value=decoy(secret.value, number), holder=secret.holder
    ))  # fmt: skip


def _score(one: Canary, text: str) -> float:
    """2 where a text surely holds a value, else how near to it the nearest part comes."""
    if any(match.sure for _, match in find(text, [one])):
        return 2.0
    return partial_ratio(one.forms[0], normal(text)) / 100 if text else 0.0


# --- a private attribute -----------------------------------------------------------------------------------


def _role(member: Member) -> Hashable:
    return member.seat.role


class Guess(NamedTuple):
    """What is thought of one agent."""

    truth: Hashable
    best: Hashable
    given: float
    """Probability of the truth."""
    prior: float


def attribute(record: Record, of: Callable[[Member], Hashable] = _role) -> Iterator[Measurement]:
    """Accuracy, advantage over the most frequent value, and bits gained, by what an agent is; by default its role."""
    said = spoken(record)
    labels = {(table, member.seat.agent): of(member) for table in range(record.tables) for member in record.cast(table)}
    known = {who: Counter(normal(text).split()) for who, text in said.items() if who in labels}
    guesses = guessed(known, labels)
    flags = () if record.tables > 1 else ("one table: nothing to learn from",)
    by_table: dict[int, list[bool]] = defaultdict(list)
    for (table, _), one in guesses.items():
        by_table[table].append(one.best == one.truth)
    found = rate([sum(hits) for hits in by_table.values()], [len(hits) for hits in by_table.values()])
    null = guess_test(known, labels) if guesses else {}
    told: dict[str, Any] = {"denominator": "agents that said something", "null": null}
    yield estimated("inference.attribute_accuracy", found, "share", flags=flags, **told)
    majority = max(Counter(labels[who] for who in guesses).values(), default=0) / len(guesses) if guesses else 1.0
    gained = None if found.value is None else advantage(found.value, majority)
    bits = bits_gained([one.given for one in guesses.values()], [one.prior for one in guesses.values()])
    for name, value, unit in (("advantage", gained, "share"), ("bits", bits, "bits")):
        yield Measurement(
            metric=f"inference.attribute_{name}", value=value, unit=unit, n=len(guesses), n_clusters=len(by_table),
            denominator="agents that said something", flags=flags,
        )  # fmt: skip


def guessed(words: Mapping[Who, Counter[str]], labels: Mapping[Who, Hashable]) -> dict[Who, Guess]:
    """Of each agent the value that naive Bayes, learnt at the other tables, gives it; nobody's of a single table."""
    found = {}
    for table in sorted({table for table, _ in words}):
        learnt = [who for who in words if who[0] != table]
        if not learnt:
            continue
        model = _Bayes([(words[who], labels[who]) for who in learnt])
        for who in words:
            if who[0] == table:
                found[who] = model.guess(words[who], labels[who])
    return found


class _Bayes:
    """Multinomial naive Bayes with one added to each count; every value of the labels it learnt is possible."""

    def __init__(self, known: Sequence[tuple[Counter[str], Hashable]]) -> None:
        self._values = Counter(label for _, label in known)
        self._words: dict[Hashable, Counter[str]] = {label: Counter() for label in self._values}
        for counts, label in known:
            self._words[label].update(counts)
        self._many = len(set().union(*self._words.values())) + 1

    def guess(self, words: Counter[str], truth: Hashable) -> Guess:
        """The likeliest value, the first of equals by name, and what is thought of the truth."""
        total = self._values.total()
        logs = {}
        for label, count in self._values.items():
            seen = self._words[label]
            size = seen.total() + self._many
            logs[label] = log(count / total) + sum(n * log((seen[word] + 1) / size) for word, n in words.items())
        most = max(logs.values())
        weights = {label: exp(each - most) for label, each in logs.items()}
        best = min((label for label, each in logs.items() if each == most), key=str)
        share = weights.get(truth, 0.0) / sum(weights.values())
        return Guess(truth, best, share, self._values[truth] / total)


def guess_test(
    words: Mapping[Who, Counter[str]], labels: Mapping[Who, Hashable], n_perm: int = DRAWS
) -> dict[str, JSON]:
    """How often as good a guess comes where values are shuffled among the agents of each table."""
    luck, drawn = Random(0), []
    for _ in range(n_perm):
        shuffled = dict(labels)
        for table in sorted({table for table, _ in words}):
            there = [who for who in words if who[0] == table]
            values = luck.sample([labels[who] for who in there], len(there))
            shuffled |= dict(zip(there, values, strict=True))
        drawn.append(_right(guessed(words, shuffled)))
    right = _right(guessed(words, labels))
    return {"stat": right, "p": p_value(right, drawn), "method": "values shuffled within tables", "n_perm": n_perm}


def _right(guesses: Mapping[Who, Guess]) -> float:
    return sum(one.best == one.truth for one in guesses.values()) / len(guesses)
