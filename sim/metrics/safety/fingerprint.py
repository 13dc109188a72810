"""Can a model be told by how it acts? Scores of a classifier whose folds keep runs and scenarios together.

Latency in simulated time is the scenario's own, so it tells nothing of a model. Left out: the classifier itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from math import sqrt
from statistics import fmean

from sim.metrics.statistics.given import alike, whole


def macro_f1(truth: Sequence[Hashable], said: Sequence[Hashable]) -> float | None:
    """Mean F1 over all classes that are true or said; one that is never right has 0."""
    alike(truth=truth, said=said)
    names = list(dict.fromkeys([*truth, *said]))
    return fmean(_f1(truth, said, name) for name in names) if names else None


def from_confusion(table: Sequence[Sequence[int]]) -> tuple[list[int], list[int]]:
    """Truth and answers of a confusion table, rows the truth."""
    alike(classes=table, **{f"in row {place}": row for place, row in enumerate(table)})
    cells = [
        (i, j) for i, row in enumerate(table) for j, count in enumerate(row) for _ in range(whole("counts", count))
    ]
    return [i for i, _ in cells], [j for _, j in cells]


def grouped_folds(groups: Sequence[Hashable], k: int) -> Iterator[tuple[list[int], list[int]]]:
    """Places to train on and to test on, k times; a group is never in both, and groups go round by first place."""
    k = whole("k", k, 2)
    fold = {group: place % k for place, group in enumerate(dict.fromkeys(groups))}
    for each in range(k):
        test = [place for place, group in enumerate(groups) if fold[group] == each]
        yield [place for place, group in enumerate(groups) if fold[group] != each], test


def ngrams(acts: Sequence[Hashable], n: int = 2) -> dict[tuple[Hashable, ...], float]:
    """Shares of n-grams of acts: the features of a fingerprint, of length 1 in the Euclidean norm."""
    found: dict[tuple[Hashable, ...], float] = {}
    n = whole("n", n, 1)
    for start in range(len(acts) - n + 1):
        gram = tuple(acts[start : start + n])
        found[gram] = found.get(gram, 0.0) + 1
    norm = sqrt(sum(count**2 for count in found.values()))
    return {gram: count / norm for gram, count in found.items()}


def _f1(truth: Sequence[Hashable], said: Sequence[Hashable], name: Hashable) -> float:
    both = sum(t == s == name for t, s in zip(truth, said, strict=True))
    return 2 * both / (sum(t == name for t in truth) + sum(s == name for s in said))
