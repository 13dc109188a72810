"""What words tell of who said them: multinomial naive Bayes, learnt at other tables, and what chance does.

Left out: weights of words by how rare they are, and regressions, which need a library of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from math import exp, fsum, log
from operator import itemgetter
from random import Random
from typing import NamedTuple, TypeAlias

from sim.metrics.statistics.given import ROUNDED
from sim.metrics.statistics.permutation import p_value
from sim.types import JSON, AgentId

DRAWS = 99
"""Shuffles of a test; each learns all anew, so that 999 take five CPU seconds of fifty agents and thirty of 120."""
TRUST = (0.0, 0.03, 0.1, 0.3, 1.0)
"""Shares of the evidence of words that may count: naive Bayes takes words that hang together for so many proofs."""
Who: TypeAlias = tuple[int, AgentId]
"""Table and agent."""


class Guess(NamedTuple):
    """What is thought of one agent."""

    truth: Hashable
    priors: Mapping[Hashable, float]
    """Shares of values where it was learnt."""
    evidence: Mapping[Hashable, float]
    """Log-likelihood of the words by value."""

    @property
    def best(self) -> Hashable:
        """The likeliest value, the first of equals by name."""
        return min(self._likeliest, key=str)

    @property
    def right(self) -> float:
        """1 where the truth is the likeliest value, as a part of as many as are equally likely; else 0."""
        return 1 / len(self._likeliest) if self.truth in self._likeliest else 0.0

    @property
    def _likeliest(self) -> list[Hashable]:
        scores = {value: log(share) + self.evidence[value] for value, share in self.priors.items()}
        most = max(scores.values())
        return [value for value, each in scores.items() if most - each <= ROUNDED * max(1.0, abs(most))]

    @property
    def prior(self) -> float:
        """Of the truth."""
        return self.priors.get(self.truth, 0.0)

    @property
    def given(self) -> float:
        """Probability of the truth."""
        return self.trusting(1.0)

    def trusting(self, share: float) -> float:
        """Probability of the truth where only a share of the evidence counts."""
        logs = {value: log(prior) + share * self.evidence[value] for value, prior in self.priors.items()}
        most = max(logs.values())
        weights = {value: exp(each - most) for value, each in logs.items()}
        return weights.get(self.truth, 0.0) / fsum(weights.values())


class NaiveBayes:
    """Multinomial naive Bayes with one added to each count; every value of the labels it learnt is possible."""

    def __init__(self, known: Sequence[tuple[Counter[str], Hashable]]) -> None:
        counts = Counter(label for _, label in known)
        self._priors = {label: count / len(known) for label, count in counts.items()}
        self._words: dict[Hashable, Counter[str]] = {label: Counter() for label in counts}
        for words, label in known:
            self._words[label].update(words)
        self._many = len(set().union(*self._words.values())) + 1

    def guess(self, words: Counter[str], truth: Hashable) -> Guess:
        """What is thought of who said such words."""
        evidence = {}
        for label, seen in self._words.items():
            size = seen.total() + self._many
            evidence[label] = fsum(n * log((seen[word] + 1) / size) for word, n in words.items())
        return Guess(truth, self._priors, evidence)


def guessed(words: Mapping[Who, Counter[str]], labels: Mapping[Who, Hashable]) -> dict[Who, Guess]:
    """What is thought of each agent by what was learnt at the other tables; of a single table's, nothing."""
    found = {}
    for table in sorted({table for table, _ in words}):
        learnt = [who for who in words if who[0] != table]
        if not learnt:
            continue
        model = NaiveBayes([(words[who], labels[who]) for who in learnt])
        for who in words:
            if who[0] == table:
                found[who] = model.guess(words[who], labels[who])
    return found


def bits_told(guesses: Mapping[Who, Guess]) -> dict[int, list[float]]:
    """By table, log₂ of the probability given to each truth over its prior: in the mean a lower bound of what is told.

    How much of the evidence counts is chosen at the other tables. A value that was not learnt is left out.
    """
    known = {who: one for who, one in guesses.items() if one.prior}
    tables = sorted({table for table, _ in known})
    sums = {
        (table, share): fsum(log(one.trusting(share)) for (at, _), one in known.items() if at == table)
        for table in tables
        for share in TRUST
    }
    found: dict[int, list[float]] = {}
    for table in tables:
        share = max(TRUST, key=lambda one: fsum(sums[other, one] for other in tables if other != table))
        own = [one for (at, _), one in sorted(known.items(), key=itemgetter(0)) if at == table]
        found[table] = [log(one.trusting(share) / one.prior) / log(2) for one in own]
    return found


def guess_test(
    words: Mapping[Who, Counter[str]],
    labels: Mapping[Who, Hashable],
    n_perm: int = DRAWS,
    among: Callable[[Who], Hashable] = itemgetter(0),
    method: str = "values shuffled within tables",
) -> dict[str, JSON]:
    """How often as good a guess comes where values are shuffled: among the agents of each table, or of one `among`."""
    luck, drawn = Random(0), []
    groups: dict[Hashable, list[Who]] = {}
    for who in words:
        groups.setdefault(among(who), []).append(who)
    ordered = [groups[key] for key in sorted(groups, key=str)]
    for _ in range(n_perm):
        shuffled = dict(labels)
        for group in ordered:
            values = luck.sample([labels[who] for who in group], len(group))
            shuffled |= dict(zip(group, values, strict=True))
        drawn.append(_right(guessed(words, shuffled)))
    right = _right(guessed(words, labels))
    return {"stat": right, "p": p_value(right, drawn), "method": method, "n_perm": n_perm}


def _right(guesses: Mapping[Who, Guess]) -> float:
    return fsum(one.right for one in guesses.values()) / len(guesses)
